//! A volume group: its volumes, and the positions of their extents.

use crate::corruption::Corruption;
use crate::disk::SECTOR_LEN;
use crate::text::{Section, Value};
use packfs_core::Name;
use packfs_format::units::*;
use std::collections::{HashMap, HashSet};

/// Longest extent, in sectors: 16 GiB.
const EXTENT_MAX: u64 = 32 << 20;
const VOLUMES_MAX: usize = 16 << 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Start in the volume, in bytes.
    pub(crate) start: u64,
    pub(crate) len: u64,
    pub(crate) kind: Kind,
}

impl Segment {
    pub(crate) fn end(&self) -> u64 {
        end_of(self.start, self.len)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Index of a physical volume, and offset on it.
    Linear { physical: usize, at: u64 },
    /// Another type, which is not supported.
    Other(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Logical {
    pub(crate) name: String,
    pub(crate) len: u64,
    /// In order of their starts, without gaps, up to a fault.
    pub(crate) segments: Vec<Segment>,
    /// The first invalid part of its text.
    pub(crate) fault: Option<Corruption>,
}

impl Logical {
    /// Type, as LVM2 names it.
    pub(crate) fn kind(&self) -> &str {
        match self.segments.first().map(|segment| &segment.kind) {
            Some(Kind::Other(kind)) => kind,
            _ => "linear",
        }
    }
}

/// A physical volume in the text of the group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) uuid: String,
    /// Offset of its first extent.
    start: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) name: String,
    /// UUID; empty if it is missing.
    pub(crate) id: String,
    pub(crate) sequence: u64,
    pub(crate) extent_len: u64,
    pub(crate) members: Vec<Member>,
    pub(crate) logicals: Vec<Logical>,
}

impl Group {
    /// Parses the text of a group.
    ///
    /// Errors: `Corrupt` for missing entries, and for values out of range. A fault of one volume is
    /// stored with it.
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
        let extent_len = found.times(SECTOR_LEN);
        let mut members = Vec::new();
        for (name, physical) in section.sections("physical_volumes") {
            let (name, uuid) = (name.to_owned(), physical.text("id")?.replace('-', ""));
            let start = nth_at(0, physical.number("pe_start")?, SECTOR_LEN);
            members.push(Member { name, uuid, start });
        }
        let indexes = members.iter().enumerate().map(|(index, member)| (member.name.as_str(), index));
        let parser = Parser { extent_len, members: &members, indexes: indexes.collect() };
        let logicals = parser.volumes(section)?;
        let id = section.text("id").unwrap_or_default().to_owned();
        let sequence = section.number("seqno")?;
        Ok(Group { name: name.clone(), id, sequence, extent_len, members, logicals })
    }

    /// True if the group contains a physical volume with this UUID.
    pub(crate) fn has(&self, uuid: &str) -> bool {
        self.members.iter().any(|member| member.uuid == uuid)
    }
}

/// A snapshot: a separate volume in the text, which refers to two others.
struct Snapshot<'a> {
    origin: &'a str,
    /// The volume with the changes; its name is that of the snapshot.
    store: &'a str,
    /// True if the changes are being merged into the origin.
    merges: bool,
}

fn snapshot(section: &Section) -> Option<Snapshot<'_>> {
    let (_, value) = section.0.iter().find(|(name, _)| name == "segment1")?;
    let Value::Section(segment) = value else { return None };
    if segment.text("type").ok()? != "snapshot" {
        return None;
    }
    let cow = segment.text("cow_store").ok();
    let merging = segment.text("merging_store").ok();
    Some(Snapshot {
        origin: segment.text("origin").ok()?,
        store: cow.or(merging)?,
        merges: merging.is_some(),
    })
}

/// Properties of the group that its volumes need.
struct Parser<'a> {
    extent_len: u64,
    members: &'a [Member],
    indexes: HashMap<&'a str, usize>,
}

