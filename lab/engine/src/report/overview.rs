//! Tables of everything that was measured, one for each tree, device and workload: for sessions
//! that were made for no table of their own, and behind the tables of those that were.

use crate::report::summary::{Summary, as_figure, summaries};
use crate::results::{Cell, Results, Spread, Table, Unit};

#[derive(Clone, PartialEq, Eq)]
struct Key<'a> {
    tree: &'a str,
    device: &'a str,
    workload: &'a str,
}

type Optional<'a> = (&'static str, Unit, fn(&Summary<'a>) -> Cell);

/// One table for each tree, device and workload, in the order in which they were measured first;
/// the fastest first.
pub fn tables(results: &Results) -> Vec<Table> {
    let mut groups: Vec<(Key<'_>, Vec<Summary<'_>>)> = Vec::new();
    for summary in summaries(results) {
        let key = Key {
            tree: summary.subject.map_or("", |subject| subject.tree.as_str()),
            device: &summary.measurement.device,
            workload: &summary.measurement.workload,
        };
        match groups.iter_mut().find(|(of, _)| *of == key) {
            Some((_, group)) => group.push(summary),
            None => groups.push((key, vec![summary])),
        }
    }
    groups.into_iter().map(|(key, group)| table(results, &key, group)).collect()
}

fn table(results: &Results, key: &Key<'_>, mut group: Vec<Summary<'_>>) -> Table {
    let median = |summary: &Summary<'_>| summary.wall.map_or(f64::INFINITY, |wall| wall.median);
    group.sort_by(|one, other| median(one).total_cmp(&median(other)));
    let optional = optional_columns(&group);
    let titles = optional.iter().map(|&(title, unit, _)| (title, unit));
    let columns: Vec<_> = std::iter::once(("subject", Unit::Text)).chain(titles).collect();
    let rows = group
        .iter()
        .map(|summary| {
            let mut row = vec![Cell::Text(summary.measurement.subject.clone())];
            row.extend(optional.iter().map(|(_, _, cell)| cell(summary)));
            row
        })
        .collect();
    let mut title = key.workload.to_owned();
    if results.devices.len() > 1 || results.devices.iter().any(|device| device.simulated) {
        title += &format!(", device {}", key.device);
    }
    if results.trees.len() > 1 && !key.tree.is_empty() {
        title += &format!(", tree {}", key.tree);
    }
    let method = match group.first() {
        Some(first) if !first.measurement.command.is_empty() => {
            format!("Each run as in this one: {}", first.measurement.command)
        }
        _ => String::new(),
    };
    Table::new(&title, &method, &columns, rows)
}

/// Those that say something of at least one cell.
fn optional_columns<'a>(group: &[Summary<'a>]) -> Vec<Optional<'a>> {
    let all: [Optional<'a>; 9] = [
        ("read by", Unit::Text, |it| it.measurement.reader.clone().map_or(Cell::Empty, Cell::Text)),
        ("jobs", Unit::Count, |it| exact(it.measurement.jobs.map(u64::from))),
        ("size", Unit::Bytes, |it| exact(it.subject.and_then(|subject| subject.stored_len))),
        ("wall", Unit::Seconds, |it| {
            it.wall.map_or(Cell::Missing("no run of it ended".into()), Cell::Figure)
        }),
        ("rate", Unit::BytesPerSecond, |it| median_of(it.rate)),
        ("processor", Unit::Seconds, |it| median_of(it.processor)),
        ("read from device", Unit::Bytes, |it| median_of(it.device_bytes)),
        ("requests", Unit::Count, |it| median_of(it.device_requests)),
        ("peak memory", Unit::Bytes, |it| exact(it.memory_peak)),
    ];
    all.into_iter().filter(|(_, _, cell)| group.iter().any(|it| cell(it) != Cell::Empty)).collect()
}

fn exact(figure: Option<u64>) -> Cell {
    figure.map_or(Cell::Empty, |figure| Cell::exact(as_figure(figure)))
}

/// Without the spread, which beside that of the wall time says little.
fn median_of(spread: Option<Spread>) -> Cell {
    spread.map_or(Cell::Empty, |spread| Cell::exact(spread.median))
}
