//! PAX records: values for the next member, or for all that follow.

use super::attribute;
use crate::decimal::{number as decimal, time};
use packfs_core::{Timestamp, Xattrs, escaped};

/// Most bytes in extended headers of one member: many attributes of 64 KiB each.
pub(super) const RECORDS_LEN_MAX: u64 = 64 << 20;
/// Most bytes of global attributes, which are repeated for every member of an archive.
const GLOBAL_XATTRS_LEN_MAX: usize = 64 << 10;
#[derive(Debug)]
pub(super) enum RecordFault {
    Corrupt(String),
    Unsupported(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    Member,
    Global,
}

/// Values of extended headers for a member; `None` if not given.
#[derive(Clone, Debug, Default)]
pub(super) struct Records {
    pub path: Option<Vec<u8>>,
    pub link: Option<Vec<u8>>,
    pub size: Option<u64>,
    pub uid: Option<u32>,
    pub gid: Option<u32>,
    pub user: Option<Vec<u8>>,
    pub group: Option<Vec<u8>>,
    pub mtime: Option<Timestamp>,
    /// Device numbers that exceed the header's field.
    pub major: Option<u64>,
    pub minor: Option<u64>,
    pub xattrs: Xattrs,
    /// Attributes in libarchive's encoding; those in `xattrs` win.
    pub encoded_xattrs: Xattrs,
    /// A label with its NUL; an attribute of that name wins.
    pub selinux: Option<Vec<u8>>,
    pub access_list: Option<Vec<u8>>,
    pub default_list: Option<Vec<u8>>,
    pub sparse: SparseRecords,
    len: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct SparseRecords {
    pub path: Option<Vec<u8>>,
    pub real_len: Option<u64>,
    /// Version 1: the map precedes the data.
    pub in_data: bool,
    /// Versions 0.0 and 0.1: alternating offsets and lengths.
    pub map: Option<Vec<u64>>,
}

impl Records {
    /// Later values win. Errors name the record and the fault.
    pub(super) fn add(&mut self, bytes: &[u8], scope: Scope) -> Result<(), RecordFault> {
        match scope {
            Scope::Member => {
                self.len += bytes.len() as u64;
                if self.len > RECORDS_LEN_MAX {
                    let fault = format!("{} bytes of records: at most {RECORDS_LEN_MAX} allowed", self.len);
                    return Err(RecordFault::Unsupported(fault));
                }
                self.add_each(bytes, scope)
            }
            Scope::Global => {
                self.add_each(bytes, scope)?;
                self.check_global_len()
            }
        }
    }

    fn add_each(&mut self, mut bytes: &[u8], scope: Scope) -> Result<(), RecordFault> {
        while !bytes.is_empty() {
            // Some archives pad with zeros.
            if bytes.iter().all(|&b| b == 0) {
                return Ok(());
            }
            let corrupt = |what: &str| RecordFault::Corrupt(what.into());
            let (record, rest) = split(bytes).ok_or_else(|| corrupt("a record's length is wrong"))?;
            bytes = rest;
            let at = record.iter().position(|&b| b == b'=');
            let at = at.ok_or_else(|| corrupt("a record has no \"=\""))?;
            let (key, value) = (&record[..at], &record[at + 1..]);
            if value.is_empty() && self.unset(key) {
                continue;
            }
            if let Some(why) = refused(key, value, scope) {
                return Err(RecordFault::Unsupported(format!("record {}: {why}", escaped(key))));
            }
            self.set(key, value).ok_or_else(|| wrong_value(key, value))?;
        }
        Ok(())
    }

    fn check_global_len(&self) -> Result<(), RecordFault> {
        let xattrs = self.xattrs.iter().chain(&self.encoded_xattrs);
        let lists = self.access_list.iter().chain(&self.default_list);
        let names = self.user.iter().chain(&self.group);
        let len: usize = xattrs.map(|(name, value)| name.len() + value.len()).sum();
        let len = len + lists.chain(names).map(Vec::len).sum::<usize>();
        if len > GLOBAL_XATTRS_LEN_MAX {
            return Err(RecordFault::Unsupported(format!(
                "global records of {len} bytes of names and attributes: at most {GLOBAL_XATTRS_LEN_MAX} allowed"
            )));
        }
        Ok(())
    }

