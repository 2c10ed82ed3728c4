//! Targets of symbolic links: path components (ECMA-167 4/14.16), joined as Linux does.

use crate::corruption::Corruption;
use crate::cs0;
use crate::disk::PathComponent;
use crate::entry::FileEntry;
use crate::maps::Reader;
use packfs_core::{FileType, Result};
use packfs_format::{structure, units::*};

const STORED_LEN_MAX: u64 = 64 << 10;
/// Longest target that Linux returns.
const TARGET_LEN_MAX: usize = 4095;

impl Reader {
    pub(crate) fn link_target(&self, entry: FileEntry) -> Result<Vec<u8>> {
        let entry = entry.wanted(FileType::Symlink)?;
        let place = entry.place;
        let fault = |fault| Corruption::Target { place, fault };
        if entry.len() > STORED_LEN_MAX {
            return Err(fault("stored in more than 64 KiB").into());
        }
        let target = joined(&self.read_whole(&entry)?).map_err(fault)?;
        match target.len() {
            0 => Err(fault("empty").into()),
            1..=TARGET_LEN_MAX => Ok(target),
            _ => Err(fault("longer than 4095 bytes").into()),
        }
    }
}

fn joined(mut stored: &[u8]) -> Result<Vec<u8>, &'static str> {
    let mut target = Vec::new();
    while !stored.is_empty() {
        let head: PathComponent = structure(stored, 0).ok_or("ends within a component")?;
        let rest = stored.within(size_of::<PathComponent>()..);
        let name = rest.get(..head.length_component_ident.into()).ok_or("ends within a component")?;
        stored = rest.within(name.len()..);
        match head.component_type {
            // A root on which writer and reader would have to agree.
            1 if !name.is_empty() => {}
            1 | 2 => target = b"/".to_vec(),
            3 => target.extend(b"../"),
            4 => target.extend(b"./"),
            5 => {
                target.extend(cs0::name(name)?);
                target.push(b'/');
            }
            _ => return Err("component of an unknown type, 1 to 5 allowed"),
        }
    }
    if target.len() > 1 && target.last() == Some(&b'/') {
        target.pop();
    }
    Ok(target)
}

#[cfg(test)]
mod tests {
    use super::joined;

    #[test]
    fn components_are_joined_by_slashes() {
        let name = |name: &[u8]| [&[5, name.len() as u8 + 1, 0, 0, 8][..], name].concat();
        let path = |parts: &[Vec<u8>]| joined(&parts.concat()).map(|path| String::from_utf8(path).unwrap());
        let (root, up, here) = (vec![2, 0, 0, 0], vec![3, 0, 0, 0], vec![4, 0, 0, 0]);
        assert_eq!(path(&[up.clone(), here, name(b"a"), up, name(b"b c")]).unwrap(), ".././a/../b c");
        assert_eq!(path(&[root.clone(), name(b"etc")]).unwrap(), "/etc");
        assert_eq!(path(&[root]).unwrap(), "/");
        assert_eq!(path(&[vec![5, 9, 0, 0, 8]]), Err("ends within a component"));
        assert!(path(&[vec![6, 0, 0, 0]]).is_err());
    }
}
