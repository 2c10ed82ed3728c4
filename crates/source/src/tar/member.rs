//! Converts headers to entries: applies extended headers, and checks limits.

use super::header::{BLOCK_LEN, Field, Header, old_entries};
use super::ids::Ids;
use super::lists::Lists;
use super::pax::{RECORDS_LEN_MAX, RecordFault, Records, Scope};
use crate::archive::Told;
use crate::archive::contents::Stored;
use crate::archive::input::Input;
use crate::archive::sparse::SparseMap;
use crate::decimal::number as decimal;
use crate::shape::TarReading;
use crate::shaper::Shaper;
use packfs_core::{
    DeviceNumber, Error, ImagePath, Meta, NodeKind, Owner, Result, Timestamp, Xattrs, escaped,
};

/// Most entries of a sparse map.
const SPARSE_ENTRIES_MAX: u64 = 16 << 20;

pub(super) struct Members<'a> {
    shaper: Shaper<'a>,
    stored: Stored,
    lists: Lists,
    unknown: Told,
    skips_unknown: bool,
    ids: Option<Ids>,
    headers_only: bool,
    global: Records,
    next: Option<Records>,
    long_path: Option<Vec<u8>>,
    long_link: Option<Vec<u8>>,
}

struct Member<'a> {
    header: &'a Header<'a>,
    start: u64,
    records: Records,
    path: Vec<u8>,
    link: Vec<u8>,
    size: u64,
}

impl<'a> Members<'a> {
    pub(super) fn new(shaper: Shaper<'a>, reading: TarReading) -> Self {
        let (global, stored, lists) = (Records::default(), Stored::default(), Lists::default());
        let (ids, headers_only) = (reading.names.then(Ids::default), reading.headers_only);
        Members {
            shaper,
            stored,
            lists,
            unknown: Told::default(),
            skips_unknown: reading.skip_unknown,
            ids,
            headers_only,
            global,
            next: None,
            long_path: None,
            long_link: None,
        }
    }

    /// Errors: `Corrupt` if an extended header has no member after it.
    pub(super) fn finish(self, input: &Input<'_>) -> Result<(Shaper<'a>, Stored)> {
        if self.next.is_some() || self.long_path.is_some() || self.long_link.is_some() {
            return Err(fault(input, input.offset(), "the archive ends after an extended header"));
        }
        self.lists.warn(input);
        self.unknown.warn(input.progress());
        Ok((self.shaper, self.stored))
    }

    pub(super) fn take(&mut self, header: &Header<'_>, start: u64, input: &mut Input<'_>) -> Result<()> {
        let size = |members: &Self| members.size(header, start, input);
        match header.typeflag() {
            b'x' | b'X' => {
                let bytes = extended(size(self)?, start, input)?;
                let mut records = self.next.take().unwrap_or_else(|| self.global.clone());
                records.add(&bytes, Scope::Member).map_err(|wrong| wrong_record(input, start, &wrong))?;
                self.next = Some(records);
            }
            b'g' => {
                let bytes = extended(size(self)?, start, input)?;
                self.global.add(&bytes, Scope::Global).map_err(|wrong| wrong_record(input, start, &wrong))?;
            }
            b'L' => self.long_path = Some(long_name(extended(size(self)?, start, input)?)),
            b'K' => self.long_link = Some(long_name(extended(size(self)?, start, input)?)),
            b'V' => {
                let size = size(self)?;
                input.data(size)?;
            }
            b'M' => {
                let fault = format!("multi-volume member in {} at {start:#x}", input.name());
                return Err(
                    Error::unsupported("tar archive", fault).hint("join the volumes with GNU tar first")
                );
            }
            _ => {
                let member = self.member(header, start, input)?;
                let path = member.path.clone();
                self.add(member, input).map_err(|error| error.at(format!("\"{}\"", escaped(&path))))?;
            }
        }
        Ok(())
    }

