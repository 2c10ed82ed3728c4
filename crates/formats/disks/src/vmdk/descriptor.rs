//! The descriptor: text lines about the disk, such as its files. It is embedded in the only file,
//! or a separate file.

use super::corruption::Corruption;
use super::disk::Header;
use super::sector;
use crate::unsupported;
use packfs_core::{Error, Image, Result, escaped, len_of, range_at, usize_of};
use std::ops::Range;

/// Longest descriptor: VMware writes 20 sectors.
const LEN_MAX: u64 = 64 << 10;
/// Types of disks in one file.
const KINDS: [&str; 2] = ["monolithicSparse", "streamOptimized"];

/// Relevant lines of an image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Descriptor {
    range: Range<u64>,
    kind: Option<String>,
    parent: Option<String>,
    pub(super) extents: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) sectors: u64,
    /// `FLAT`, `SPARSE`, and others.
    pub(super) kind: String,
    /// Name of the file; empty for zeros.
    pub(super) file: String,
    /// First sector of a flat file.
    pub(super) first: u64,
}

impl Part {
    /// Parses a line; `None` for any other.
    fn parse(line: &str) -> Option<Part> {
        let (access, rest) = line.split_once(' ')?;
        if !["RW", "RDONLY", "NOACCESS"].contains(&access) {
            return None;
        }
        let (sectors, rest) = rest.trim_start().split_once(' ')?;
        let (kind, rest) = rest.trim_start().split_once(' ').unwrap_or((rest.trim(), ""));
        let mut quoted = rest.split('"');
        Some(Part {
            sectors: sectors.parse().ok()?,
            kind: kind.into(),
            file: quoted.nth(1).unwrap_or("").into(),
            first: match quoted.next().unwrap_or("").trim() {
                "" => 0,
                first => first.parse().ok()?,
            },
        })
    }
}

impl Descriptor {
    /// Reads the descriptor embedded in an image, which may be empty.
    ///
    /// Errors: `Corrupt` if it exceeds the file, `Io`.
    pub(super) fn read(image: &dyn Image, header: &Header) -> Result<Descriptor> {
        let range = range_at(sector(header.descriptor_offset.get()), sector(header.descriptor_size.get()));
        let at = range.start;
        let len = len_of(&range);
        let limit = image.len();
        if at == 0 || len == 0 {
            return Ok(Descriptor::default());
        }
        if len > LEN_MAX || range.end > limit {
            return Err(Corruption::DescriptorEnd { at, len, limit }.into());
        }
        let mut bytes = vec![0; usize_of(len)];
        image.read_exact_at(at, &mut bytes)?;
        Ok(Descriptor::parse(&bytes, range))
    }

    /// Reads a separate descriptor; longer ones are truncated.
    ///
    /// Errors: `Io`.
    pub(super) fn read_file(image: &dyn Image) -> Result<Descriptor> {
        let mut bytes = vec![0; usize_of(image.len().min(LEN_MAX))];
        image.read_exact_at(0, &mut bytes)?;
        Ok(Descriptor::parse(&bytes, 0..image.len()))
    }

    fn parse(bytes: &[u8], range: Range<u64>) -> Descriptor {
        let mut descriptor = Descriptor { range, ..Descriptor::default() };
        let text = packfs_format::units::until_nul(bytes);
        for line in text.split(|byte| *byte == b'\n') {
            let line = escaped(line.trim_ascii()).to_string();
            match line.split_once('=').map(|(name, value)| (name.trim(), value.trim().trim_matches('"'))) {
                Some(("createType", value)) => descriptor.kind = Some(value.into()),
                Some(("parentCID", value)) => descriptor.parent = Some(value.into()),
                _ => descriptor.extents.extend(Part::parse(&line)),
            }
        }
        descriptor
    }

    pub(super) fn range(&self) -> Range<u64> {
        self.range.clone()
    }

    /// Type of disk, as VMware names it.
    pub(super) fn kind(&self) -> Option<&str> {
        self.kind.as_deref()
    }

    /// Errors: disks that consist of several files.
    pub(super) fn refuse_others(&self) -> Result<()> {
        self.refuse_difference()?;
        let what = match &self.kind {
            Some(kind) if !KINDS.contains(&&**kind) => {
                format!("a disk of the kind {kind}, {} are supported", KINDS.join(" and "))
            }
            None => {
                return Err(Error::unsupported(
                    "vmdk image",
                    "a part of a disk, whose descriptor is in another file",
                )
                .hint("open the descriptor, NAME.vmdk; --device FILE adds each file that it names"));
            }
            _ if self.extents.len() > 1 => format!("a disk of {} files", self.extents.len()),
            _ => return Ok(()),
        };
        Err(unsupported("vmdk image", what))
    }

    /// Errors: a differencing disk.
    pub(super) fn refuse_difference(&self) -> Result<()> {
        match &self.parent {
            Some(parent) if !parent.eq_ignore_ascii_case("ffffffff") => {
                Err(unsupported("vmdk image", format!("the difference to another disk ({parent})")))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_tell_what_the_disk_consists_of() {
        let text = "# Disk DescriptorFile\nversion=1\nCID=12\nparentCID=ffffffff\ncreateType=\"monolithicSparse\"\r\n\n\
            RW 2048 SPARSE \"a.vmdk\"\n#DDB\nddb.adapterType = \"ide\"\n\0\0";
        let one = Descriptor::parse(text.as_bytes(), 512..1024);
        assert_eq!((one.kind(), one.extents.len()), (Some("monolithicSparse"), 1));
        one.refuse_others().unwrap();
        let spaced = text.replace("createType=", "createType = ");
        assert_eq!(Descriptor::parse(spaced.as_bytes(), 512..1024).kind(), Some("monolithicSparse"));
        for (from, to, what) in [
            ("monolithicSparse", "vmfs", "a disk of the kind vmfs, monolithicSparse and streamOptimized"),
            ("ffffffff", "12345678", "the difference to another disk (12345678)"),
            ("RW 2048", "RW 1 SPARSE \"b\"\nRW 2048", "a disk of 2 files"),
        ] {
            let other = Descriptor::parse(text.replace(from, to).as_bytes(), 512..1024);
            let error = other.refuse_others().unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        }
        assert!(Descriptor::default().refuse_others().is_err());
    }
}
