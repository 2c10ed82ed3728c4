//! Files of a Debian desktop: XFCE and all packages that Debian recommends with it.

use std::path::Path;

use crate::debian::{DESKTOP, Mmdebstrap};
use crate::failure::{Failure, Result};
use crate::{shell, workspace};

const SUITE: &str = "bullseye";

/// Unpacks the packages without configuring them: the same versions give the same files.
pub fn make(path: &Path) -> Result<()> {
    if !shell::is_root() {
        let why = "the desktop's root has files of many owners, so it can only be made as root";
        return Err(Failure::new(format!("{why}\nhint: sudo cargo xtask corpus desktop")));
    }
    let made = path.with_extension("new");
    workspace::remove_dir(&made)?;
    Mmdebstrap::find()?.extract(&DESKTOP, SUITE, &made)?;
    workspace::remove_dir(path)?;
    std::fs::rename(&made, path).map_err(|error| Failure::io("move", &made, error))
}
