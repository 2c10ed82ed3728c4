//! composefs images: made of any source or a dump, listed as a dump; their objects.
//!
//! An image has the metadata of files, and names objects with their contents ([`make`]). Kernels
//! mount both as one file system.
//!
//! ```
//! # let dir = tempfile::tempdir()?;
//! # let rootfs = dir.path().join("rootfs");
//! # std::fs::create_dir(&rootfs)?;
//! # std::fs::write(rootfs.join("motd"), "hello\n".repeat(100))?;
//! use packfs::composefs::{ComposefsOptions, dump, make};
//!
//! let made = make(&rootfs, &ComposefsOptions::default(), &packfs::Silent)?;
//! let mut text = Vec::new();
//! dump(&packfs::open_bytes(made.bytes)?, &mut text)?;
//! assert!(String::from_utf8(text)?.contains("/motd 600 "));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod deposit;
mod listing;
mod making;

pub use listing::{ObjectUse, dump, dump_where, missing, objects};
pub use making::{ComposefsOptions, ComposefsReport, Made, ObjectCounts, make, make_of, make_of_dump};
pub use packfs_formats::composefs::{Escape, Versions, escape};
