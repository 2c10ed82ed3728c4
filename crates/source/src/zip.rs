//! The zip source: entries of the central directory, with Info-ZIP's attributes of Unix.
//!
//! The crate `zip` finds and decodes entries; here they become nodes. Contents are checked and kept
//! in an unnamed file. Encrypted entries are refused, and so are entries that share bytes of the
//! archive, which occur only in zip bombs.

use crate::Loaded;
use crate::archive::contents::{ArchiveContents, Stored};
use crate::archive::entries::TARGET_LEN_MAX;
use crate::archive::input::{BUFFER_LEN, OpenedBytes, Opening, Spool, check_cancelled, nameless_file};
use crate::archive::spooled::pass_parts;
use crate::archive::{Told, spooled::append_data};
use crate::shape::Shape;
use crate::shaper::Shaper;
use packfs_core::{
    Civil, Error, ImagePath, Limits, Meta, NodeKind, Owner, Progress, Result, ResultExt, Stage, Timestamp,
    Xattrs, escaped,
};
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use zip::extra_fields::ExtraField;
use zip::read::ZipFile;
use zip::result::ZipError;
use zip::{System, ZipArchive};

/// Shortest header of an entry.
const LOCAL_HEADER_LEN: usize = 30;
/// Shortest end of an archive.
const END_LEN: usize = 22;
/// Info-ZIP's field of user and group.
const OWNER_FIELD: u16 = 0x7875;
/// Seconds from 1601, where NTFS starts to count, to 1970.
const NTFS_EPOCH: i64 = 11_644_473_600;

type Entry<'a> = ZipFile<'a, BufReader<File>>;

/// Returns true if these bytes start like a zip archive, or are an empty one.
pub(crate) fn looks_like_zip(beginning: &[u8]) -> bool {
    let starts = |magic: &[u8], len: usize| beginning.len() >= len && beginning.starts_with(magic);
    let has_name = beginning.get(26..28).is_some_and(|len| *len != [0, 0]);
    starts(b"PK\x03\x04", LOCAL_HEADER_LEN) && has_name || starts(b"PK\x05\x06", END_LEN)
}

pub(crate) fn load(opening: Opening<'_>, shape: &Shape) -> Result<Loaded> {
    let Opening { name, limits, spool_dir, progress, bytes } = opening;
    progress.begin(Stage::Scan, 0, 0);
    let file = match bytes {
        OpenedBytes::Place(file) => file,
        OpenedBytes::Stream(mut reader, _) => whole(&mut *reader, &name, &spool_dir, progress)?,
    };
    let len = file.metadata().or_io(|| format!("cannot read {name}"))?.len();
    let subject = format!("zip archive {name}");
    let wrong = |error: ZipError| fault(&subject, "its directory", error);
    let mut archive = ZipArchive::new(BufReader::new(file)).map_err(wrong)?;
    if archive.has_overlapping_entries().map_err(wrong)? {
        return Err(Error::corrupt(&subject, "entries share bytes, as in zip bombs"));
    }
    if archive.has_duplicate_names() {
        progress.warn(&format!("{name}: names come more than once; the last entry of each counts"));
    }
    let shaper = Shaper::within(shape, limits, "zip archive")?;
    let (spool, stored) = (Spool::new(&spool_dir)?, Stored::default());
    let mut entries =
        Entries { subject: &subject, limits, len, progress, shaper, spool, stored, told: Told::default() };
    for index in 0..archive.len() {
        let at = archive.by_index_data(index).map_err(wrong)?.name_raw().to_vec();
        let entry = archive.by_index(index);
        let entry = entry.map_err(|error| fault(&subject, &format!("\"{}\"", escaped(&at)), error))?;
        let path = entry_path(&entry);
        entries.add(entry, &path).map_err(|error| error.at(format!("\"{}\"", escaped(&path))))?;
        progress.advance(1, 0, 0);
    }
    entries.told.warn(progress);
    let Entries { shaper, spool, stored, .. } = entries;
    shaper.finish(Arc::new(ArchiveContents { place: None, spool: Some(spool.finish()?), name, stored }))
}

