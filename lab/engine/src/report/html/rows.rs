//! What the page's script draws: a row for each cell of the session, medians and spreads computed
//! already.

use serde::Serialize;

use crate::report::summary::{Summary, summaries};
use crate::results::{Results, Spread, spelled_len};

/// The maker whose marks are filled.
const OURS: &str = "packfs";

/// All of it. Names of fields are those that the script uses.
#[derive(Serialize)]
pub struct Data<'a> {
    ours: &'static str,
    rows: Vec<Row<'a>>,
    /// In the order in which they were measured first.
    workloads: Vec<&'a str>,
    devices: Vec<&'a str>,
    trees: Vec<&'a str>,
}

/// One cell.
#[derive(Serialize)]
struct Row<'a> {
    subject: &'a str,
    tree: &'a str,
    maker: &'a str,
    format: &'a str,
    codec: String,
    block: String,
    workload: &'a str,
    device: &'a str,
    reader: &'a str,
    jobs: Option<u32>,
    size: Option<u64>,
    wall: Option<Spread>,
    rate: Option<f64>,
    processor: Option<f64>,
    memory: Option<u64>,
    read: Option<f64>,
    disturbed: f64,
}

/// What the script is given.
pub fn data(results: &Results) -> Data<'_> {
    let summaries = summaries(results);
    let rows: Vec<Row<'_>> = summaries.iter().map(row).collect();
    Data {
        ours: OURS,
        workloads: distinct(results.measurements.iter().map(|it| it.workload.as_str())),
        devices: distinct(results.measurements.iter().map(|it| it.device.as_str())),
        trees: distinct(rows.iter().map(|row| row.tree)),
        rows,
    }
}

fn row<'a>(summary: &Summary<'a>) -> Row<'a> {
    let measurement = summary.measurement;
    let recipe = summary.subject.map(|subject| &subject.recipe);
    let codec = recipe.map_or_else(String::new, |recipe| match recipe.level {
        Some(level) => format!("{}:{level}", recipe.codec),
        None => recipe.codec.clone(),
    });
    Row {
        subject: &measurement.subject,
        tree: summary.subject.map_or("", |subject| &subject.tree),
        maker: recipe.map_or("", |recipe| &recipe.maker),
        format: recipe.map_or("", |recipe| &recipe.format),
        codec,
        block: recipe.and_then(|recipe| recipe.block_len).map_or_else(String::new, spelled_len),
        workload: &measurement.workload,
        device: &measurement.device,
        reader: measurement.reader.as_deref().unwrap_or_default(),
        jobs: measurement.jobs,
        size: summary.subject.and_then(|subject| subject.stored_len),
        wall: summary.wall,
        rate: summary.rate.map(|rate| rate.median).filter(|rate| rate.is_finite()),
        processor: summary.processor.map(|processor| processor.median),
        memory: summary.memory_peak,
        read: summary.device_bytes.map(|read| read.median),
        disturbed: summary.disturbed,
    }
}

/// Each once, in the order of their first.
fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut distinct = Vec::new();
    for name in names {
        if !distinct.contains(&name) {
            distinct.push(name);
        }
    }
    distinct
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_first_place() {
        assert_eq!(distinct(["b", "a", "b"].into_iter()), ["b", "a"]);
    }
}
