//! Nothing of an image in memory, but all of the programs that read it.

use std::path::Path;

use packfs_host::cold;

use crate::failure::{Failure, Result};
use crate::shell;

/// Makes the kernel forget what it keeps of all files. Does nothing about mounts: those are made anew.
pub fn drop_caches() -> Result<()> {
    cold::drop_caches().map_err(|error| Failure::io("write", Path::new(cold::DROP_CACHES), error))
}

/// Reads the programs and libraries of a running process, and `readers`: from a disk they would else be loaded while time
/// is taken.
pub fn load_programs(process: Option<u32>, readers: &[&str]) {
    process.into_iter().for_each(cold::load_mapped);
    readers.iter().filter_map(|name| shell::find_program(name)).for_each(|path| cold::load(&path));
}
