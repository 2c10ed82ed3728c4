//! File entries: located by block, verified, and converted to inodes as Linux does
//! (`udf_read_inode` in `fs/udf/inode.c`).

use crate::blocks::verified;
use crate::corruption::{Corruption, Place};
use crate::disk::*;
use crate::maps::{Addr, Reader};
use packfs_core::{DeviceNumber, Error, FileType, Meta, Owner, Result, usize_of};
use packfs_format::{Inode, InodeId, InodeKind, structure, units::*};

/// Limit of chained indirect entries, as Linux's `UDF_MAX_ICB_NESTING`.
const INDIRECT_MAX: u32 = 1024;
/// Id that Linux shows for a missing owner.
const OVERFLOW_ID: u32 = 65_534;

impl Addr {
    pub(crate) fn id(self) -> InodeId {
        InodeId(u64::from(self.partition) << 32 | u64::from(self.block))
    }

    pub(crate) fn of(id: InodeId) -> Addr {
        let [b0, b1, b2, b3, p0, p1, ..] = id.0.to_le_bytes();
        Addr { partition: u16::from_le_bytes([p0, p1]), block: u32::from_le_bytes([b0, b1, b2, b3]) }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct FileEntry {
    pub(crate) addr: Addr,
    pub(crate) place: Place,
    pub(crate) head: FileEntryHead,
    /// Directory of named streams.
    pub(crate) streams: Option<Addr>,
    pub(crate) attributes: Vec<u8>,
    /// Allocation descriptors, or inline data.
    pub(crate) descriptors: Vec<u8>,
    /// Their offset in the image.
    pub(crate) descriptors_at: u64,
}

impl Reader {
    /// Reads the entry of a file; follows indirect entries.
    pub(crate) fn entry(&self, mut addr: Addr) -> Result<FileEntry> {
        let mut place = Place::at("file entry", 0);
        for _ in 0..INDIRECT_MAX {
            let (at, bytes) = self.tagged("file entry", addr, &[FE, EFE])?;
            place = at;
            let entry = FileEntry::parse(addr, place, &bytes)?;
            match entry.head.icb_tag.strategy_type.get() {
                4 => return Ok(entry),
                4096 => match self.indirect(addr) {
                    Some(next) => addr = next,
                    None => return Ok(entry),
                },
                other => {
                    let what = format!("{place}: strategy {other}; 4 and 4096 are read");
                    return Err(Error::unsupported("udf image", what));
                }
            }
        }
        Err(Corruption::Strategy { place, max: INDIRECT_MAX }.into())
    }

    /// Returns the newer entry that the block after an entry refers to.
    fn indirect(&self, addr: Addr) -> Option<Addr> {
        let next = Addr { block: addr.block.checked_add(1)?, ..addr };
        let (_, bytes) = self.tagged("indirect entry", next, &[IE]).ok()?;
        let entry: IndirectEntry = structure(&bytes, 0)?;
        extent_addr(entry.indirect_icb)
    }

    /// Returns the inode number that Linux shows: the block of the entry.
    pub(crate) fn number(&self, addr: Addr) -> Result<u64> {
        Ok(self.place(addr.partition, addr.block.into(), 1)?.0)
    }

    /// See [`packfs_format::Volume::inode`]; true if the file has named streams.
    pub(crate) fn inode(&self, id: InodeId) -> Result<(Inode, bool)> {
        let entry = self.entry(Addr::of(id))?;
        let (file_type, head) = (entry.file_type()?, &entry.head);
        if head.file_link_count.get() == 0 {
            return Err(Corruption::Links { place: entry.place }.into());
        }
        let device = if matches!(file_type, FileType::BlockDevice | FileType::CharDevice) {
            entry.device()
        } else {
            DeviceNumber::default()
        };
        let kind = match file_type {
            FileType::Directory => InodeKind::Directory,
            FileType::File => InodeKind::File { len: entry.len() },
            FileType::Symlink => InodeKind::Symlink,
            FileType::BlockDevice => InodeKind::BlockDevice(device),
            FileType::CharDevice => InodeKind::CharDevice(device),
            FileType::Fifo => InodeKind::Fifo,
            FileType::Socket => InodeKind::Socket,
        };
        let recorded = head.logical_blocks_recorded.get().checked_mul(u64::from(self.blocks.block_len / 512));
        let inode = Inode {
            kind,
            meta: Meta {
                mode: entry.mode(file_type),
                owner: Owner { uid: owner(head.uid.get()), gid: owner(head.gid.get()) },
                mtime: head.modification_time.time(),
            },
            // The count of a directory lacks `.`, which is not stored.
            links: u32::from(head.file_link_count.get()).plus(u32::from(file_type == FileType::Directory)),
            number: self.number(Addr::of(id))?,
            doubt: recorded.is_none().then_some("it claims more blocks than an image can have"),
            has_xattrs: false,
            sectors: recorded.unwrap_or(u64::MAX),
        };
        Ok((inode, entry.streams.is_some()))
    }
}

/// Owner as Linux shows it: all ones means none.
fn owner(stored: u32) -> u32 {
    if stored == u32::MAX { OVERFLOW_ID } else { stored }
}

/// Returns the block of an extent, unless it is empty.
pub(crate) fn extent_addr(extent: LongAd) -> Option<Addr> {
    (extent.ext_length.get() & EXTENT_LEN_MASK > 0).then(|| extent.ext_location.into())
}

impl FileEntry {
    fn parse(addr: Addr, place: Place, bytes: &[u8]) -> Result<FileEntry> {
        let short = || Corruption::Range { place, len: bytes.len() as u64, end: 0 };
        let tag: Tag = structure(bytes, 0).ok_or_else(short)?;
        let (head, streams, head_len) = match tag.tag_ident.get() {
            EFE => {
                let head: ExtendedFileEntryHead = structure(bytes, 0).ok_or_else(short)?;
                let streams = extent_addr(head.stream_directory_icb);
                (plain(&head), streams, size_of::<ExtendedFileEntryHead>())
            }
            _ => (structure(bytes, 0).ok_or_else(short)?, None, size_of::<FileEntryHead>()),
        };
        let attributes = head.length_extended_attr.get();
        let descriptors = head.length_alloc_descs.get();
        let room = bytes.len().minus(head_len);
        let parts = bytes
            .get(head_len..)
            .and_then(|rest| rest.split_at_checked(usize_of(attributes.into())))
            .and_then(|(own, rest)| Some((own, rest.get(..usize_of(descriptors.into()))?)));
        let (attributes, descriptors) =
            parts.ok_or(Corruption::Descriptors { place, attributes, descriptors, room })?;
        let before = head_len.plus(attributes.len()) as u64;
        Ok(FileEntry {
            addr,
            place,
            streams,
            attributes: attributes.to_vec(),
            descriptors: descriptors.to_vec(),
            descriptors_at: place.at.plus(before),
            head,
        })
    }

    pub(crate) fn len(&self) -> u64 {
        self.head.information_length.get()
    }

    pub(crate) fn file_type(&self) -> Result<FileType> {
        Ok(match self.head.icb_tag.file_type {
            TYPE_DIRECTORY | TYPE_STREAMDIR => FileType::Directory,
            TYPE_UNDEF | TYPE_REGULAR | TYPE_REALTIME | TYPE_VAT20 => FileType::File,
            TYPE_BLOCK => FileType::BlockDevice,
            TYPE_CHAR => FileType::CharDevice,
            TYPE_FIFO => FileType::Fifo,
            TYPE_SOCKET => FileType::Socket,
            TYPE_SYMLINK => FileType::Symlink,
            found => return Err(Corruption::FileType { place: self.place, found }.into()),
        })
    }

    pub(crate) fn has_contents(&self) -> Result<bool> {
        Ok(matches!(self.file_type()?, FileType::File | FileType::Directory | FileType::Symlink))
    }

    pub(crate) fn wanted(self, file_type: FileType) -> Result<FileEntry> {
        if self.file_type()? == file_type {
            Ok(self)
        } else {
            Err(Corruption::Kind { place: self.place, wanted: file_type.word() }.into())
        }
    }

    /// Permissions are three groups of five bits; the lower three of each are those of POSIX.
    fn mode(&self, file_type: FileType) -> u16 {
        if file_type == FileType::Symlink {
            return 0o777;
        }
        let stored = self.head.permissions.get();
        let flags = self.head.icb_tag.flags.get();
        let bits = [(0, 0o007), (2, 0o070), (4, 0o700)].map(|(shift, mask)| stored >> shift & mask);
        let mode = bits.iter().fold(0, |mode, bits| mode | bits);
        let special = [(SETUID, 0o4000), (SETGID, 0o2000), (STICKY, 0o1000)];
        let special =
            special.iter().filter(|(flag, _)| flags & flag != 0).fold(0, |mode, (_, bit)| mode | bit);
        u16::try_from(mode).unwrap_or(0o777) | special
    }

    /// Returns the device number from an attribute; 0 without it.
    fn device(&self) -> DeviceNumber {
        let found = self.attribute(EXTATTR_DEV_SPEC).and_then(|bytes| structure::<DeviceSpec>(bytes, 0));
        found.map_or(DeviceNumber::default(), |found| DeviceNumber {
            major: found.major_device_ident.get(),
            minor: found.minor_device_ident.get(),
        })
    }

    /// Returns an attribute (ECMA-167 4/14.10) with its header.
    fn attribute(&self, wanted: u32) -> Option<&[u8]> {
        let tag = verified(Place::at("extended attributes", self.place.at), &self.attributes).ok()?;
        let mut rest = self.attributes.get(size_of::<ExtendedAttrHeaderDesc>()..)?;
        while tag.tag_ident.get() == EAHD {
            let head: GenericFormat = structure(rest, 0)?;
            let len = usize_of(head.attr_length.get().into());
            if head.attr_type.get() == wanted {
                return rest.get(..len);
            }
            rest = rest.get(len.max(size_of::<GenericFormat>())..)?;
        }
        None
    }
}

/// Returns the fields that both kinds of entries have.
fn plain(head: &ExtendedFileEntryHead) -> FileEntryHead {
    FileEntryHead {
        desc_tag: head.desc_tag,
        icb_tag: head.icb_tag,
        uid: head.uid,
        gid: head.gid,
        permissions: head.permissions,
        file_link_count: head.file_link_count,
        record_format: head.record_format,
        record_display_attr: head.record_display_attr,
        record_length: head.record_length,
        information_length: head.information_length,
        logical_blocks_recorded: head.logical_blocks_recorded,
        access_time: head.access_time,
        modification_time: head.modification_time,
        attr_time: head.attr_time,
        checkpoint: head.checkpoint,
        extended_attr_icb: head.extended_attr_icb,
        imp_ident: head.imp_ident,
        unique_id: head.unique_id,
        length_extended_attr: head.length_extended_attr,
        length_alloc_descs: head.length_alloc_descs,
    }
}
