//! Every file and folder of an image with its space, and every other owner of bytes.

use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;

use packfs::codec::Algorithm;
use packfs::{Error, ExtentFrom, FileType, InodeKind, Opened, Result, escaped};

use super::claims::{Claims, Settled};

/// File or folder of an image.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Index of its folder; the root, which comes first, has its own.
    pub parent: u32,
    /// Escaped name; empty for the root.
    pub name: String,
    /// True for a folder.
    pub is_folder: bool,
    /// Length of a file; sum for a folder.
    pub len: u64,
    /// Bytes in the image; sum for a folder.
    pub stored: u64,
    /// Bytes of `stored` in blocks that other files share.
    pub shared: u64,
    /// Bits of [`Accounts::codec_names`].
    pub codecs: u16,
    /// Number of nodes other than folders, including itself.
    pub files: u64,
}

/// Space of all entries. Entries of a folder follow it.
pub struct Accounts {
    /// Entries, the root first.
    pub entries: Vec<Entry>,
    /// Bytes outside file data, by owner.
    pub owners: Vec<(&'static str, u64)>,
}

impl Accounts {
    /// Measures an image by its structures, without reading contents.
    ///
    /// Errors: those of the image, with the path.
    pub fn of(opened: &Opened) -> Result<Self> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut claims = Claims::default();
        let mut seen = HashSet::new();
        // Folders above the current entry.
        let mut folders: Vec<u32> = Vec::new();
        for walked in opened.walk() {
            let walked = walked?;
            let index = u32::try_from(entries.len())
                .map_err(|_| Error::failed("the image holds more than 2^32 names, too many for a map"))?;
            folders.truncate(walked.path.names().count());
            let name =
                walked.path.file_name().map_or_else(String::new, |name| escaped(name.as_bytes()).to_string());
            let is_folder = walked.inode.kind.file_type() == FileType::Directory;
            let parent = folders.last().copied().unwrap_or(index);
            let mut entry = Entry {
                parent,
                name,
                is_folder,
                len: 0,
                stored: 0,
                shared: 0,
                codecs: 0,
                files: u64::from(!is_folder),
            };
            match walked.inode.kind {
                // Further names of a file take no space.
                InodeKind::File { len } if walked.inode.links < 2 || seen.insert(walked.id) => {
                    entry.len = len;
                    entry.codecs = claim(opened, &walked, index, len, &mut claims)
                        .map_err(|error| error.at(format_args!("{:?}", walked.path)))?;
                }
                _ => {}
            }
            if is_folder {
                folders.push(index);
            }
            entries.push(entry);
        }
        let settled = claims.settle(opened.image().len(), entries.len());
        let owners = owners(opened, &settled)?;
        for (entry, (stored, shared)) in entries.iter_mut().zip(settled.stored.iter().zip(&settled.shared)) {
            (entry.stored, entry.shared) = (*stored, *shared);
        }
        Ok(Self::summed(entries, owners))
    }

    /// Adds up the sums of folders.
    pub fn summed(mut entries: Vec<Entry>, owners: Vec<(&'static str, u64)>) -> Self {
        for index in (1..entries.len()).rev() {
            let Entry { parent, len, stored, shared, codecs, files, .. } = entries[index];
            let folder = &mut entries[parent as usize];
            folder.len = folder.len.saturating_add(len);
            folder.stored += stored;
            folder.shared += shared;
            folder.codecs |= codecs;
            folder.files += files;
        }
        Self { entries, owners }
    }

    /// Returns the image's length, as the sum of all parts.
    pub fn len(&self) -> u64 {
        let files = self.entries.first().map_or(0, |root| root.stored);
        files + self.owners.iter().map(|(_, len)| len).sum::<u64>()
    }

    /// Returns the names of the bits of [`Entry::codecs`]: uncompressed, and each codec.
    pub fn codec_names(&self) -> Vec<&'static str> {
        std::iter::once("not compressed").chain(Algorithm::ALL.map(Algorithm::name)).collect()
    }
}

/// Returns the file's codecs.
fn claim(opened: &Opened, walked: &packfs::Walked, file: u32, len: u64, claims: &mut Claims) -> Result<u16> {
    let mut codecs = 0;
    let mut claimed = Ok(());
    opened.volume().extents(walked.id, 0..len, &mut |extent| {
        let (range, codec) = match extent.from {
            ExtentFrom::Hole => return ControlFlow::Continue(()),
            ExtentFrom::Stored(at) => (at..at.saturating_add(extent.len), 0),
            ExtentFrom::Block { block, .. } => {
                let codec =
                    block.algorithm.and_then(|it| Algorithm::ALL.iter().position(|known| *known == it));
                let range = block.offset..block.offset.saturating_add(u64::from(block.stored_len));
                (range, codec.map_or(0, |index| index + 1))
            }
        };
        codecs |= 1 << codec;
        claimed = claims.add(range, file, extent.len);
        if claimed.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    claimed.map(|()| codecs)
}

/// Excludes claimed bytes; the largest owner comes first.
fn owners(opened: &Opened, settled: &Settled) -> Result<Vec<(&'static str, u64)>> {
    let mut left: BTreeMap<&'static str, u64> = BTreeMap::new();
    let mut next = 0;
    for owner in opened.volume().space()? {
        let range = owner.offset..owner.offset.saturating_add(owner.len);
        let rest = owner.len - settled.within(&range, &mut next);
        if rest > 0 {
            *left.entry(owner.owner).or_default() += rest;
        }
    }
    let mut owners: Vec<_> = left.into_iter().collect();
    owners.sort_by_key(|(_, len)| std::cmp::Reverse(*len));
    Ok(owners)
}