    /// An empty value removes an earlier one; for an attribute it is a value.
    fn unset(&mut self, key: &[u8]) -> bool {
        match key {
            b"path" => self.path = None,
            b"linkpath" => self.link = None,
            b"size" => self.size = None,
            b"uid" => self.uid = None,
            b"gid" => self.gid = None,
            b"uname" => self.user = None,
            b"gname" => self.group = None,
            b"mtime" => self.mtime = None,
            b"SCHILY.devmajor" => self.major = None,
            b"SCHILY.devminor" => self.minor = None,
            b"RHT.security.selinux" => self.selinux = None,
            b"SCHILY.acl.access" => self.access_list = None,
            b"SCHILY.acl.default" => self.default_list = None,
            _ => return false,
        }
        true
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> Option<()> {
        match key {
            b"path" => self.path = Some(without_nul(value)?),
            b"linkpath" => self.link = Some(without_nul(value)?),
            b"size" => self.size = Some(decimal(value)?),
            b"uid" => self.uid = Some(decimal(value)?.try_into().ok()?),
            b"gid" => self.gid = Some(decimal(value)?.try_into().ok()?),
            b"uname" => self.user = Some(value.to_vec()),
            b"gname" => self.group = Some(value.to_vec()),
            b"mtime" => self.mtime = Some(time(value)?),
            b"GNU.sparse.name" => self.sparse.path = Some(without_nul(value)?),
            b"GNU.sparse.size" | b"GNU.sparse.realsize" => self.sparse.real_len = Some(decimal(value)?),
            b"GNU.sparse.major" => {
                self.sparse.in_data = match decimal(value)? {
                    0 => false,
                    1 => true,
                    _ => return None,
                }
            }
            // Linux stores the NUL too.
            b"RHT.security.selinux" => self.selinux = Some([&without_nul(value)?[..], b"\0"].concat()),
            b"SCHILY.devmajor" => self.major = Some(decimal(value)?),
            b"SCHILY.devminor" => self.minor = Some(decimal(value)?),
            b"GNU.sparse.numblocks" => self.sparse.map = Some(Vec::new()),
            b"GNU.sparse.offset" | b"GNU.sparse.numbytes" => {
                self.sparse.map.get_or_insert_default().push(decimal(value)?)
            }
            b"GNU.sparse.map" => {
                let numbers = value.split(|&b| b == b',').filter(|number| !number.is_empty()).map(decimal);
                self.sparse.map = Some(numbers.collect::<Option<_>>()?);
            }
            b"SCHILY.acl.access" => self.access_list = Some(value.to_vec()),
            b"SCHILY.acl.default" => self.default_list = Some(value.to_vec()),
            _ => {
                if let Some(name) = key.strip_prefix(b"SCHILY.xattr.") {
                    self.xattrs.insert(attribute::plain_name(name)?, value.to_vec());
                } else if let Some(name) = key.strip_prefix(b"LIBARCHIVE.xattr.") {
                    let name = attribute::encoded_name(name)?;
                    let value = attribute::encoded_value(value)?;
                    self.encoded_xattrs.insert(name, value);
                }
            }
        }
        Some(())
    }
}

/// Returns the reason if a record is not supported and must not be ignored, as unknown ones are.
fn refused(key: &[u8], value: &[u8], scope: Scope) -> Option<String> {
    let why = match key {
        b"SUN.holesdata" => "holes as Solaris writes them",
        b"SCHILY.realsize" => "holes as star writes them",
        // GNU tar writes such a record for a volume label.
        b"GNU.volume.label" => return None,
        _ if key.starts_with(b"GNU.volume.") => "part of a multi-volume archive",
        b"path" | b"linkpath" | b"size" if scope == Scope::Global => "is global, but no two members share it",
        _ if scope == Scope::Global && key.starts_with(b"GNU.sparse.") => {
            "is global, but no two members share it"
        }
        _ => return attribute::too_long(key, value),
    };
    Some(why.into())
}

fn wrong_value(key: &[u8], value: &[u8]) -> RecordFault {
    let shown = escaped(&value[..value.len().min(80)]);
    RecordFault::Corrupt(format!("record {}: \"{shown}\" is not a valid value", escaped(key)))
}

/// Format: decimal length, which includes itself and the newline, a space, and the rest.
fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = bytes.iter().take(20).position(|&b| b == b' ')?;
    let len = usize::try_from(decimal(&bytes[..space])?).ok()?;
    let record = bytes.get(space + 1..len)?.strip_suffix(b"\n")?;
    Some((record, &bytes[len..]))
}

fn without_nul(value: &[u8]) -> Option<Vec<u8>> {
    (!value.contains(&0)).then(|| value.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(text: &[u8]) -> Vec<u8> {
        let mut len = text.len() + 2;
        while len != text.len() + 2 + len.to_string().len() {
            len = text.len() + 2 + len.to_string().len();
        }
        [len.to_string().as_bytes(), b" ", text, b"\n"].concat()
    }

    #[test]
    fn values_may_hold_newlines_and_nuls() {
        let mut records = Records::default();
        let bytes = [
            record(b"SCHILY.xattr.user.a=1\n2\0=3"),
            record(b"path=a\nb"),
            record(b"LIBARCHIVE.xattr.user.%41=AAEC/w"),
        ]
        .concat();
        records.add(&bytes, Scope::Member).unwrap();
        assert_eq!(records.xattrs[&b"user.a"[..]], b"1\n2\0=3");
        assert_eq!(records.path.unwrap(), b"a\nb");
        assert_eq!(records.encoded_xattrs[&b"user.A"[..]], [0, 1, 2, 255]);
    }

    #[test]
    fn times_may_be_negative_and_fractional() {
        for (text, seconds, nanos) in [
            ("0", 0, 0),
            ("1.5", 1, 500_000_000),
            ("-1.5", -2, 500_000_000),
            ("-1", -1, 0),
            ("1.0000000019", 1, 1),
            ("4102444800.123", 4_102_444_800, 123_000_000),
        ] {
            assert_eq!(time(text.as_bytes()), Some(Timestamp { seconds, nanos }), "{text}");
        }
    }

    #[test]
    fn an_empty_value_removes_a_record_but_not_an_attribute() {
        let mut records = Records::default();
        let said = [record(b"uid=5"), record(b"path=a"), record(b"SCHILY.xattr.user.a=b")].concat();
        records.add(&said, Scope::Member).unwrap();
        let taken_back = [record(b"uid="), record(b"path="), record(b"SCHILY.xattr.user.a=")].concat();
        records.add(&taken_back, Scope::Member).unwrap();
        assert_eq!((records.uid, records.path), (None, None));
        assert_eq!(records.xattrs[&b"user.a"[..]], b"");
    }

    #[test]
    fn refuses_records_without_which_contents_would_be_wrong() {
        for (text, scope) in [
            (&b"SUN.holesdata= 0 10 20"[..], Scope::Member),
            (b"SCHILY.realsize=100", Scope::Member),
            (b"GNU.volume.offset=100", Scope::Member),
            (b"size=100", Scope::Global),
            (b"path=a", Scope::Global),
            (b"GNU.sparse.map=0,1", Scope::Global),
        ] {
            let outcome = Records::default().add(&record(text), scope);
            assert!(matches!(outcome, Err(RecordFault::Unsupported(_))), "{text:?}: {outcome:?}");
        }
        for text in [
            &b"GNU.sparse.major=2"[..],
            b"SCHILY.xattr.=x",
            b"SCHILY.xattr.a\0=x",
            b"LIBARCHIVE.xattr.user.%+a=AA",
            b"LIBARCHIVE.xattr.user.%4=AA",
            b"LIBARCHIVE.xattr.user.%=AA",
            b"LIBARCHIVE.xattr.user.a=A",
            b"LIBARCHIVE.xattr.user.a=A!",
        ] {
            let outcome = Records::default().add(&record(text), Scope::Member);
            assert!(matches!(outcome, Err(RecordFault::Corrupt(_))), "{text:?}: {outcome:?}");
        }
    }

    #[test]
    fn attributes_are_limited_one_by_one_and_those_of_all_members_together() {
        let attribute = |name: &str, len| {
            record(&[format!("SCHILY.xattr.{name}=").as_bytes(), &vec![b'x'; len]].concat())
        };
        let mut records = Records::default();
        let comment = [b"comment=".as_slice(), &vec![b'x'; 200_000]].concat();
        records.add(&record(&comment), Scope::Global).expect("what is not kept costs no member anything");
        records.add(&attribute("user.a", 40_000), Scope::Global).unwrap();
        let together = records.clone().add(&attribute("user.b", 40_000), Scope::Global);
        assert!(matches!(together, Err(RecordFault::Unsupported(_))), "{together:?}");
        records.add(&attribute("user.b", 1 << 16), Scope::Member).unwrap();
        // 65,536 bytes in base64.
        let encoded = [&b"LIBARCHIVE.xattr.user.d="[..], &vec![b'A'; 87_382], b"=="].concat();
        records.add(&record(&encoded), Scope::Member).unwrap();
        for (name, len) in [("user.c", (1 << 16) + 1), (&"n".repeat(256), 1)] {
            let outcome = records.add(&attribute(name, len), Scope::Member);
            assert!(matches!(outcome, Err(RecordFault::Unsupported(_))), "{outcome:?}");
        }
    }

    #[test]
    fn a_label_of_the_archive_is_no_part_of_its_members() {
        Records::default().add(&record(b"GNU.volume.label=backup"), Scope::Global).unwrap();
    }

    #[test]
    fn errors_name_the_record() {
        for (bytes, fault) in [
            (&b"99 path=a\n"[..], "length"),
            (b"8 path=a\n", "length"),
            (b"x path=a\n", "length"),
            (b"8 pathx\n", "\"=\""),
            (b"19 uid=99999999999\n", "uid"),
            (b"14 mtime=abc\n\n", "mtime"),
            (b"13 mtime=abc\n", "mtime"),
            (b"11 path=a\0\n", "path"),
        ] {
            let Err(RecordFault::Corrupt(found)) = Records::default().add(bytes, Scope::Member) else {
                panic!("{bytes:?} is corrupt")
            };
            assert!(found.contains(fault), "{bytes:?}: {found}");
        }
    }
}