/// The directory of an archive is at its end, so a stream is copied to an unnamed file.
fn whole(reader: &mut dyn Read, name: &str, folder: &Path, progress: &dyn Progress) -> Result<File> {
    let (file, mut len) = (nameless_file(folder)?, 0);
    pass_parts(reader, name, progress, &mut |part| {
        append_data(&file, &mut len, part)?;
        Ok(true)
    })?;
    Ok(file)
}

struct Entries<'a> {
    subject: &'a str,
    limits: Limits,
    len: u64,
    progress: &'a dyn Progress,
    shaper: Shaper<'a>,
    spool: Spool,
    stored: Stored,
    told: Told,
}

impl Entries<'_> {
    fn add(&mut self, entry: Entry<'_>, name: &[u8]) -> Result<()> {
        let wrong = |what: &str| Error::corrupt(self.subject, what);
        let path = ImagePath::parse(name).map_err(|error| wrong(&error.to_string()))?;
        if name != &*raw_name(&entry) {
            let subject = self.subject;
            self.told.add(|| format!("{subject}: \"{path}\" was written with backslashes for slashes"));
        }
        let mode = unix_mode(&entry);
        let owner = owner(&entry).ok_or_else(|| wrong("its owner is no number of 32 bits"))?;
        let meta = Meta { mode: (mode & 0o7777) as u16, owner, mtime: mtime(&entry) };
        let kind = match mode >> 12 {
            0o4 => NodeKind::Directory,
            0o1 => NodeKind::Fifo,
            0o14 => NodeKind::Socket,
            0o12 => self.symlink(entry)?,
            0o10 => self.file(entry)?,
            _ => {
                return Err(Error::unsupported(
                    self.subject,
                    format!("mode {mode:#o}: device without number"),
                ));
            }
        };
        self.shaper.add(&path, kind, meta, Xattrs::new())
    }

    fn symlink(&self, entry: Entry<'_>) -> Result<NodeKind> {
        let mut target = Vec::new();
        let most = TARGET_LEN_MAX as u64 + 1;
        entry.take(most).read_to_end(&mut target).map_err(|error| fault(self.subject, "", error.into()))?;
        if target.is_empty() || target.len() > TARGET_LEN_MAX || target.contains(&0) {
            let fault =
                format!("target of {} bytes: 1 to {TARGET_LEN_MAX} allowed, without NUL", target.len());
            return Err(Error::corrupt(self.subject, fault));
        }
        Ok(NodeKind::Symlink(target.into()))
    }

    /// The crate verifies the checksum.
    fn file(&mut self, mut entry: Entry<'_>) -> Result<NodeKind> {
        let (at, len) = (self.spool.len(), entry.size());
        let mut buffer = vec![0; BUFFER_LEN];
        loop {
            check_cancelled(self.progress)?;
            let got =
                entry.read(&mut buffer).map_err(|error| fault(self.subject, "its data", error.into()))?;
            if got == 0 {
                break;
            }
            self.spool.append(&buffer[..got])?;
            self.limits.check_data(self.subject, self.spool.len(), self.len)?;
        }
        let found = self.spool.len() - at;
        if found != len {
            let fault = format!("{found} bytes of data, its header says {len}");
            return Err(Error::corrupt(self.subject, fault));
        }
        Ok(NodeKind::File { len, content: self.stored.add(at, len) })
    }
}

/// Unix systems store bytes; others code page 437 if the name is not UTF-8.
fn raw_name(entry: &Entry<'_>) -> Vec<u8> {
    match entry.name() {
        Ok(name) if entry.system() != System::Unix => name.as_bytes().to_vec(),
        _ => entry.name_raw().to_vec(),
    }
}

/// Programs for DOS and Windows wrote backslashes, too.
fn entry_path(entry: &Entry<'_>) -> Vec<u8> {
    let mut name = raw_name(entry);
    let separates = matches!(entry.system(), System::Dos | System::WindowsNTFS | System::VFAT);
    if separates && !name.contains(&b'/') {
        name.iter_mut().filter(|byte| **byte == b'\\').for_each(|byte| *byte = b'/');
    }
    name
}

