//! Limits that a plan sets to packfs, a row for each kind.

use std::collections::BTreeMap;
use std::fmt;

use packfs::one_line;
use toml::Table;

use crate::report::as_figure;
use crate::results::{Run, Unit};

#[derive(Clone, Copy)]
pub(super) enum Figure {
    Size,
    OfRun(fn(&Run) -> Option<f64>),
}

pub(super) struct Kind {
    /// The key in a plan.
    key: &'static str,
    pub(super) what: &'static str,
    pub(super) unit: Unit,
    pub(super) figure: Figure,
    /// Unit of the limit, and its length in that of the figure; none for a part of the rival's.
    absolute: Option<(&'static str, f64)>,
}

const fn part(key: &'static str, what: &'static str, unit: Unit, figure: Figure) -> Kind {
    Kind { key, what, unit, figure, absolute: None }
}

const MEMORY: &str = "memory_mib";
/// Bytes of memory that each file, folder or other entry of the tree adds to that.
const PER_ENTRY: &str = "memory_per_entry";
const WALL: Figure = Figure::OfRun(|run| Some(run.wall));
const CPU: Figure = Figure::OfRun(|run| Some(run.user + run.system));
const READ: Figure = Figure::OfRun(|run| run.device_bytes.map(as_figure));
const REQUESTS: Figure = Figure::OfRun(|run| run.device_requests.map(as_figure));
const PEAK: Figure = Figure::OfRun(|run| run.memory_peak.map(as_figure));

const KINDS: [Kind; 8] = [
    part("wall", "time", Unit::Seconds, WALL),
    Kind { absolute: Some(("s", 1.0)), ..part("seconds", "time", Unit::Seconds, WALL) },
    part("cpu", "processor time", Unit::Seconds, CPU),
    part("size", "size", Unit::Bytes, Figure::Size),
    Kind { absolute: Some(("bytes", 1.0)), ..part("bytes", "size", Unit::Bytes, Figure::Size) },
    part("device_bytes", "bytes from the device", Unit::Bytes, READ),
    part("device_requests", "requests to the device", Unit::Count, REQUESTS),
    // Of the program, or of the one that serves a mount.
    Kind { absolute: Some(("MiB", 1_048_576.0)), ..part(MEMORY, "memory", Unit::Bytes, PEAK) },
];

/// Upper limits by the keys of their kinds; those that are not set are not looked at.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Target(BTreeMap<String, f64>);

pub(super) struct Limit {
    pub(super) kind: &'static Kind,
    /// Most that packfs may have, as a part of the rival's or of `absolute`.
    pub(super) most: f64,
    /// The limit itself where it is no part of the rival's.
    pub(super) absolute: Option<f64>,
}

impl Target {
    pub(super) fn of(row: Table) -> Result<Self, String> {
        let limits = row.try_into().map_err(|error| one_line(&error.to_string()))?;
        let target = Self(limits);
        let is_limit = |key: &str| key == PER_ENTRY || KINDS.iter().any(|kind| kind.key == key);
        match target.0.keys().find(|key| !is_limit(key)) {
            Some(key) => Err(format!("{key:?} is no limit")),
            None => Ok(target),
        }
    }

    pub(super) fn needs_rival(&self) -> bool {
        self.limits(0).iter().any(|limit| limit.absolute.is_none())
    }

    /// Limits to what is made of a tree of so many entries.
    pub(super) fn limits(&self, entries: u64) -> Vec<Limit> {
        let more = self.0.get(PER_ENTRY).map_or(0.0, |bytes| bytes * as_figure(entries));
        let limit = |kind: &'static Kind| {
            let most = *self.0.get(kind.key)?;
            let more = if kind.key == MEMORY { more } else { 0.0 };
            let absolute = kind.absolute.map(|(_, len)| most * len + more);
            Some(Limit { kind, most: if absolute.is_some() { 1.0 } else { most }, absolute })
        };
        KINDS.iter().filter_map(limit).collect()
    }
}

/// Spelled for lists: `time at most 0.4 of the rival's, memory at most 40 MiB`.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = KINDS.iter().filter_map(|Kind { key, what, absolute, .. }| {
            let most = self.0.get(*key)?;
            let of = absolute.map_or("of the rival's", |(unit, _)| unit);
            let more = self.0.get(PER_ENTRY).filter(|_| *key == MEMORY);
            let more = more.map_or_else(String::new, |bytes| format!(" and {bytes} bytes an entry"));
            Some(format!("{what} at most {most} {of}{more}"))
        });
        let parts: Vec<_> = parts.collect();
        f.write_str(&if parts.is_empty() { "no target".to_owned() } else { parts.join(", ") })
    }
}
