//! The opened image as a [`Volume`].

use crate::corruption::Corruption;
use crate::disk::{HEADER_LEN, Header, Kind, SuperBlock};
use packfs_core::{Error, FileType, Image, Meta, Result, escaped, usize_of};
use packfs_format::{
    Extent, ExtentFrom, FactValue, Facts, FormatInfo, Health, Inode, InodeId, InodeKind, Space, SpaceOwner,
    Volume, space_owners, units::*,
};
use std::collections::HashSet;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// Longest target of a symbolic link that Linux reads.
const TARGET_LEN_MAX: u64 = 4095;
/// Alignment of an image's length.
const PADDING_UNIT: u64 = 1024;

pub(crate) struct RomfsVolume {
    pub(crate) image: Arc<dyn Image>,
    pub(crate) super_block: SuperBlock,
    /// Sum of the image's start, which must be 0.
    pub(crate) sum: u32,
}

impl RomfsVolume {
    pub(crate) fn open(image: Arc<dyn Image>) -> Result<Self> {
        let super_block = SuperBlock::read(&*image)?;
        let sum = super_block.sum(&*image)?;
        let volume = RomfsVolume { image, super_block, sum };
        volume.dir(volume.root())?;
        Ok(volume)
    }

    pub(crate) fn header(&self, at: u64) -> Result<Header> {
        Header::read(&*self.image, self.super_block.len, at)
    }

    /// Returns claims of superblock, headers, and data reachable through directories.
    fn claims(&self) -> Result<Vec<(Range<u64>, &'static str)>> {
        let mut claims = vec![(0..self.super_block.root_at, "superblock")];
        let (mut seen, mut dirs) = (HashSet::new(), vec![self.super_block.root_at]);
        while let Some(dir) = dirs.pop() {
            let first = self.dir(InodeId(dir))?.target();
            self.each_header(first, &mut |header| {
                if !seen.insert(header.at) {
                    return Ok(ControlFlow::Break(()));
                }
                claims.push((header.at..header.data_at, "inodes"));
                match header.kind {
                    Kind::Other(FileType::Directory) if header.at != dir => dirs.push(header.at),
                    Kind::Other(FileType::File) => {
                        claims.push((header.data(), "file data"));
                    }
                    Kind::Other(FileType::Symlink) => {
                        claims.push((header.data(), "link targets"));
                    }
                    _ => {}
                }
                Ok(ControlFlow::Continue(()))
            })?;
        }
        Ok(claims)
    }
}

impl Volume for RomfsVolume {
    fn format(&self) -> &'static FormatInfo {
        &crate::INFO
    }

    fn root(&self) -> InodeId {
        InodeId(self.super_block.root_at)
    }

    fn inode(&self, id: InodeId) -> Result<Inode> {
        let header = self.header(id.0)?;
        let Kind::Other(file_type) = header.kind else {
            return Err(Corruption::LinkTarget { at: id.0, target: header.target() }.into());
        };
        // Modes are those of Linux's driver (`romfs_modemap`).
        let (kind, mode) = match file_type {
            FileType::Directory => (InodeKind::Directory, 0o644),
            FileType::File => (InodeKind::File { len: header.len }, 0o644),
            FileType::Symlink => (InodeKind::Symlink, 0o777),
            FileType::BlockDevice => (InodeKind::BlockDevice(header.device()), 0o600),
            FileType::CharDevice => (InodeKind::CharDevice(header.device()), 0o600),
            FileType::Socket => (InodeKind::Socket, 0o644),
            FileType::Fifo => (InodeKind::Fifo, 0o644),
        };
        let may_run = header.is_executable && matches!(file_type, FileType::Directory | FileType::File);
        let mode = if may_run { mode | 0o111 } else { mode };
        Ok(Inode {
            kind,
            meta: Meta { mode, ..Meta::default() },
            links: 1,
            number: id.0,
            doubt: None,
            has_xattrs: false,
            sectors: 0,
        })
    }

    fn read_link(&self, id: InodeId) -> Result<Vec<u8>> {
        let (at, header) = (id.0, self.header(id.0)?);
        if header.kind != Kind::Other(FileType::Symlink) {
            return Err(Corruption::Kind { at, wanted: "symbolic link" }.into());
        }
        if !(1..=TARGET_LEN_MAX).contains(&header.len) {
            return Err(Corruption::SymlinkLength { at, found: header.len, max: TARGET_LEN_MAX }.into());
        }
        let mut target = vec![0; usize_of(header.len)];
        self.image.read_exact_at(header.data_at, &mut target)?;
        if target.contains(&0) { Err(Corruption::SymlinkNul { at }.into()) } else { Ok(target) }
    }

    fn extents(
        &self,
        id: InodeId,
        range: Range<u64>,
        visit: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()> {
        let header = self.header(id.0)?;
        if header.kind != Kind::Other(FileType::File) {
            return Err(Corruption::Kind { at: id.0, wanted: "regular file" }.into());
        }
        let range = range.start..range.end.min(header.len);
        if !range.is_empty() {
            let from = ExtentFrom::Stored(header.data_at.plus(range.start));
            let len = range.end.minus(range.start);
            let _ = visit(Extent { offset: range.start, len, from });
        }
        Ok(())
    }

    fn image_len(&self) -> Option<u64> {
        Some(self.super_block.len.next_multiple_of(PADDING_UNIT).min(self.image.len()))
    }

    /// A header and its name take at least 32 bytes.
    fn inode_count_hint(&self) -> u64 {
        self.super_block.len / (2 * HEADER_LEN)
    }

    fn facts(&self) -> Result<Facts> {
        let super_block = &self.super_block;
        let mut facts = Facts::default();
        let text = |text: &str| FactValue::Text(text.to_owned());
        facts.push("format", "Format", text(crate::INFO.name));
        facts.push("codec", "Codec", text("none"));
        facts.push("name", "Name", FactValue::Text(escaped(&super_block.name).to_string()));
        facts.push("image_len", "Image length", FactValue::Bytes(self.image.len()));
        facts.push("bytes_used", "Bytes used", FactValue::Bytes(super_block.len));
        facts.push("checksum", "Checksum", FactValue::Text(format!("{:08x}", super_block.checksum)));
        facts.push("minimum_kernel", "Minimum kernel", text("2.1.25 (romfs)"));
        Ok(facts)
    }

    fn health(&self) -> Option<&dyn Health> {
        Some(self)
    }
}

impl Space for RomfsVolume {
    fn space(&self) -> Result<Vec<SpaceOwner>> {
        let mut claims = self.claims()?;
        claims.sort_by_key(|(range, _)| range.start);
        claims.push((self.super_block.len..self.image_len().unwrap_or(0), "padding"));
        Ok(space_owners(claims, self.image.len()))
    }
}

impl Health for RomfsVolume {
    /// Linux refuses such an image.
    fn fault(&self) -> Option<Error> {
        let error = Error::from(Corruption::Sum { found: self.sum });
        (self.sum != 0).then(|| error.hint("--ignore-checksum reads it anyway"))
    }
}