    fn size(&self, header: &Header<'_>, start: u64, input: &Input<'_>) -> Result<u64> {
        number(header, Field::Size, start, input)
    }

    fn member<'h>(&mut self, header: &'h Header<'h>, start: u64, input: &Input<'_>) -> Result<Member<'h>> {
        let mut records = self.next.take().unwrap_or_else(|| self.global.clone());
        let path = records.sparse.path.take().or(records.path.take()).or(self.long_path.take());
        let link = records.link.take().or(self.long_link.take());
        (self.long_path, self.long_link) = (None, None);
        // An extended header's size overrides the header's, or members could be hidden where other
        // tools see data.
        let size = records.size.map_or_else(|| self.size(header, start, input), Ok)?;
        Ok(Member {
            header,
            start,
            records,
            path: path.unwrap_or_else(|| header.path()),
            link: link.unwrap_or_else(|| header.link().to_vec()),
            size,
        })
    }

    fn add(&mut self, member: Member<'_>, input: &mut Input<'_>) -> Result<()> {
        let start = member.start;
        let path = input.path(start, &member.path)?;
        let mut meta = member.meta(self.ids.as_ref(), input)?;
        let is_dir_by_name = member.path.ends_with(b"/");
        let device = |input: &Input<'_>| -> Result<DeviceNumber> {
            let part = |known: Option<u64>, field| {
                known.map_or_else(|| number(member.header, field, start, input), Ok)
            };
            let (major, minor) = (member.records.major, member.records.minor);
            input.device(start, part(major, Field::Major)?, part(minor, Field::Minor)?)
        };
        let kind = match member.header.typeflag() {
            b'1' => return self.add_link(&member, &path, input),
            b'2' => input.symlink(start, member.link.clone())?,
            b'3' => NodeKind::CharDevice(device(input)?),
            b'4' => NodeKind::BlockDevice(device(input)?),
            b'5' | b'D' => NodeKind::Directory,
            b'6' => NodeKind::Fifo,
            b'S' => self.old_sparse(&member, input)?,
            0 | b'0' if is_dir_by_name && !has_data(member.size, input)? => NodeKind::Directory,
            0 | b'0' | b'7' => self.file(&member, input)?,
            other => {
                self.tell_unknown(other, &path, start, input);
                if self.skips_unknown {
                    return input.data(member.size).map(drop);
                }
                self.file(&member, input)?
            }
        };
        let mut xattrs = member.xattrs();
        if !matches!(kind, NodeKind::Symlink(_)) {
            self.lists.apply(&member.records, &path, &mut meta, &mut xattrs, input);
        }
        match (&kind, member.header.typeflag()) {
            (NodeKind::File { .. }, _) => {}
            // A list of the directory's contents.
            (_, b'D') => input.data(member.size).map(drop)?,
            _ => pass_size_without_data(member.size, input)?,
        }
        self.shaper.add(&path, kind, meta, xattrs)
    }

    /// POSIX defines members of other types as regular files.
    fn tell_unknown(&mut self, typeflag: u8, path: &ImagePath, start: u64, input: &Input<'_>) {
        let end = if self.skips_unknown { "skipped" } else { "packed as a regular file" };
        self.unknown.add(|| {
            let (name, typeflag) = (input.name(), [typeflag]);
            format!("{name}: \"{path}\" at {start:#x} has the unknown type \"{}\": {end}", escaped(&typeflag))
        });
    }

    fn add_link(&mut self, member: &Member<'_>, path: &ImagePath, input: &mut Input<'_>) -> Result<()> {
        // Repeated data equals the target's, which must be in the archive.
        pass_size_without_data(member.size, input)?;
        let target = input.path(member.start, &member.link)?;
        self.shaper.link(path, &target)
    }

    fn file(&mut self, member: &Member<'_>, input: &mut Input<'_>) -> Result<NodeKind> {
        let sparse = &member.records.sparse;
        if self.headers_only {
            let len = sparse.real_len.unwrap_or(member.size);
            let map = SparseMap::new(&[], len, 0).map_err(|what| fault(input, member.start, &what))?;
            return Ok(NodeKind::File { len, content: self.stored.add_sparse(input.offset(), map) });
        }
        let (len, content) = match (&sparse.map, sparse.in_data) {
            (_, true) => return self.sparse_in_data(member, input),
            (Some(numbers), _) => {
                let len = sparse.real_len.unwrap_or(member.size);
                let map = SparseMap::new(numbers, len, member.size)
                    .map_err(|what| fault(input, member.start, &what))?;
                (len, self.stored.add_sparse(input.data(member.size)?, map))
            }
            (None, _) => (member.size, self.stored.add(input.data(member.size)?, member.size)),
        };
        Ok(NodeKind::File { len, content })
    }

    /// Reads GNU's newest sparse format: the map precedes the data in decimal lines, padded to a
    /// block.
    fn sparse_in_data(&mut self, member: &Member<'_>, input: &mut Input<'_>) -> Result<NodeKind> {
        let wrong = |input: &Input<'_>, what: &str| fault(input, member.start, what);
        let mut left = member.size;
        let mut lines: Vec<u64> = Vec::new();
        let mut digits = Vec::new();
        while lines.first().is_none_or(|&count| (lines.len() as u64 - 1) < count.saturating_mul(2)) {
            if lines.first().is_some_and(|&count| count > SPARSE_ENTRIES_MAX) {
                return Err(wrong(input, "its sparse map has too many entries"));
            }
            left = left
                .checked_sub(BLOCK_LEN as u64)
                .ok_or_else(|| wrong(input, "its sparse map is cut off"))?;
            for byte in input.bytes(BLOCK_LEN)? {
                let wanted = lines.first().map_or(1, |&count| count.saturating_mul(2).saturating_add(1));
                match byte {
                    _ if lines.len() as u64 == wanted => break,
                    b'\n' => {
                        let line = decimal(&digits).filter(|_| !digits.is_empty());
                        lines.push(line.ok_or_else(|| wrong(input, "its sparse map has an invalid number"))?);
                        digits.clear();
                    }
                    _ if digits.len() < 20 => digits.push(byte),
                    _ => return Err(wrong(input, "its sparse map has an invalid number")),
                }
            }
        }
        let len =
            member.records.sparse.real_len.ok_or_else(|| wrong(input, "its sparse map has no real size"))?;
        let map = SparseMap::new(&lines[1..], len, left).map_err(|what| wrong(input, &what))?;
        let content = self.stored.add_sparse(input.data(left)?, map);
        Ok(NodeKind::File { len, content })
    }

    /// Reads GNU's oldest sparse format: the map is in the header and in blocks after it.
    fn old_sparse(&mut self, member: &Member<'_>, input: &mut Input<'_>) -> Result<NodeKind> {
        let wrong = |input: &Input<'_>| fault(input, member.start, "its sparse map has an invalid number");
        let (entries, mut more, real_len) = member.header.sparse();
        let mut numbers = Vec::new();
        old_entries(entries, &mut numbers).ok_or_else(|| wrong(input))?;
        while more {
            let block = input.bytes(BLOCK_LEN)?;
            old_entries(&block[..504], &mut numbers).ok_or_else(|| wrong(input))?;
            more = block[504] != 0;
            if numbers.len() as u64 > SPARSE_ENTRIES_MAX {
                return Err(fault(input, member.start, "its sparse map has too many entries"));
            }
        }
        let len = real_len.and_then(|len| u64::try_from(len).ok()).ok_or_else(|| wrong(input))?;
        let map =
            SparseMap::new(&numbers, len, member.size).map_err(|what| fault(input, member.start, &what))?;
        let content = self.stored.add_sparse(input.data(member.size)?, map);
        Ok(NodeKind::File { len, content })
    }
}

