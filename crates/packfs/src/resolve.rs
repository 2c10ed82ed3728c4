//! Finds paths in a volume, following symbolic links inside the image only.

use packfs_core::{Errno, Error, ImagePath, MostSimilar, Name, Result, escaped};
use packfs_format::{DirCursor, InodeId, InodeKind, Volume};
use std::ops::ControlFlow;

/// Limit on links followed in one path, as in Linux (`MAXSYMLINKS`).
const LINKS_MAX: usize = 40;

/// Entries of a directory that are compared with a name that is not there.
const ENTRIES_MAX: usize = 10_000;

/// Treatment of a symbolic link at the end of a path. Links before it are always followed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastLink {
    Keep,
    Follow,
}

/// Finds a path, and its kind if that was read on the way. `..` in links goes up, at the root it
/// stays there; absolute links start at the image's root.
///
/// Errors: `NotFound` if there is no such path, `Failed` if something on its way is no directory,
/// or too many links are.
pub(crate) fn resolve(
    volume: &dyn Volume,
    path: &ImagePath,
    last: LastLink,
) -> Result<(InodeId, Option<InodeKind>)> {
    let missing = || Error::not_found(format!("{path:?}: no such path in the image"));
    let mut left: Vec<Vec<u8>> = path.names().map(|name| name.as_bytes().to_vec()).collect();
    left.reverse();
    let mut dirs = vec![volume.root()];
    let mut at = (volume.root(), None);
    let mut links = 0;
    while let Some(name) = left.pop() {
        match name.as_slice() {
            b"" | b"." => continue,
            b".." => {
                if dirs.len() > 1 {
                    dirs.pop();
                }
                at = (dirs.last().copied().unwrap_or(volume.root()), None);
                continue;
            }
            _ => {}
        }
        Name::new(&name).map_err(|_| missing())?;
        let dir = dirs.last().copied().unwrap_or(volume.root());
        let Some(found) = volume.lookup(dir, &name)? else {
            let error = missing();
            // Names that a link has added are none that the user typed.
            let place = path.names().count().checked_sub(left.len() + 1).filter(|_| links == 0);
            return Err(match place.and_then(|place| meant(volume, path, dir, place)) {
                Some(meant) => error.hint(format!("did you mean {meant}?")),
                None => error,
            });
        };
        let kind = volume.inode(found)?.kind;
        match kind {
            InodeKind::Directory => {
                dirs.push(found);
                at = (found, Some(kind));
            }
            InodeKind::Symlink if !left.is_empty() || last == LastLink::Follow => {
                links += 1;
                if links > LINKS_MAX {
                    let fault = format!("{path:?}: cannot follow more than {LINKS_MAX} symbolic links");
                    return Err(Error::failed(fault).with_errno(Errno::LOOP));
                }
                let target = volume.read_link(found)?;
                if target.first() == Some(&b'/') {
                    dirs.truncate(1);
                }
                at = (dirs.last().copied().unwrap_or(volume.root()), None);
                left.extend(target.rsplit(|&b| b == b'/').map(<[u8]>::to_vec));
            }
            _ if left.iter().any(|name| !name.is_empty()) => {
                let fault = format!("{path:?}: \"{}\" is not a directory", escaped(&name));
                return Err(Error::failed(fault).with_errno(Errno::NOTDIR));
            }
            _ => at = (found, Some(kind)),
        }
    }
    Ok(at)
}

/// Returns the path, in quotes, that was meant by one whose name number `place` is not in `dir`.
fn meant(volume: &dyn Volume, path: &ImagePath, dir: InodeId, place: usize) -> Option<String> {
    let names: Vec<&[u8]> = path.names().map(|name| name.as_bytes()).collect();
    let (mut similar, mut looked) = (MostSimilar::default(), 0);
    let listed = volume.read_dir(dir, DirCursor::default(), &mut |entry, _| {
        similar.look(names[place], &entry.name);
        looked += 1;
        if looked < ENTRIES_MAX { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    // A directory that is damaged is another error's to tell.
    listed.ok()?;
    let mut found = names[..place].to_vec();
    found.push(similar.name()?);
    // The names that follow may be there as they were typed.
    let all = [&found[..], &names[place + 1..]].concat();
    let is_there = ImagePath::parse(&all.join(&b'/')).is_ok_and(|all| exists(volume, &all));
    let meant = if is_there { all } else { found };
    Some(format!("\"{}\"", escaped(&meant.join(&b'/'))))
}

/// True if a path is there, without following links.
fn exists(volume: &dyn Volume, path: &ImagePath) -> bool {
    let mut names = path.names();
    let found = names.try_fold(volume.root(), |dir, name| volume.lookup(dir, name.as_bytes()).ok().flatten());
    found.is_some()
}
