//! Directories: chains of file headers.
//!
//! Invariant: a chain only continues at higher offsets, so every listing ends.

use crate::corruption::Corruption;
use crate::disk::{Header, Kind};
use crate::volume::RomfsVolume;
use packfs_core::{FileType, Name, Result};
use packfs_format::{DirCursor, DirEntry, Directories, InodeId};
use std::ops::ControlFlow;

/// Cursor at the end of a listing: no header starts there, and FUSE treats it as an offset.
const END: u64 = 1;

/// Limit of chained hard links; genromfs writes at most two.
const LINKS_MAX: u32 = 8;

impl RomfsVolume {
    pub(crate) fn dir(&self, id: InodeId) -> Result<Header> {
        let header = self.header(id.0)?;
        match header.kind {
            Kind::Other(FileType::Directory) => Ok(header),
            _ => Err(Corruption::Kind { at: id.0, wanted: "directory" }.into()),
        }
    }

    /// Calls `visit` for each header of the listing that starts at `at`, including `.` and `..`.
    pub(crate) fn each_header(
        &self,
        mut at: u64,
        visit: &mut dyn FnMut(Header) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        while at != 0 {
            let header = self.header(at)?;
            let next = header.next;
            if next != 0 && next <= at {
                return Err(Corruption::Next { at, found: next }.into());
            }
            if visit(header)?.is_break() {
                break;
            }
            at = next;
        }
        Ok(())
    }

    pub(crate) fn resolve(&self, entry: &Header) -> Result<(InodeId, FileType)> {
        let mut at = entry.at;
        let mut kind = entry.kind;
        let mut target = entry.target();
        for _ in 0..LINKS_MAX {
            match kind {
                Kind::Other(file_type) => return Ok((InodeId(at), file_type)),
                Kind::HardLink => {
                    let header = self.header(target)?;
                    (at, kind, target) = (header.at, header.kind, header.target());
                }
            }
        }
        Err(Corruption::LinkTarget { at: entry.at, target: entry.target() }.into())
    }

    /// Returns the inode of a header; `None` for `.` and `..`.
    fn entry_of(&self, dir: InodeId, header: &Header) -> Result<Option<(InodeId, FileType)>> {
        let (id, file_type) = self.resolve(header)?;
        if is_dot(&header.name) {
            self.dot(dir, header, id, file_type)?;
            return Ok(None);
        }
        Name::new(&header.name).map_err(|fault| Corruption::Name { at: header.at, fault })?;
        Ok(Some((id, file_type)))
    }

    /// Checks a `.` or `..` of `dir`, which leads to `id`: a damaged name may hide a file.
    pub(crate) fn dot(&self, dir: InodeId, header: &Header, id: InodeId, file_type: FileType) -> Result<()> {
        let at = header.at;
        if header.name == b"." {
            return if id == dir { Ok(()) } else { Err(Corruption::Dot { at }.into()) };
        }
        match (header.kind, file_type) {
            (Kind::HardLink, FileType::Directory) => Ok(()),
            _ => Err(Corruption::DotDot { at }.into()),
        }
    }
}

impl Directories for RomfsVolume {
    fn lookup(&self, dir: InodeId, name: &[u8]) -> Result<Option<InodeId>> {
        let (mut found, mut damage) = (None, None);
        self.each_header(self.dir(dir)?.target(), &mut |header| {
            damage = damage.or(header.sum_fault());
            let entry = self.entry_of(dir, &header)?.filter(|_| header.name == name);
            found = entry.map(|(id, _)| id);
            if found.is_none() {
                return Ok(ControlFlow::Continue(()));
            }
            damage = header.sum_fault();
            Ok(ControlFlow::Break(()))
        })?;
        // A damaged name may be the requested one.
        damage.map_or(Ok(found), |fault| Err(fault.into()))
    }

    /// A cursor is the offset of the next header. Headers with a wrong checksum are reported at
    /// the end.
    fn read_dir(
        &self,
        dir: InodeId,
        from: DirCursor,
        visit: &mut dyn FnMut(DirEntry, DirCursor) -> ControlFlow<()>,
    ) -> Result<()> {
        let (mut damage, mut is_over) = (None, false);
        let start = match from.0 {
            0 => {
                let header = self.dir(dir)?;
                // Other headers are in the listing of their parents.
                damage = header.sum_fault().filter(|_| dir.0 == self.super_block.root_at);
                header.target()
            }
            END => return Ok(()),
            at => at,
        };
        self.each_header(start, &mut |header| {
            damage = damage.or(header.sum_fault());
            let Some((id, file_type)) = self.entry_of(dir, &header)? else {
                return Ok(ControlFlow::Continue(()));
            };
            let next = DirCursor(if header.next == 0 { END } else { header.next });
            let flow = visit(DirEntry { name: header.name, id, file_type }, next);
            is_over = flow.is_break();
            Ok(flow)
        })?;
        damage.filter(|_| !is_over).map_or(Ok(()), |fault| Err(fault.into()))
    }
}

pub(crate) fn is_dot(name: &[u8]) -> bool {
    matches!(name, b"." | b"..")
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_core::MemoryImage;
    use packfs_format::{Check, Volume};
    use std::sync::Arc;

    const IMAGE: &[u8] = include_bytes!("../../../../testdata/legacy/romfs.romfs");

    fn volume(bytes: Vec<u8>) -> RomfsVolume {
        RomfsVolume::open(Arc::new(MemoryImage::new("romfs", bytes))).unwrap()
    }

    fn headers(volume: &RomfsVolume) -> Vec<Header> {
        let (mut found, first) = (Vec::new(), volume.dir(volume.root()).unwrap().target());
        volume
            .each_header(first, &mut |header| {
                found.push(header);
                Ok(ControlFlow::Continue(()))
            })
            .unwrap();
        found
    }

    fn list(volume: &RomfsVolume) -> Result<usize> {
        let mut count = 0;
        volume.read_dir(volume.root(), DirCursor(0), &mut |_, _| {
            count += 1;
            ControlFlow::Continue(())
        })?;
        Ok(count)
    }

    #[test]
    fn an_entry_whose_name_became_that_of_a_directory_itself_is_refused() {
        let whole = volume(IMAGE.to_vec());
        let entries: Vec<Header> =
            headers(&whole).into_iter().filter(|header| !is_dot(&header.name)).collect();
        assert!(entries.len() > 3);
        assert_eq!(list(&whole).unwrap(), entries.len());
        for header in entries {
            for name in [&b".\0"[..], b"..\0"] {
                let (mut damaged, at) = (IMAGE.to_vec(), header.at as usize + 16);
                damaged[at..at + name.len()].copy_from_slice(name);
                let damaged = volume(damaged);
                let error = list(&damaged).unwrap_err().to_string();
                assert!(error.contains(&format!("{:#x}", header.at)), "{error}");
                let mut errors = Vec::new();
                damaged.check(&mut |finding| errors.push(format!("{finding:?}"))).unwrap();
                assert!(
                    errors.iter().any(|error| error.contains("named ") && error.contains("Error")),
                    "{errors:?}"
                );
            }
        }
    }
}