impl Member<'_> {
    fn meta(&self, ids: Option<&Ids>, input: &Input<'_>) -> Result<Meta> {
        let named = ids.map_or([None, None], |ids| self.named_owner(ids));
        let id = |named: Option<u32>, known: Option<u32>, field: Field| match named.or(known) {
            Some(id) => Ok(id),
            None => {
                let id = number(self.header, field, self.start, input)?;
                u32::try_from(id).map_err(|_| {
                    fault(input, self.start, &format!("{} {id}: at most {} allowed", field.name(), u32::MAX))
                })
            }
        };
        let owner = Owner {
            uid: id(named[0], self.records.uid, Field::Uid)?,
            gid: id(named[1], self.records.gid, Field::Gid)?,
        };
        let mode = number(self.header, Field::Mode, self.start, input)?;
        let mtime = match self.records.mtime {
            Some(mtime) => mtime,
            None => Timestamp::from_seconds(signed_number(self.header, Field::Mtime, self.start, input)?),
        };
        Ok(Meta { mode: (mode & 0o7777) as u16, owner, mtime })
    }

    fn named_owner(&self, ids: &Ids) -> [Option<u32>; 2] {
        let [user, group] = self.header.owner_names();
        let text = |record: &Option<Vec<u8>>, name: &[u8]| {
            String::from_utf8(record.clone().unwrap_or_else(|| name.to_vec())).ok()
        };
        [
            text(&self.records.user, user).and_then(|name| ids.user_named(&name)),
            text(&self.records.group, group).and_then(|name| ids.group_named(&name)),
        ]
    }

    fn xattrs(&self) -> Xattrs {
        let records = &self.records;
        let mut xattrs = Xattrs::new();
        xattrs.extend(records.selinux.clone().map(|label| (b"security.selinux".to_vec(), label)));
        xattrs.extend(records.encoded_xattrs.clone());
        xattrs.extend(records.xattrs.clone());
        xattrs
    }
}

