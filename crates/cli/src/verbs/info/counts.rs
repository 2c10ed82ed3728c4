//! Number of files of each type in an image, and their length: the first lines of `packfs info`.

use crate::out::text;
use packfs::{ErrorKind, FileType, InodeId, InodeKind, Limit, Opened, Result};
use serde::Serialize;
use std::collections::HashSet;

/// Memory that an inode with several names takes, in bytes, estimated.
const LINKED_LEN: u64 = 24;

/// Contents of an image, and its length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    totals: Totals,
    /// Length of the image with its devices, in bytes; `None` if it has free space.
    image_len: Option<u64>,
}

/// Names by file type, and the length of all files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Totals {
    /// Regular files.
    files: u64,
    /// Directories, the root included.
    directories: u64,
    /// Symbolic links.
    symlinks: u64,
    /// Block and character devices.
    devices: u64,
    /// Named pipes.
    fifos: u64,
    /// Sockets.
    sockets: u64,
    /// Further names of inodes that are counted already.
    hard_links: u64,
    /// Length of all files, each once.
    file_bytes: u64,
}

impl Totals {
    fn add(&mut self, kind: InodeKind) {
        let count = match kind.file_type() {
            FileType::File => &mut self.files,
            FileType::Directory => &mut self.directories,
            FileType::Symlink => &mut self.symlinks,
            FileType::BlockDevice | FileType::CharDevice => &mut self.devices,
            FileType::Fifo => &mut self.fifos,
            FileType::Socket => &mut self.sockets,
        };
        *count += 1;
        if let InodeKind::File { len } = kind {
            self.file_bytes = self.file_bytes.saturating_add(len);
        }
    }
}

impl Counts {
    /// Counts by a walk through the directories. `None` if they are damaged, or hold more than the
    /// limits allow.
    ///
    /// Errors: `Io`.
    pub fn of(opened: &Opened, image_len: Option<u64>) -> Result<Option<Counts>> {
        let mut counts = Counts { image_len, ..Counts::default() };
        let mut linked: HashSet<InodeId> = HashSet::new();
        for walked in opened.walk() {
            let walked = match walked {
                Ok(walked) => walked,
                Err(error) if matches!(error.kind(), ErrorKind::Io | ErrorKind::Cancelled) => {
                    return Err(error);
                }
                Err(_) => return Ok(None),
            };
            let inode = walked.inode;
            let is_dir = inode.kind == InodeKind::Directory;
            if !is_dir && inode.links > 1 && !linked.insert(walked.id) {
                counts.totals.hard_links += 1;
                continue;
            }
            let memory = LINKED_LEN.saturating_mul(linked.len() as u64);
            if opened.limits().check("inodes with several names", Limit::Memory, memory).is_err() {
                return Ok(None);
            }
            counts.totals.add(inode.kind);
        }
        Ok(Some(counts))
    }

    /// Rows for people: a label and its value.
    pub fn rows(&self) -> Vec<(&'static str, String)> {
        let mut content = vec![text::counted(self.totals.files, "file")];
        content.push(match self.totals.directories {
            1 => "1 directory".into(),
            count => format!("{} directories", text::count(count)),
        });
        for (count, noun) in [
            (self.totals.symlinks, "symbolic link"),
            (self.totals.hard_links, "hard link"),
            (self.totals.devices, "device"),
            (self.totals.fifos, "fifo"),
            (self.totals.sockets, "socket"),
        ] {
            if count > 0 {
                content.push(text::counted(count, noun));
            }
        }
        let mut rows =
            vec![("Content", content.join(", ")), ("Uncompressed", text::long_size(self.totals.file_bytes))];
        if let Some(image_len) = self.image_len {
            let share = text::percent(image_len, self.totals.file_bytes);
            let ratio = self.ratio().map(|ratio| format!("{ratio:.2} to 1 ({share} of the data)"));
            rows.push(("Ratio", ratio.unwrap_or("none".into())));
        }
        rows
    }

    /// Bytes of files for each byte of the image; `None` without any.
    fn ratio(&self) -> Option<f64> {
        let image_len = self.image_len.filter(|len| self.totals.file_bytes > 0 && *len > 0)?;
        Some(self.totals.file_bytes as f64 / image_len as f64)
    }
}

/// Names by file type, the length of all files, and the compression ratio.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CountRow {
    #[serde(flatten)]
    totals: Totals,
    /// Bytes of files for each byte of the image; null without any, and for formats with free
    /// space.
    ratio: Option<f64>,
}

impl From<Counts> for CountRow {
    fn from(counts: Counts) -> Self {
        CountRow { totals: counts.totals, ratio: counts.ratio() }
    }
}
