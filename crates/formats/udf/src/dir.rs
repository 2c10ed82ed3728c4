//! Directories: file identifiers, stored in sequence in a file.

use crate::blocks::verified;
use crate::corruption::{Corruption, Place};
use crate::cs0;
use crate::disk::*;
use crate::entry::{FileEntry, extent_addr};
use crate::maps::{Addr, Reader};
use packfs_core::{ErrorKind, FileType, Name, Result, usize_of};
use packfs_format::{DirCursor, DirEntry, Extent, ExtentFrom, structure, units::*};
use std::ops::ControlFlow;

/// Alignment of identifiers.
const ALIGN: usize = 4;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identifier {
    pub(crate) place: Place,
    pub(crate) end: u64,
    pub(crate) characteristics: u8,
    /// Entry of the file; `None` if deleted.
    pub(crate) addr: Option<Addr>,
    /// Stored form, not converted.
    pub(crate) name: Vec<u8>,
}

impl Identifier {
    pub(crate) fn has(&self, characteristics: u8) -> bool {
        self.characteristics & characteristics != 0
    }

    pub(crate) fn shown(&self) -> Result<Vec<u8>> {
        let (place, name) = (self.place, cs0::name(&self.name));
        let name = name.map_err(|fault| Corruption::Name { place, fault })?;
        Name::new(&name).map_err(|fault| Corruption::Name { place, fault })?;
        Ok(name)
    }

    pub(crate) fn file(&self) -> Result<Addr> {
        let place = self.place;
        Ok(self.addr.ok_or(Corruption::Name { place, fault: "of no file" })?)
    }
}

struct Listing<'a> {
    reader: &'a Reader,
    extents: Vec<Extent>,
    len: u64,
}

impl Listing<'_> {
    /// Fills `buf` at a directory offset; returns its position in the image.
    fn read(&self, position: u64, buf: &mut [u8]) -> Result<u64> {
        let mut from = position;
        let mut rest = buf;
        let mut first = None;
        while !rest.is_empty() {
            let index = self.extents.partition_point(|extent| extent.range().end <= from);
            let found = self.extents.get(index).filter(|extent| extent.range().contains(&from));
            let place = Place::at("directory entry", first.unwrap_or(position));
            let extent = found.ok_or(Corruption::EntryEnd { place })?;
            let len = usize_of(extent.range().end.minus(from)).min(rest.len());
            let (part, behind) = rest.split_at_mut(len);
            match extent.from {
                ExtentFrom::Stored(at) => {
                    let at = at.plus(from.minus(extent.offset));
                    self.reader.blocks.read(Place::at("directory", at), part)?;
                    first = first.or(Some(at));
                }
                _ => part.fill(0),
            }
            (from, rest) = (from.plus(len as u64), behind);
        }
        Ok(first.unwrap_or(position))
    }

    fn identifier(&self, position: u64) -> Result<Identifier> {
        let mut bytes = vec![0; size_of::<FileIdentDesc>()];
        let at = self.read(position, &mut bytes)?;
        let place = Place::at("directory entry", at);
        let head: FileIdentDesc = structure(&bytes, 0).ok_or(Corruption::EntryEnd { place })?;
        let found = head.desc_tag.tag_ident.get();
        if found != FID {
            return Err(Corruption::Ident { place, found, wanted: FID }.into());
        }
        let name_at = bytes.len().plus(head.length_of_imp_use.get().into());
        let name_end = name_at.plus(head.length_file_ident.into());
        let len = name_end.checked_next_multiple_of(ALIGN).unwrap_or(name_end);
        let end = position.plus(len as u64);
        if end > self.len {
            return Err(Corruption::EntryEnd { place }.into());
        }
        bytes.resize(len, 0);
        self.read(position, &mut bytes)?;
        verified(place, &bytes)?;
        Ok(Identifier {
            place,
            end,
            characteristics: head.file_characteristics,
            addr: extent_addr(head.icb),
            name: bytes.within(name_at..name_end).to_vec(),
        })
    }
}

impl Reader {
    /// Calls `visit` for each identifier of a directory from an offset on, including those of the
    /// parent and deleted ones.
    pub(crate) fn each_identifier(
        &self,
        dir: &FileEntry,
        mut position: u64,
        visit: &mut dyn FnMut(Identifier) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let listing = self.listing(dir)?;
        while position < listing.len {
            let identifier = listing.identifier(position)?;
            position = identifier.end;
            if visit(identifier)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn listing(&self, dir: &FileEntry) -> Result<Listing<'_>> {
        let place = dir.place;
        let mut extents = Vec::new();
        let mut stored = 0_u64;
        let (len, max) = (dir.len(), self.blocks.image.len());
        self.each_extent(dir, &mut |_| {}, &mut |extent| {
            stored = stored.plus(extent.len);
            extents.push(extent);
            if stored <= max {
                Ok(ControlFlow::Continue(()))
            } else {
                Err(Corruption::Overlap { place, len }.into())
            }
        })?;
        Ok(Listing { reader: self, extents, len })
    }

    /// A cursor is a directory offset. Returns true if hidden entries were skipped.
    pub(crate) fn each_entry(
        &self,
        dir: &FileEntry,
        from: DirCursor,
        visit: &mut dyn FnMut(DirEntry, DirCursor) -> ControlFlow<()>,
    ) -> Result<bool> {
        let mut is_hiding = false;
        self.each_identifier(dir, from.0, &mut |identifier| {
            is_hiding |= identifier.has(HIDDEN) && !identifier.has(DELETED | PARENT);
            if identifier.has(HIDDEN | DELETED | PARENT) {
                return Ok(ControlFlow::Continue(()));
            }
            let (name, addr) = (identifier.shown()?, identifier.file()?);
            let file_type = self.claimed_type(&identifier, addr)?;
            Ok(visit(DirEntry { name, id: addr.id(), file_type }, DirCursor(identifier.end)))
        })?;
        Ok(is_hiding)
    }

    /// Returns the type in an identifier. Types other than directories are in the file entries; a
    /// damaged one is reported when the file is read.
    fn claimed_type(&self, identifier: &Identifier, addr: Addr) -> Result<FileType> {
        if identifier.has(DIRECTORY) {
            return Ok(FileType::Directory);
        }
        match self.entry(addr).and_then(|entry| entry.file_type()) {
            Err(error) if !matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported) => Err(error),
            found => Ok(found.unwrap_or(FileType::File)),
        }
    }
}