impl Parser<'_> {
    fn volumes(&self, group: &Section) -> Result<Vec<Logical>, Corruption> {
        let (mut logicals, mut names): (Vec<Logical>, HashSet<&str>) = (Vec::new(), HashSet::new());
        let mut merged = HashSet::new();
        for (name, section) in group.sections("logical_volumes") {
            let visible = Value::Text("VISIBLE".into());
            if section.list("status").is_ok_and(|status| !status.contains(&visible)) {
                continue;
            }
            let snapshot = snapshot(section);
            let shown = snapshot.as_ref().map_or(name, |snapshot| snapshot.store);
            if Name::new(shown.as_bytes()).is_err() || !names.insert(shown) {
                return Err(Corruption::Name);
            }
            if logicals.len() >= VOLUMES_MAX {
                return Err(Corruption::Volumes { max: VOLUMES_MAX });
            }
            merged.extend(snapshot.filter(|snapshot| snapshot.merges).map(|snapshot| snapshot.origin));
            logicals.push(self.volume(shown, section));
        }
        // The data of the origin is in two volumes.
        for logical in logicals.iter_mut().filter(|logical| merged.contains(logical.name.as_str())) {
            let kind = || Kind::Other("snapshot-merge".into());
            logical.segments.iter_mut().for_each(|segment| segment.kind = kind());
        }
        Ok(logicals)
    }

    fn volume(&self, name: &str, section: &Section) -> Logical {
        let (mut segments, mut fault) = (Vec::new(), section.list("status").err());
        let own = section.0.iter().filter(|(name, _)| name.starts_with("segment") && name != "segment_count");
        for (_, value) in own {
            let Value::Section(segment) = value else { continue };
            match self.segment(segment) {
                Ok(segment) => segments.push(segment),
                Err(found) => fault = fault.or(Some(found)),
            }
        }
        segments.sort_by_key(|segment| segment.start);
        // One more extent in case of a fault, or the volume would appear complete.
        let end = segments.iter().map(Segment::end).max().unwrap_or(0);
        let len = if fault.is_some() || end == 0 { end_of(end, self.extent_len) } else { end };
        // Segments are contiguous, so that every byte of the volume has one position.
        let (mut end, mut sound) = (0_u64, 0_usize);
        for segment in &segments {
            if segment.start != end || segment.len == 0 {
                break;
            }
            (end, sound) = (segment.end(), sound.plus(1));
        }
        if let Some(odd) = segments.get(sound) {
            let found = odd.start.checked_div(self.extent_len).unwrap_or(odd.start);
            fault = fault.or(Some(Corruption::Segments { found }));
        }
        if segments.is_empty() {
            fault = fault.or(Some(Corruption::Missing { what: "segment of a volume" }));
        }
        if len > i64::MAX as u64 {
            fault = fault.or(Some(Corruption::Figure { what: "extent_count", found: len }));
        }
        segments.truncate(sound);
        Logical { name: name.to_owned(), len: len.min(i64::MAX as u64), segments, fault }
    }

    fn segment(&self, segment: &Section) -> Result<Segment, Corruption> {
        let bytes = |what| -> Result<u64, Corruption> {
            let found = segment.number(what)?;
            found.checked_mul(self.extent_len).ok_or(Corruption::Figure { what, found })
        };
        let (start, len) = (bytes("start_extent")?, bytes("extent_count")?);
        Ok(Segment { start, len, kind: self.kind(segment)? })
    }

    fn kind(&self, segment: &Section) -> Result<Kind, Corruption> {
        let kind = segment.text("type")?;
        if kind != "striped" && kind != "linear" {
            return Ok(Kind::Other(kind.to_owned()));
        }
        let [Value::Text(area), Value::Number(extent)] = segment.list("stripes")? else {
            let stripes = segment.list("stripes")?;
            return Ok(Kind::Other(format!("striped over {} volumes", stripes.len() / 2)));
        };
        // A stripe may be on a logical volume, as while pvmove runs.
        let Some((&physical, member)) =
            self.indexes.get(area.as_str()).and_then(|index| Some((index, self.members.get(*index)?)))
        else {
            return Ok(Kind::Other(format!("linear over the volume {area:?}")));
        };
        let at = nth_at(member.start, *extent, self.extent_len);
        Ok(Kind::Linear { physical, at })
    }
}
