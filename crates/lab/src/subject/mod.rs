//! What is measured: programs that make images, those who read them, and file systems that are written.
//!
//! One file per program, in `makers/`, `readers/`, `unpackers/` and `writable/`: how it is asked, in its own spelling. What
//! it cannot do it says, with the reason, and is never asked for something near it instead. What is measured, and how
//! often, is decided elsewhere.

mod found;
mod maker;
mod makers;
mod reader;
mod readers;
mod unpacker;
mod unpackers;
mod writable;

pub use found::Subjects;
pub use maker::{Input, Maker};
pub use reader::Reader;
pub use unpacker::{Unpack, Unpacker};
pub use writable::WritableFs;

use readers::has_driver;
