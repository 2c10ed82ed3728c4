//! Options of opening by their names, which C sees as a name only.

use crate::error::Result;
use packfs::OpenOptions;
use packfs::options::Options;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Options of opening that are set by their names.
#[derive(Default)]
pub struct NamedOptions(pub(crate) OpenOptions);

impl NamedOptions {
    /// Sets an option.
    ///
    /// Errors: those of the library.
    pub fn set(&mut self, name: &[u8], value: &[u8]) -> Result<()> {
        let name = String::from_utf8_lossy(name);
        Ok(self.0.set(&name, OsStr::from_bytes(value))?)
    }
}
