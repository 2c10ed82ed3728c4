//! Every file and folder of an image with what it takes, and every owner of the rest.

use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;

use packfs::codec::Algorithm;
use packfs::{Error, ExtentFrom, FileType, InodeKind, Opened, Result, escaped};

use super::claims::{Claims, Settled};

/// A name in an image.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Index of the folder that it is in; its own for the root, which comes first.
    pub parent: u32,
    /// For people; empty for the root.
    pub name: String,
    /// True for a folder.
    pub is_folder: bool,
    /// Length of a file; of a folder, the sum.
    pub len: u64,
    /// Bytes of the image; of a folder, the sum.
    pub stored: u64,
    /// Bytes of `stored` in blocks that other files share.
    pub shared: u64,
    /// Bits of [`Accounts::codec_names`].
    pub codecs: u16,
    /// Everything in it that is no folder, itself included.
    pub files: u64,
}

/// All of them. Those in a folder come after it.
pub struct Accounts {
    /// The root first.
    pub entries: Vec<Entry>,
    /// Bytes outside file data, by owner.
    pub owners: Vec<(&'static str, u64)>,
}

impl Accounts {
    /// Looks at all structures of an image, and at no contents.
    ///
    /// Errors: those of the image, with the path.
    pub fn of(opened: &Opened) -> Result<Self> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut claims = Claims::default();
        let mut seen = HashSet::new();
        // The folders on the way to where the walk is.
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
                // Further names of a file have nothing of their own.
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

    /// With the sums of folders, which have nothing of their own yet.
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

    /// The image's length, as it was counted.
    pub fn len(&self) -> u64 {
        let files = self.entries.first().map_or(0, |root| root.stored);
        files + self.owners.iter().map(|(_, len)| len).sum::<u64>()
    }

    /// Returns the names of the bits of [`Entry::codecs`]: uncompressed, and each codec.
    pub fn codec_names(&self) -> Vec<&'static str> {
        std::iter::once("not compressed").chain(Algorithm::ALL.map(Algorithm::name)).collect()
    }
}

/// Claims what a file refers to; returns its codecs.
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

/// Returns the bytes of each owner that no file claims, the largest first.
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
