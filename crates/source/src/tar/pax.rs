//! PAX records: what they say of the next member, or of all that follow.

use super::acl;
use crate::decimal::{number as decimal, time};
use packfs_core::{Timestamp, Xattrs};

/// Most bytes of attributes that global records may give to every member, or a small archive takes forever.
const GLOBAL_XATTRS_LEN_MAX: usize = 64 << 10;

/// What extended headers say of a member; what they do not say is `None`.
#[derive(Clone, Debug, Default)]
pub(super) struct Records {
    pub path: Option<Vec<u8>>,
    pub link: Option<Vec<u8>>,
    pub size: Option<u64>,
    pub uid: Option<u32>,
    pub gid: Option<u32>,
    pub mtime: Option<Timestamp>,
    pub xattrs: Xattrs,
    /// Attributes as libarchive writes them; those of the same name above win.
    pub encoded_xattrs: Xattrs,
    pub sparse: SparseRecords,
}

/// What they say of holes, in one of GNU tar's three ways.
#[derive(Clone, Debug, Default)]
pub(super) struct SparseRecords {
    pub path: Option<Vec<u8>>,
    pub real_len: Option<u64>,
    /// Version 1: the map stands before the data.
    pub in_data: bool,
    /// Versions 0.0 and 0.1: offset and length in turn.
    pub map: Option<Vec<u64>>,
}

impl Records {
    /// Adds the records of one extended header; later ones win.
    ///
    /// Errors say which record is wrong, and how.
    pub(super) fn add(&mut self, mut bytes: &[u8]) -> Result<(), String> {
        while !bytes.is_empty() {
            // Some archives pad with zeros.
            if bytes.iter().all(|&b| b == 0) {
                return Ok(());
            }
            let (record, rest) = split(bytes).ok_or("a record's length is wrong")?;
            bytes = rest;
            let at = record.iter().position(|&b| b == b'=').ok_or("a record has no \"=\"")?;
            let (key, value) = (&record[..at], &record[at + 1..]);
            self.set(key, value).ok_or_else(|| {
                // Names differ between machines, and an image has numbers only.
                let allowed = if key.starts_with(b"SCHILY.acl.") { "; ids must be numbers" } else { "" };
                let (key, value) =
                    (packfs_core::escaped(key), packfs_core::escaped(&value[..value.len().min(80)]));
                format!("record {key}: \"{value}\" is no value for it{allowed}")
            })?;
        }
        Ok(())
    }

    /// Whether these can be said of all members that follow, at little cost for each.
    ///
    /// Errors say what cannot.
    pub(super) fn check_global(&self) -> Result<(), String> {
        let sparse = &self.sparse;
        if self.path.is_some() || self.link.is_some() || self.size.is_some() {
            return Err("global record of a path, linkpath or size, which no two members share".into());
        }
        if sparse.path.is_some() || sparse.real_len.is_some() || sparse.in_data || sparse.map.is_some() {
            return Err("global record of holes, which no two members share".into());
        }
        let lens =
            self.xattrs.iter().chain(&self.encoded_xattrs).map(|(name, value)| name.len() + value.len());
        let len: usize = lens.sum();
        if len > GLOBAL_XATTRS_LEN_MAX {
            return Err(format!(
                "global records of {len} bytes of extended attributes: at most {GLOBAL_XATTRS_LEN_MAX} allowed"
            ));
        }
        Ok(())
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> Option<()> {
        match key {
            b"path" => self.path = Some(without_nul(value)?),
            b"linkpath" => self.link = Some(without_nul(value)?),
            b"size" => self.size = Some(decimal(value)?),
            b"uid" => self.uid = Some(decimal(value)?.try_into().ok()?),
            b"gid" => self.gid = Some(decimal(value)?.try_into().ok()?),
            b"mtime" => self.mtime = Some(time(value)?),
            b"GNU.sparse.name" => self.sparse.path = Some(without_nul(value)?),
            b"GNU.sparse.size" | b"GNU.sparse.realsize" => self.sparse.real_len = Some(decimal(value)?),
            b"GNU.sparse.major" => self.sparse.in_data = decimal(value)? >= 1,
            b"GNU.sparse.numblocks" => self.sparse.map = Some(Vec::new()),
            b"GNU.sparse.offset" | b"GNU.sparse.numbytes" => {
                self.sparse.map.get_or_insert_default().push(decimal(value)?)
            }
            b"GNU.sparse.map" => {
                let numbers = value.split(|&b| b == b',').filter(|number| !number.is_empty()).map(decimal);
                self.sparse.map = Some(numbers.collect::<Option<_>>()?);
            }
            b"SCHILY.acl.access" => {
                let list = acl::encoded(value)?;
                // Owner, group and others alone say what the permissions say; Linux stores no such list either.
                if list.len() > acl::PLAIN_LEN {
                    self.xattrs.insert(b"system.posix_acl_access".to_vec(), list);
                }
            }
            b"SCHILY.acl.default" => {
                self.xattrs.insert(b"system.posix_acl_default".to_vec(), acl::encoded(value)?);
            }
            _ => {
                if let Some(name) = key.strip_prefix(b"SCHILY.xattr.") {
                    // GNU tar writes "=" and "%" in names as "%3D" and "%25".
                    self.xattrs.insert(unescaped(name), value.to_vec());
                } else if let Some(name) = key.strip_prefix(b"LIBARCHIVE.xattr.") {
                    self.encoded_xattrs.insert(percent_decoded(name)?, base64_decoded(value)?);
                }
            }
        }
        Some(())
    }
}

/// Cuts off one record: its decimal length, counted with its own digits and the newline, a space, and the rest.
fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = bytes.iter().take(20).position(|&b| b == b' ')?;
    let len = usize::try_from(decimal(&bytes[..space])?).ok()?;
    let record = bytes.get(space + 1..len)?.strip_suffix(b"\n")?;
    Some((record, &bytes[len..]))
}

fn without_nul(value: &[u8]) -> Option<Vec<u8>> {
    (!value.contains(&0)).then(|| value.to_vec())
}

fn percent_decoded(text: &[u8]) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte == b'%' {
            let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
            decoded.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &rest[2..];
        } else {
            decoded.push(byte);
        }
    }
    Some(decoded)
}

fn unescaped(name: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some((&byte, behind)) = rest.split_first() {
        let (byte, behind) = match rest {
            [b'%', b'3', b'D' | b'd', behind @ ..] => (b'=', behind),
            [b'%', b'2', b'5', behind @ ..] => (b'%', behind),
            _ => (byte, behind),
        };
        plain.push(byte);
        rest = behind;
    }
    plain
}

fn base64_decoded(text: &[u8]) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0);
    for &byte in text.iter().filter(|&&byte| byte != b'=' && byte != b'\n') {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            decoded.push((bits >> count) as u8);
        }
    }
    Some(decoded)
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
        records.add(&bytes).unwrap();
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
    fn says_which_record_is_wrong() {
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
            let fault_found = Records::default().add(bytes).unwrap_err();
            assert!(fault_found.contains(fault), "{bytes:?}: {fault_found}");
        }
    }
}