/// Defaults to those of a usual file or directory.
fn unix_mode(entry: &Entry<'_>) -> u32 {
    let stored = match entry.external_attributes() >> 16 {
        0 => entry.unix_mode().unwrap_or(0),
        mode => mode,
    };
    let is_dir = stored >> 12 == 0o4 || entry_path(entry).ends_with(b"/");
    match (is_dir, stored & 0o7777, stored >> 12) {
        (true, 0, _) if stored == 0 => 0o040_755,
        (true, permissions, _) => 0o040_000 | permissions,
        (false, 0, 0) => 0o100_644,
        (false, permissions, 0) => 0o100_000 | permissions,
        _ => stored,
    }
}

/// Root's if none are stored; `None` for numbers beyond 32 bits.
fn owner(entry: &Entry<'_>) -> Option<Owner> {
    let field = entry.extra_data_fields().find_map(|field| match field {
        ExtraField::Custom(field) if field.header_id == OWNER_FIELD => Some(&field.data),
        _ => None,
    });
    let Some([1, rest @ ..]) = field.map(|data| &data[..]) else { return Some(Owner { uid: 0, gid: 0 }) };
    let (uid, rest) = id(rest)?;
    Some(Owner { uid, gid: id(rest)?.0 })
}

/// The number follows its length.
fn id(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (&len, rest) = bytes.split_first()?;
    let (digits, rest) = rest.split_at_checked(len.into())?;
    let sum = |sum: u32, byte: &u8| sum.checked_mul(256)?.checked_add((*byte).into());
    Some((digits.iter().rev().try_fold(0, sum)?, rest))
}

/// UTC if stored for Unix or NTFS; other times have no zone, and are taken as UTC.
fn mtime(entry: &Entry<'_>) -> Timestamp {
    let exact = entry.extra_data_fields().find_map(|field| match field {
        ExtraField::ExtendedTimestamp(times) => {
            times.mod_time().map(|seconds| Timestamp::from_seconds((seconds as i32).into()))
        }
        ExtraField::Ntfs(times) => Some(Timestamp {
            seconds: (times.mtime() / 10_000_000) as i64 - NTFS_EPOCH,
            nanos: (times.mtime() % 10_000_000) as u32 * 100,
        }),
        _ => None,
    });
    let coarse = || {
        let time = entry.last_modified()?;
        let (year, month, day) = (time.year().into(), time.month(), time.day());
        let (hour, minute, second) = (time.hour(), time.minute(), time.second());
        Some(Timestamp::from_seconds(Civil { year, month, day, hour, minute, second }.seconds()))
    };
    exact.or_else(coarse).unwrap_or_default()
}

/// `at` names the part of the archive.
fn fault(subject: &str, at: &str, error: ZipError) -> Error {
    let lead = if at.is_empty() { String::new() } else { format!("{at}: ") };
    match error {
        ZipError::Io(error) if error.raw_os_error().is_some() => {
            Error::io(format!("cannot read {subject}"), error)
        }
        // The crate wraps some errors.
        ZipError::Io(error) if error.get_ref().is_some_and(|inner| inner.is::<ZipError>()) => error
            .downcast()
            .map_or_else(|error| Error::corrupt(subject, error), |error| fault(subject, at, error)),
        ZipError::UnsupportedArchive(ZipError::PASSWORD_REQUIRED) => {
            Error::unsupported(subject, format!("{lead}encrypted")).hint("unpack it with its password first")
        }
        ZipError::UnsupportedArchive(what) => Error::unsupported(subject, format!("{lead}{what}")),
        ZipError::CompressionMethodNotSupported(method) => {
            Error::unsupported(subject, format!("{lead}compression method {method}"))
                .hint("unpack it with 7-Zip or unzip first")
        }
        error => Error::corrupt(subject, format!("{lead}{error}")),
    }
}
