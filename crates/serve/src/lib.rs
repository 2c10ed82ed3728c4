//! A read-only HTTP server over an opened image: files with ranges and entity tags, directories as
//! pages and as JSON.
//!
//! `site.rs` answers a request, on a thread that may wait for the image; `conditions.rs` decides by
//! RFC 9110 which part of a file is sent; `server.rs` transfers bytes. A client that reads slowly
//! holds one connection and at most one piece of a file, and no thread; one that reads nothing is
//! disconnected, and none can hold all connections.
#![forbid(unsafe_code)]

mod address;
mod body;
mod conditions;
mod guests;
mod impatient;
mod listing;
mod options;
mod server;
mod site;

pub use options::SiteOptions;
pub use server::{Server, Stopper};
