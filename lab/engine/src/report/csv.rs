//! One row for each run, for spreadsheets and scripts: comma-separated values as RFC 4180 has them.

use std::fmt::Write as _;

use crate::report::summary::{Summary, summaries};
use crate::results::{Results, Run};

struct Row<'a> {
    cell: &'a Summary<'a>,
    /// From 1.
    number: usize,
    run: &'a Run,
    /// True if the device is simulated.
    simulated: Option<bool>,
    /// Processors that the session's programs had, if not all.
    cpus: Option<f64>,
}

type Field = fn(&Row<'_>) -> String;

/// The columns. Their names and order stay; new ones come at the end. Lengths are in bytes, times
/// in seconds; what is not known is empty.
const COLUMNS: &[(&str, Field)] = &[
    ("workload", |it| it.cell.measurement.workload.clone()),
    ("tree", |it| it.cell.subject.map_or_else(String::new, |subject| subject.tree.clone())),
    ("subject", |it| it.cell.measurement.subject.clone()),
    ("maker", |it| it.cell.subject.map_or_else(String::new, |subject| subject.recipe.maker.clone())),
    ("format", |it| it.cell.subject.map_or_else(String::new, |subject| subject.recipe.format.clone())),
    ("codec", |it| it.cell.subject.map_or_else(String::new, |subject| subject.recipe.codec.clone())),
    ("level", |it| optional(it.cell.subject.and_then(|subject| subject.recipe.level))),
    ("block_len", |it| optional(it.cell.subject.and_then(|subject| subject.recipe.block_len))),
    ("options", |it| it.cell.subject.map_or_else(String::new, |subject| subject.recipe.options.join(" "))),
    ("luks", |it| optional(it.cell.subject.map(|subject| subject.recipe.luks))),
    ("stored_len", |it| optional(it.cell.subject.and_then(|subject| subject.stored_len))),
    ("reader", |it| it.cell.measurement.reader.clone().unwrap_or_default()),
    ("device", |it| it.cell.measurement.device.clone()),
    ("device_simulated", |it| optional(it.simulated)),
    ("jobs", |it| optional(it.cell.measurement.jobs)),
    ("run", |it| it.number.to_string()),
    ("wall_s", |it| it.run.wall.to_string()),
    ("user_s", |it| it.run.user.to_string()),
    ("system_s", |it| it.run.system.to_string()),
    ("memory_peak", |it| optional(it.run.memory_peak)),
    ("bytes", |it| optional(it.run.bytes)),
    ("device_bytes", |it| optional(it.run.device_bytes)),
    ("others_cpu_s", |it| it.run.noise.others_cpu.to_string()),
    ("stolen_cpu_s", |it| it.run.noise.stolen_cpu.to_string()),
    ("command", |it| it.cell.measurement.command.clone()),
    ("cpus", |it| optional(it.cpus)),
    ("device_requests", |it| optional(it.run.device_requests)),
];

/// All runs. Lines end with CR and LF, as the RFC asks.
pub fn csv(results: &Results) -> String {
    let cpus = results.settings.cpu_limit.as_ref().map(|limit| limit.cpus);
    let mut text = String::new();
    line(&mut text, COLUMNS.iter().map(|(name, _)| (*name).to_owned()));
    for cell in &summaries(results) {
        let device = results.devices.iter().find(|device| device.id == cell.measurement.device);
        let simulated = device.map(|device| device.simulated);
        for (index, run) in cell.measurement.runs.iter().enumerate() {
            let row = Row { cell, number: index + 1, run, simulated, cpus };
            line(&mut text, COLUMNS.iter().map(|(_, field)| field(&row)));
        }
    }
    text
}

fn optional(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

fn line(text: &mut String, fields: impl Iterator<Item = String>) {
    for (index, field) in fields.enumerate() {
        if index > 0 {
            text.push(',');
        }
        if field.contains([',', '"', '\r', '\n']) {
            // Writing to a string cannot fail.
            let _ = write!(text, "\"{}\"", field.replace('"', "\"\""));
        } else {
            text.push_str(&field);
        }
    }
    text.push_str("\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_meaning_is_quoted() {
        let mut text = String::new();
        let fields = ["plain", "a,b", "a \"b\"", "two\nlines", ""];
        line(&mut text, fields.iter().map(|field| (*field).to_owned()));
        assert_eq!(text, "plain,\"a,b\",\"a \"\"b\"\"\",\"two\nlines\",\r\n");
    }
}
