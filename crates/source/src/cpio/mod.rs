//! The cpio source: newc, crc, odc, and the old binary form, several archives after each other,
//! each compressed or not, as Linux reads an initramfs.
//!
//! Names of one file need not be adjacent, and one of them has the data. They are matched by device
//! and inode within one archive.

mod header;

pub(crate) use header::looks_like_cpio;

use crate::Loaded;
use crate::archive::contents::Stored;
use crate::archive::entries::TARGET_LEN_MAX;
use crate::archive::input::{Input, Opening};
use crate::shape::Shape;
use crate::shaper::Shaper;
use header::{Dialect, Header, NAME_LEN_MAX};
use packfs_core::{
    Error, ImagePath, Meta, NodeKind, Owner, Progress, Result, Stage, Timestamp, Xattrs, escaped,
};
use std::collections::HashMap;
use std::sync::Arc;

/// Name of the member that ends an archive.
const TRAILER: &[u8] = b"TRAILER!!!";
/// Bytes that determine a dialect.
const MAGIC_LEN: usize = 6;

pub(crate) fn load(opening: Opening<'_>, shape: &Shape) -> Result<Loaded> {
    let (limits, progress) = (opening.limits, opening.progress);
    progress.begin(Stage::Scan, 0, 0);
    let mut input = Input::new(opening, "cpio archive", 1)?;
    let shaper = Shaper::within(shape, limits, "cpio archive")?;
    let mut members = Members { shaper, stored: Stored::default(), groups: HashMap::new() };
    while input.next_part(members.stored.count())? {
        let at = input.offset();
        if Dialect::of(input.peek(MAGIC_LEN)?).is_none() {
            input.warn(&format!("{}: ignored data at {at:#x}, after the archive", input.name()));
            break;
        }
        members.take_archive(&mut input, progress)?;
    }
    let Members { shaper, stored, .. } = members;
    shaper.finish(Arc::new(input.finish(stored)?))
}

struct Members<'a> {
    shaper: Shaper<'a>,
    stored: Stored,
    /// Files with several names, by their inodes and types.
    groups: HashMap<((u64, u64), u32), Group>,
}

struct Group {
    first: ImagePath,
    others: Vec<ImagePath>,
    len: u64,
}

