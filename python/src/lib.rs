//! Native part of the Python package `packfs`: images that are read, and jobs that make and check
//! them. The Python part, in `packfs/`, holds what users see: signatures, defaults, documentation.
//!
//! No call into the library holds the GIL, because its threads may need it: an image may lie in a
//! Python file object.
#![deny(unsafe_code)]

mod composefs;
mod entry;
mod errors;
mod file;
mod given;
mod image;
mod jobs;
mod many;
mod new_bytes;
mod pack;
mod place;
mod session;
mod watch;

use pyo3::prelude::*;

/// Native part of packfs.
#[pymodule]
mod _packfs {
    #[pymodule_export]
    use crate::composefs::composefs;
    #[pymodule_export]
    use crate::entry::Entry;
    #[pymodule_export]
    use crate::errors::{CorruptImage, Error, LimitExceeded, UnsupportedImage};
    #[pymodule_export]
    use crate::file::RawFile;
    #[pymodule_export]
    use crate::image::{RawImage, classes};
    #[pymodule_export]
    use crate::jobs::{check, digest, merge};
    #[pymodule_export]
    use crate::pack::pack;

    /// Version of the package.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
