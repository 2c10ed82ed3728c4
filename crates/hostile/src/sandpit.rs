//! A folder to unpack into, with something beside it that must stay as it is.

use crate::Breach;
use std::path::{Path, PathBuf};

const SENTINEL: &str = "sentinel";
const TARGET: &str = "target";
const UNTOUCHED: &[u8] = b"untouched";

/// See the module.
pub struct Sandpit {
    folder: tempfile::TempDir,
}

impl Sandpit {
    /// Makes one, in memory where the machine has such a place.
    ///
    /// # Errors
    /// As of making a folder.
    pub fn new() -> std::io::Result<Sandpit> {
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }?;
        std::fs::write(folder.path().join(SENTINEL), UNTOUCHED)?;
        Ok(Sandpit { folder })
    }

    /// Returns the directory to unpack to, which does not exist yet.
    pub fn target(&self) -> PathBuf {
        self.folder.path().join(TARGET)
    }

    /// A place for an image that is made.
    pub fn image(&self) -> PathBuf {
        self.folder.path().join("image")
    }

    /// Removes what was unpacked and looks at what lies beside it.
    ///
    /// # Errors
    /// [`Breach::Outside`] if anything there is new, gone or changed.
    pub fn clear(&self) -> Result<(), Breach> {
        let outside = |what: String| Breach::Outside(what);
        let said = std::fs::read(self.folder.path().join(SENTINEL));
        if said.as_deref().ok() != Some(UNTOUCHED) {
            return Err(outside(format!("the file beside it is now {said:?}")));
        }
        let entries = std::fs::read_dir(self.folder.path()).map_err(|e| outside(e.to_string()))?;
        for entry in entries {
            let name = entry.map_err(|e| outside(e.to_string()))?.file_name();
            if name != SENTINEL && name != TARGET && name != "image" {
                return Err(outside(format!("{name:?} is new")));
            }
        }
        match std::fs::remove_dir_all(self.target()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                // Names at the end of what paths can tell: the shell's own walk can remove those.
                let removed = std::process::Command::new("rm").arg("-rf").arg(self.target()).status();
                removed.map(drop).map_err(|_| outside(format!("cannot be removed: {error}")))
            }
            _ => Ok(()),
        }
    }
}