impl Members<'_> {
    fn take_archive(&mut self, input: &mut Input<'_>, progress: &dyn Progress) -> Result<()> {
        self.groups.clear();
        loop {
            if progress.cancelled() {
                return Err(Error::cancelled());
            }
            let start = input.offset();
            let magic = input.peek(MAGIC_LEN)?;
            if magic.is_empty() {
                return Err(input.corrupt("has no trailer").hint("the archive is cut off"));
            }
            let Some(dialect) = Dialect::of(magic) else {
                return Err(input.fault(start, "no header"));
            };
            let (header, name) = read_header(dialect, start, input)?;
            if name == TRAILER && header.len == 0 {
                return Ok(());
            }
            self.add(&header, &name, start, input)
                .map_err(|error| error.at(format!("\"{}\"", escaped(&name))))?;
            progress.advance(1, 0, 0);
        }
    }

    fn add(&mut self, header: &Header, name: &[u8], start: u64, input: &mut Input<'_>) -> Result<()> {
        let path = input.path(start, name)?;
        let owner = Owner { uid: header.uid, gid: header.gid };
        let mtime = Timestamp::from_seconds(header.mtime.into());
        let meta = Meta { mode: (header.mode & 0o7777) as u16, owner, mtime };
        let kind = self.kind(header, start, input)?;
        if header.links > 1 && !matches!(kind, NodeKind::Directory) {
            return self.add_to_group(header, path, kind, meta);
        }
        self.shaper.add(&path, kind, meta, Xattrs::new())
    }

    fn kind(&mut self, header: &Header, start: u64, input: &mut Input<'_>) -> Result<NodeKind> {
        let device = |input: &Input<'_>| input.device(start, header.device.0, header.device.1);
        let kind = match header.mode >> 12 {
            0o10 => return self.file(header, start, input),
            0o12 => return symlink(header, start, input),
            0o4 => NodeKind::Directory,
            0o2 => NodeKind::CharDevice(device(input)?),
            0o6 => NodeKind::BlockDevice(device(input)?),
            0o1 => NodeKind::Fifo,
            0o14 => NodeKind::Socket,
            _ => return Err(input.fault(start, &format!("mode {:#o}: unknown type", header.mode))),
        };
        input.data(header.len)?;
        Ok(kind)
    }

    fn file(&mut self, header: &Header, start: u64, input: &mut Input<'_>) -> Result<NodeKind> {
        let len = header.len;
        let at = match header.sum {
            None => input.data(len)?,
            Some(stored) => {
                let (at, found) = input.summed_data(len)?;
                if found != stored && len > 0 {
                    let fault = format!("its data adds up to {found:#x}, its header says {stored:#x}");
                    return Err(input.fault(start, &fault));
                }
                at
            }
        };
        Ok(NodeKind::File { len, content: self.stored.add(at, len) })
    }

    /// A name with data of another length belongs to another file: writers truncate long inode
    /// numbers.
    fn add_to_group(&mut self, header: &Header, path: ImagePath, kind: NodeKind, meta: Meta) -> Result<()> {
        let key = (header.inode, header.mode >> 12);
        let known = self.groups.get_mut(&key);
        let Some(group) = known.filter(|group| [0, group.len].contains(&header.len) || group.len == 0) else {
            self.shaper.add(&path, kind, meta, Xattrs::new())?;
            self.groups.insert(key, Group { first: path, others: Vec::new(), len: header.len });
            return Ok(());
        };
        if group.len == 0 && header.len > 0 {
            // The data came with this name; earlier names were added as an empty file.
            self.shaper.add(&group.first, kind, meta, Xattrs::new())?;
            group.others.drain(..).try_for_each(|other| self.shaper.link(&other, &group.first))?;
            group.len = header.len;
        }
        self.shaper.link(&path, &group.first)?;
        if group.len == 0 {
            group.others.push(path);
        }
        Ok(())
    }
}

/// The name is padded together with the header.
fn read_header(dialect: Dialect, start: u64, input: &mut Input<'_>) -> Result<(Header, Vec<u8>)> {
    input.align = 1;
    let header_len = dialect.header_len();
    let header = Header::parse(&input.bytes(header_len)?)
        .ok_or_else(|| input.fault(start, "its header has an invalid number"))?;
    if !(1..=NAME_LEN_MAX).contains(&header.name_len) {
        let fault =
            format!("name of {} bytes: 1 to {NAME_LEN_MAX} allowed, its NUL included", header.name_len);
        return Err(input.fault(start, &fault));
    }
    let end = (header_len + header.name_len as usize).next_multiple_of(dialect.align() as usize);
    let mut name = input.bytes(end - header_len)?;
    name.truncate(header.name_len as usize);
    if name.pop() != Some(0) {
        return Err(input.fault(start, "its name does not end with NUL"));
    }
    name.truncate(name.iter().position(|&byte| byte == 0).unwrap_or(name.len()));
    input.align = dialect.align();
    Ok((header, name))
}

/// The target may end with NUL.
fn symlink(header: &Header, start: u64, input: &mut Input<'_>) -> Result<NodeKind> {
    if header.len > TARGET_LEN_MAX as u64 {
        let fault = format!("target of {} bytes: at most {TARGET_LEN_MAX} allowed", header.len);
        return Err(input.fault(start, &fault));
    }
    let mut target = input.bytes(header.len as usize)?;
    target.truncate(target.iter().position(|&byte| byte == 0).unwrap_or(target.len()));
    input.symlink(start, target)
}
