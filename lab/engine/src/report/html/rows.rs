//! Data of the page's script: a row for each cell of the session, medians and spreads computed
//! already. Names of fields are those that the script uses.

use serde_json::{Value, json};

use crate::report::summary::{Summary, summaries};
use crate::results::{Recipe, Results, spelled_len};

/// The maker whose marks are filled.
const OURS: &str = "packfs";

/// Returns the data of the script.
pub fn data(results: &Results) -> Value {
    let summaries = summaries(results);
    let trees = summaries.iter().map(|summary| summary.subject.map_or("", |subject| &subject.tree));
    json!({
        "ours": OURS,
        "rows": summaries.iter().map(row).collect::<Vec<_>>(),
        "workloads": distinct(results.measurements.iter().map(|it| it.workload.as_str())),
        "devices": distinct(results.measurements.iter().map(|it| it.device.as_str())),
        "trees": distinct(trees),
    })
}

fn row(summary: &Summary<'_>) -> Value {
    let (it, subject) = (summary.measurement, summary.subject);
    let recipe = subject.map(|subject| &subject.recipe);
    json!({
        "subject": it.subject,
        "tree": subject.map_or("", |subject| &subject.tree),
        "maker": recipe.map_or("", |recipe| &recipe.maker),
        "format": recipe.map_or("", |recipe| &recipe.format),
        "codec": recipe.map_or_else(String::new, Recipe::codec_and_level),
        "block": recipe.and_then(|recipe| recipe.block_len).map_or_else(String::new, spelled_len),
        "workload": it.workload,
        "device": it.device,
        "reader": it.reader.as_deref().unwrap_or_default(),
        "jobs": it.jobs,
        "size": subject.and_then(|subject| subject.stored_len),
        "wall": summary.wall,
        "rate": summary.rate.map(|rate| rate.median).filter(|rate| rate.is_finite()),
        "processor": summary.processor.map(|processor| processor.median),
        "memory": summary.memory_peak,
        "read": summary.device_bytes.map(|read| read.median),
        "disturbed": summary.disturbed,
    })
}

/// Returns each name once, in the order of their first.
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