/// Some archives give a member of a type without data a size but no data; others have data, which
/// GNU tar skips and libarchive does not. A block that looks like a header is one.
fn has_data(size: u64, input: &mut Input<'_>) -> Result<bool> {
    let is_header = |block: [u8; BLOCK_LEN]| block == [0; BLOCK_LEN] || Header::new(&block).is_some();
    Ok(size > 0 && !input.peek_block()?.is_none_or(is_header))
}

fn pass_size_without_data(size: u64, input: &mut Input<'_>) -> Result<()> {
    if has_data(size, input)? {
        input.data(size)?;
    }
    Ok(())
}

fn signed_number(header: &Header<'_>, field: Field, start: u64, input: &Input<'_>) -> Result<i64> {
    header.number(field).ok_or_else(|| fault(input, start, &format!("its {} is no number", field.name())))
}

fn number(header: &Header<'_>, field: Field, start: u64, input: &Input<'_>) -> Result<u64> {
    let found = signed_number(header, field, start, input)?;
    u64::try_from(found)
        .map_err(|_| fault(input, start, &format!("{} {found}: must not be negative", field.name())))
}

fn extended(size: u64, start: u64, input: &mut Input<'_>) -> Result<Vec<u8>> {
    if size > RECORDS_LEN_MAX {
        return Err(fault(
            input,
            start,
            &format!("extended header of {size} bytes: at most {RECORDS_LEN_MAX} allowed"),
        ));
    }
    input.bytes(size as usize)
}

fn wrong_record(input: &Input<'_>, start: u64, wrong: &RecordFault) -> Error {
    match wrong {
        RecordFault::Corrupt(what) => fault(input, start, what),
        RecordFault::Unsupported(what) => Error::unsupported(
            format!("tar archive {}", input.name()),
            format!("member at {start:#x}: {what}"),
        ),
    }
}

fn long_name(mut bytes: Vec<u8>) -> Vec<u8> {
    if let Some(end) = bytes.iter().position(|&b| b == 0) {
        bytes.truncate(end);
    }
    bytes
}

fn fault(input: &Input<'_>, start: u64, what: &str) -> Error {
    input.fault(start, what)
}
