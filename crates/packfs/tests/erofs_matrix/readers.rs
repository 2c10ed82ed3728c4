//! Who reads images, and what of each answer counts.

use crate::common::read_image;
use packfs_testkit::{Compare, Mount, Peer, Snapshot, peer, snapshot_dir};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// What a reader makes of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The same walk, the same SHA-256 of every file.
    Agree,
    /// Something else: the first differences.
    Disagree(String),
    /// Nothing: what it says why.
    Cannot(String),
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

/// Everything counts, to the nanosecond.
const ALL: Compare = Compare {
    nanos: true,
    xattrs: true,
    owners: true,
    dir_links: true,
    hard_links: true,
    symlink_times: true,
    root: true,
};

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

    /// Reads all of an image and compares it with what went in; `folder` has room for what is extracted.
    pub fn read(&self, image: &Path, expected: &Snapshot, folder: &Path) -> Outcome {
        let target = folder.join("extracted");
        let read = catch_unwind(AssertUnwindSafe(|| self.differences(image, expected, &target)));
        let _ = std::fs::remove_dir_all(&target);
        match read {
            Ok(Ok(found)) if found.is_empty() => Outcome::Agree,
            Ok(Ok(found)) => Outcome::Disagree(shown(&found.join("\n"))),
            Ok(Err(why)) => Outcome::Cannot(shown(&why)),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map_or("it panicked", |text| text);
                Outcome::Cannot(shown(text))
            }
        }
    }

    /// The differences between what went in and what comes out; the error is why nothing comes out.
    fn differences(&self, image: &Path, expected: &Snapshot, target: &Path) -> Result<Vec<String>, String> {
        match self {
            Reader::Kernel => {
                let mount = Mount::new(image, "erofs")?;
                Ok(expected.differences(&snapshot_dir(&mount.path()), ALL))
            }
            Reader::ErofsFuse(erofsfuse) => {
                let mount = Mount::fuse(erofsfuse, image)?;
                // It tells whole seconds only.
                Ok(expected.differences(&snapshot_dir(&mount.path()), Compare { nanos: false, ..ALL }))
            }
            Reader::FsckErofs(fsck) => {
                let mut extract = std::ffi::OsString::from("--extract=");
                extract.push(target);
                let output = fsck.command(&[&extract, &"--xattrs", &image]).output();
                let output = output.map_err(|e| e.to_string())?;
                if !output.status.success() {
                    return Err(String::from_utf8_lossy(&output.stderr).into());
                }
                let [wanted, found] = [expected.clone(), snapshot_dir(target)].map(|mut snapshot| {
                    forget_what_is_not_extracted(&mut snapshot, expected);
                    snapshot
                });
                Ok(wanted.differences(&found, ALL))
            }
            Reader::Packfs => {
                let (walked, findings) = read_image(image);
                let mut found = expected.differences(&walked, ALL);
                found.extend(findings.iter().map(|finding| format!("check: {}", finding.fault)));
                let unpacked = packfs::open(image).and_then(|opened| opened.unpack(target));
                unpacked.map_err(|e| e.to_string())?;
                found.extend(expected.differences(&snapshot_dir(target), ALL));
                Ok(found)
            }
        }
    }
}

/// What fsck.erofs does not extract: attributes from an empty one on, and capabilities, which its later chown takes away.
fn forget_what_is_not_extracted(snapshot: &mut Snapshot, source: &Snapshot) {
    for (path, row) in &mut snapshot.0 {
        let has_empty = source.0.get(path).is_some_and(|row| row.xattrs.values().any(Vec::is_empty));
        if has_empty {
            row.xattrs.clear();
        }
        row.xattrs.remove(&b"security.capability"[..]);
    }
}

/// The beginning of a text, on one line.
fn shown(text: &str) -> String {
    let line: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).take(3).collect();
    let mut line = line.join("; ");
    if let Some((cut, _)) = line.char_indices().nth(400) {
        line.truncate(cut);
        line.push_str(" ...");
    }
    line
}
