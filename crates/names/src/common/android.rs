//! Files that describe Android's partitions: labels of SELinux, owners, permissions, capabilities.

use super::parse::Given;
use packfs::source::FileContexts;
use packfs::{Edited, Error, ImagePath, Owner, Result, ResultExt};
use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// `at` is the option with the mount point.
pub fn file_contexts(given: &Given, file: &str, at: &str) -> Result<Option<Arc<FileContexts>>> {
    let Some(path) = given.last(file) else { return Ok(None) };
    let at = given.last(at).map_or(Ok(ImagePath::root()), |at| ImagePath::parse(at.as_bytes()))?;
    Ok(Some(Arc::new(FileContexts::read(Path::new(path))?.mounted_at(at))))
}

/// Without `keeps`, entries that no expression matches lose their label. The tools store none with
/// a final NUL.
pub fn label(contexts: &FileContexts, path: &ImagePath, keeps: bool, edit: &mut Edited) {
    let name = b"security.selinux";
    edit.xattrs.retain(|own, _| keeps || own != name);
    if let Some(label) = contexts.label(path, edit.kind.file_type()) {
        edit.xattrs.insert(name.to_vec(), label.strip_suffix(b"\0").unwrap_or(label).to_vec());
    }
}

/// Android's canned `fs_config`: owners, permissions and capabilities.
#[derive(Debug, Default)]
pub struct FsConfig {
    rows: HashMap<Vec<u8>, (u32, u32, u16, u64)>,
    at: Vec<u8>,
}

impl FsConfig {
    pub fn of(given: &Given, file: &str, at: &str) -> Result<Self> {
        let Some(path) = given.last(file) else { return Ok(FsConfig::default()) };
        let at = given.last(at).map(|at| at.as_bytes().trim_ascii()).unwrap_or_default();
        let at = at.strip_prefix(b"/").unwrap_or(at).to_vec();
        let mut config = FsConfig { at, ..FsConfig::default() };
        let text = std::fs::read_to_string(path).or_io(|| format!("cannot read {path:?}"))?;
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let wrong = || Error::usage(format!("{path:?}: \"{line}\" is not PATH UID GID MODE"));
            // The root has an empty path, so its line begins with a blank.
            let mut words = line.split(' ');
            let name = words.next().unwrap_or_default().trim_matches('/').as_bytes().to_vec();
            let mut words = words.filter(|word| !word.is_empty());
            let mut number = || words.next().and_then(|word| word.parse().ok());
            let (uid, gid) = (number().ok_or_else(wrong)?, number().ok_or_else(wrong)?);
            let mode = words.next().and_then(|word| u16::from_str_radix(word, 8).ok()).ok_or_else(wrong)?;
            let capabilities = words.find_map(|word| word.strip_prefix("capabilities="));
            let capabilities = capabilities.and_then(|text| match text.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16).ok(),
                None => text.parse().ok(),
            });
            config.rows.insert(name, (uid, gid, mode & 0o7777, capabilities.unwrap_or(0)));
        }
        Ok(config)
    }

    pub fn apply(&self, path: &ImagePath, edit: &mut Edited) {
        let below = |parts: [&[u8]; 2]| {
            parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(&b'/')
        };
        let found =
            self.rows.get(&below([&self.at, path.as_bytes()])).or_else(|| self.rows.get(path.as_bytes()));
        let Some((uid, gid, mode, capabilities)) = found else { return };
        edit.meta.owner = Owner { uid: *uid, gid: *gid };
        edit.meta.mode = *mode;
        if *capabilities != 0 {
            // Revision 2 with the effective flag (linux/capability.h): permitted, inheritable.
            let low = (*capabilities as u32).to_le_bytes();
            let high = ((*capabilities >> 32) as u32).to_le_bytes();
            let value = [&0x0200_0001_u32.to_le_bytes()[..], &low, &[0; 4], &high, &[0; 4]].concat();
            edit.xattrs.insert(b"security.capability".to_vec(), value);
        }
    }
}
