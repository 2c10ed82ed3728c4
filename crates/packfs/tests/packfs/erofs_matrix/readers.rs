//! Readers of images, and the parts of their answers that count.

use crate::common::read_image;
use packfs_testkit::{Compare, Mount, Peer, Snapshot, peer, snapshot_dir};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Result of a reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The same walk, the same SHA-256 of every file.
    Agree,
    /// Something else: the differences.
    Disagree(Vec<String>),
    /// Nothing: what it says why.
    Cannot(String),
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Outcome::Agree => f.write_str("ok"),
            Outcome::Disagree(found) => write!(f, "differs: {}", shown(found)),
            Outcome::Cannot(said) => write!(f, "fails: {}", shown(std::slice::from_ref(said))),
        }
    }
}

pub enum Reader {
    /// The kernel of this machine.
    Kernel,
    ErofsFuse(Peer),
    /// Extracts to a directory.
    FsckErofs(Peer),
    /// Walks, checks, and unpacks to a directory.
    Packfs,
}

impl Reader {
    /// None, and the test skipped, where a program is missing.
    pub fn all() -> Option<[Self; 4]> {
        let (fuse, fsck) = (peer("erofsfuse")?, peer("fsck.erofs")?);
        Some([Reader::Kernel, Reader::ErofsFuse(fuse), Reader::FsckErofs(fsck), Reader::Packfs])
    }

    pub fn name(&self) -> &'static str {
        match self {
            Reader::Kernel => "kernel",
            Reader::ErofsFuse(_) => "erofsfuse",
            Reader::FsckErofs(_) => "fsck.erofs",
            Reader::Packfs => "packfs",
        }
    }

    /// Reads all of an image and compares it with what went in; `folder` has room for what is
    /// extracted.
    pub fn read(&self, image: &Path, expected: &Snapshot, folder: &Path) -> Outcome {
        let target = folder.join("extracted");
        let read = catch_unwind(AssertUnwindSafe(|| self.differences(image, expected, &target)));
        let _ = std::fs::remove_dir_all(&target);
        match read {
            Ok(Ok(found)) if found.is_empty() => Outcome::Agree,
            Ok(Ok(found)) => Outcome::Disagree(found),
            Ok(Err(why)) => Outcome::Cannot(why),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map_or("it panicked", |text| text);
                Outcome::Cannot(text.into())
            }
        }
    }

    /// The differences between what went in and what comes out; the error is why nothing comes out.
    fn differences(&self, image: &Path, expected: &Snapshot, target: &Path) -> Result<Vec<String>, String> {
        match self {
            Reader::Kernel => {
                let mount = Mount::new(image, "erofs")?;
                Ok(expected.each_difference(&snapshot_dir(&mount.path()), Compare::ALL).collect())
            }
            Reader::ErofsFuse(erofsfuse) => {
                let mount = Mount::fuse(erofsfuse, image)?;
                // It tells whole seconds only.
                let compare = Compare::default();
                Ok(expected.each_difference(&snapshot_dir(&mount.path()), compare).collect())
            }
            Reader::FsckErofs(fsck) => {
                let mut extract = std::ffi::OsString::from("--extract=");
                extract.push(target);
                let output = fsck.command(&[&extract, &"--xattrs", &image]).output();
                let output = output.map_err(|e| e.to_string())?;
                if !output.status.success() {
                    return Err(String::from_utf8_lossy(&output.stderr).into());
                }
                let (mut wanted, found) = (expected.clone(), snapshot_dir(target));
                let right = excuse_lost_xattrs(&mut wanted, &found);
                Ok(wanted.each_difference(&found, Compare::ALL).chain(right).collect())
            }
            Reader::Packfs => {
                let (walked, findings) = read_image(image);
                let mut found: Vec<String> = expected.each_difference(&walked, Compare::ALL).collect();
                found.extend(findings.iter().map(|finding| format!("check: {}", finding.fault)));
                let unpacked = packfs::open(image).and_then(|opened| opened.unpack(target));
                unpacked.map_err(|e| e.to_string())?;
                found.extend(expected.each_difference(&snapshot_dir(target), Compare::ALL));
                Ok(found)
            }
        }
    }
}

/// Takes out of what is wanted what fsck.erofs 1.9.4 is known to lose, with no word and exit status
/// 0: attributes of an inode that has an empty one, and capabilities, probably because it changes
/// the owner after them. What it extracts has to be right even there. Returns the inodes of which
/// it lost nothing, so that this excuse does not outlive the fault.
fn excuse_lost_xattrs(wanted: &mut Snapshot, found: &Snapshot) -> Vec<String> {
    let mut right = Vec::new();
    for (path, row) in &mut wanted.0 {
        let loses = row.xattrs.iter().any(|(name, value)| value.is_empty() || name == b"security.capability");
        let Some(extracted) = found.0.get(path).filter(|_| loses) else { continue };
        if extracted.xattrs == row.xattrs {
            right.push(format!("\"{}\": lost no attribute, but is known to", path.escape_ascii()));
        }
        row.xattrs.retain(|name, _| extracted.xattrs.contains_key(name));
    }
    right
}

/// The beginning of what was said, on one line.
pub fn shown(said: &[String]) -> String {
    let lines = said.iter().flat_map(|text| text.lines()).map(str::trim).filter(|line| !line.is_empty());
    let mut line = lines.take(3).collect::<Vec<_>>().join("; ");
    if let Some((cut, _)) = line.char_indices().nth(400) {
        line.truncate(cut);
        line.push_str(" ...");
    }
    line
}
