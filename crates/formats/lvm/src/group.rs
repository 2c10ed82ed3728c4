//! A volume group: its volumes, and where their extents lie.

use crate::corruption::Corruption;
use crate::disk::SECTOR_LEN;
use crate::text::{Section, Value};
use packfs_core::Name;
use std::collections::{BTreeMap, HashSet};

/// Longest extents, in sectors: 16 GiB.
const EXTENT_MAX: u64 = 32 << 20;

/// A stretch of a linear volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Its start in the volume, in bytes.
    pub(crate) start: u64,
    /// Its length in bytes.
    pub(crate) len: u64,
    pub(crate) kind: Kind,
}

/// Storage of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// On a physical volume, by its name in the text, from this byte on.
    Linear { physical: String, at: u64 },
    /// In another way, which is not read.
    Other(String),
}

/// A logical volume that users see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Logical {
    pub(crate) name: String,
    pub(crate) len: u64,
    pub(crate) segments: Vec<Segment>,
}

/// A group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) sequence: u64,
    pub(crate) extent_len: u64,
    /// Number of each physical volume, by its name in the text.
    pub(crate) physicals: BTreeMap<String, String>,
    pub(crate) logicals: Vec<Logical>,
}

impl Group {
    /// Reads the text of a group.
    ///
    /// Errors: `Corrupt` for a text without what is needed, or with figures that cannot be.
    pub(crate) fn parse(text: &[u8]) -> Result<Group, Corruption> {
        let text = Section::parse(text)?;
        let group = text.0.iter().find_map(|(name, value)| match value {
            Value::Section(section) => Some((name, section)),
            _ => None,
        });
        let (name, section) = group.ok_or(Corruption::Missing { what: "group" })?;
        let found = section.number("extent_size")?;
        if !(1..=EXTENT_MAX).contains(&found) {
            return Err(Corruption::Figure { what: "extent_size", found });
        }
        let extent_len = found.saturating_mul(SECTOR_LEN);
        let (mut physicals, mut starts) = (BTreeMap::new(), BTreeMap::new());
        for (name, physical) in section.sections("physical_volumes") {
            physicals.insert(name.to_owned(), physical.text("id")?.replace('-', ""));
            starts.insert(name.to_owned(), physical.number("pe_start")?.saturating_mul(SECTOR_LEN));
        }
        let (mut logicals, mut names): (Vec<Logical>, HashSet<&str>) = (Vec::new(), HashSet::new());
        for (name, logical) in section.sections("logical_volumes") {
            let status = logical.list("status")?;
            if !status.contains(&Value::Text("VISIBLE".into())) {
                continue;
            }
            if Name::new(name.as_bytes()).is_err() || !names.insert(name) {
                return Err(Corruption::Name);
            }
            logicals.push(volume(name, logical, extent_len, &starts)?);
        }
        let sequence = section.number("seqno")?;
        Ok(Group { name: name.clone(), sequence, extent_len, physicals, logicals })
    }
}

fn volume(
    name: &str,
    section: &Section,
    extent_len: u64,
    starts: &BTreeMap<String, u64>,
) -> Result<Logical, Corruption> {
    let mut segments = Vec::new();
    let own = section.0.iter().filter(|(name, _)| name.starts_with("segment") && name != "segment_count");
    for (_, value) in own {
        let Value::Section(segment) = value else { continue };
        let bytes = |what| -> Result<u64, Corruption> {
            let found = segment.number(what)?;
            found.checked_mul(extent_len).ok_or(Corruption::Figure { what, found })
        };
        let (start, len) = (bytes("start_extent")?, bytes("extent_count")?);
        segments.push(Segment { start, len, kind: kind(segment, extent_len, starts)? });
    }
    segments.sort_by_key(|segment| segment.start);
    // Segments follow each other, so that every byte of the volume has one place.
    let mut end = 0_u64;
    for segment in &segments {
        if segment.start != end || segment.len == 0 {
            return Err(Corruption::Figure {
                what: "start_extent",
                found: segment.start.checked_div(extent_len).unwrap_or(segment.start),
            });
        }
        end = end.saturating_add(segment.len);
    }
    if end > i64::MAX as u64 {
        return Err(Corruption::Figure { what: "extent_count", found: end });
    }
    Ok(Logical { name: name.to_owned(), len: end, segments })
}

fn kind(segment: &Section, extent_len: u64, starts: &BTreeMap<String, u64>) -> Result<Kind, Corruption> {
    let kind = segment.text("type")?;
    if kind != "striped" && kind != "linear" {
        return Ok(Kind::Other(kind.to_owned()));
    }
    match segment.list("stripes")? {
        [Value::Text(physical), Value::Number(extent)] => {
            let start =
                starts.get(physical).ok_or(Corruption::Missing { what: "physical volume of a stripe" })?;
            let at = extent.saturating_mul(extent_len).saturating_add(*start);
            Ok(Kind::Linear { physical: physical.clone(), at })
        }
        stripes => Ok(Kind::Other(format!("striped over {} volumes", stripes.len() / 2))),
    }
}
