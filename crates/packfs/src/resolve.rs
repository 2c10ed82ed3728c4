//! Finds paths in a volume, following symbolic links inside the image only.

use packfs_core::{Error, ImagePath, InodeId, InodeKind, Name, Result, Volume, escaped};

/// As many links as Linux follows on the way of one path (`MAXSYMLINKS`).
const LINKS_MAX: usize = 40;

/// Whether a symbolic link at the end of a path is followed. Those before it always are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastLink {
    Keep,
    Follow,
}

/// Finds a path. `..` in links goes up, at the root it stays there; absolute links start at the image's root.
///
/// Errors: `Failed` if there is no such path, or too many links are on its way.
pub(crate) fn resolve(volume: &dyn Volume, path: &ImagePath, last: LastLink) -> Result<InodeId> {
    let missing = || Error::failed(format!("{path:?}: no such path in the image"));
    let mut left: Vec<Vec<u8>> = path.names().map(|name| name.as_bytes().to_vec()).collect();
    left.reverse();
    let mut dirs = vec![volume.root()];
    let mut at = volume.root();
    let mut links = 0;
    while let Some(name) = left.pop() {
        match name.as_slice() {
            b"" | b"." => continue,
            b".." => {
                if dirs.len() > 1 {
                    dirs.pop();
                }
                at = dirs.last().copied().unwrap_or(volume.root());
                continue;
            }
            _ => {}
        }
        Name::new(&name).map_err(|_| missing())?;
        let dir = dirs.last().copied().unwrap_or(volume.root());
        let found = volume.lookup(dir, &name)?.ok_or_else(missing)?;
        match volume.inode(found)?.kind {
            InodeKind::Directory => {
                dirs.push(found);
                at = found;
            }
            InodeKind::Symlink if !left.is_empty() || last == LastLink::Follow => {
                links += 1;
                if links > LINKS_MAX {
                    return Err(Error::failed(format!(
                        "{path:?}: more than {LINKS_MAX} symbolic links on the way"
                    )));
                }
                let target = volume.read_link(found)?;
                if target.first() == Some(&b'/') {
                    dirs.truncate(1);
                }
                at = dirs.last().copied().unwrap_or(volume.root());
                left.extend(target.rsplit(|&b| b == b'/').map(<[u8]>::to_vec));
            }
            _ if left.iter().any(|name| !name.is_empty()) => {
                return Err(Error::failed(format!("{path:?}: \"{}\" is no directory", escaped(&name))));
            }
            _ => at = found,
        }
    }
    Ok(at)
}
