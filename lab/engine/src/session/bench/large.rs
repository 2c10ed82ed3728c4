//! Pieces of one large file: by fio, or, where that is not here, by a loop of our own that reads
//! alike.

use std::path::Path;

use serde_json::Value;

use super::super::Trouble;
use super::super::plan::Cell;
use super::Lab;
use super::reading::ColdTree;
use crate::process::{Invocation, Output};
use crate::programs;
use crate::results::Run;
use crate::workload::Workload;

/// Bytes of each read.
const PIECE: u64 = 4096;
/// Divisor of the share that the small random workload reads.
const SMALL_SHARE: u64 = 20;

impl Lab {
    /// Runs a workload on the largest file of a tree once.
    pub(super) fn read_large(&mut self, cell: &Cell, tree: ColdTree<'_>) -> Result<(String, Run), Trouble> {
        let largest = self.sources.largest(&cell.tree)?.filter(|file| file.len >= PIECE * SMALL_SHARE);
        let largest = largest.ok_or_else(|| "its tree has no file of 80 KiB or more".to_owned())?;
        let file = tree.root.join(&largest.path);
        let bytes = match cell.workload {
            Workload::LargeSmallRandom => largest.len / SMALL_SHARE / PIECE * PIECE,
            _ => largest.len,
        };
        let is_random = cell.workload != Workload::LargeSequential;
        let report = self.memory.as_ref().unwrap_or(&self.scratch).path("fio.json");
        let has_fio = programs::locate("fio").is_some();
        let (command, output) = if has_fio {
            self.note_tool("fio");
            (fio(&file, is_random, bytes, self.seed, &report), Output::Null)
        } else {
            (own(&self.lab, &file, is_random, bytes, self.seed), Output::File(report.clone()))
        };
        self.forget(tree.server, if has_fio { &["fio"] } else { &[] })?;
        let run = self.run_counted(tree, &command, &output)?;
        let text = std::fs::read_to_string(&report).unwrap_or_default();
        let told = if has_fio { told_by_fio(&text) } else { told_by_us(&text) };
        let why = || "the program that reads told nothing that could be understood".to_owned();
        let (wall, bytes) = told.ok_or_else(why)?;
        let spelled = command.spelled().replace(&*file.to_string_lossy(), "FILE");
        // Starting fio takes longer than many of its jobs.
        let run = Run { wall, bytes: Some(bytes), memory_peak: None, ..run };
        Ok((spelled.replace(&*report.to_string_lossy(), "REPORT"), run))
    }
}

fn fio(file: &Path, is_random: bool, bytes: u64, seed: u64, report: &Path) -> Invocation {
    let mut name = std::ffi::OsString::from("-filename=");
    name.push(file);
    let mut to = std::ffi::OsString::from("-output=");
    to.push(report);
    let command = Invocation::new("fio")
        .arg(name)
        .args(["-bs=4k", if is_random { "-rw=randread" } else { "-rw=read" }]);
    let command = command.args([format!("-io_size={bytes}"), format!("-randseed={}", seed >> 1)]);
    command.args(["-readonly", "-output-format=json", "-name=job1"]).arg(to)
}

fn own(lab: &Path, file: &Path, is_random: bool, bytes: u64, seed: u64) -> Invocation {
    let order = if is_random { "random" } else { "sequential" };
    let command = Invocation::new(lab).arg("pread").arg(file);
    command.args(["--order", order, "--bytes", &bytes.to_string(), "--seed", &seed.to_string()])
}

/// Seconds that its job took, and bytes it read.
fn told_by_fio(text: &str) -> Option<(f64, u64)> {
    // Notes may stand in front of the document.
    let json: Value = serde_json::from_str(text.get(text.find('{')?..)?).ok()?;
    let read = json.get("jobs")?.get(0)?.get("read")?;
    let bytes = read.get("io_bytes")?.as_u64()?;
    // Its own clock counts in milliseconds; the sum of all waits is finer.
    let millis = read.get("runtime")?.as_f64()?;
    let lat = read.get("lat_ns");
    let waits = lat.and_then(|lat| Some(lat.get("mean")?.as_f64()? * lat.get("N")?.as_f64()? / 1e9));
    let wall = waits.filter(|&waits| millis < 100.0 && waits > 0.0).unwrap_or(millis / 1e3);
    (wall > 0.0).then_some((wall, bytes))
}

/// `SECONDS BYTES`.
fn told_by_us(text: &str) -> Option<(f64, u64)> {
    let (seconds, bytes) = text.trim().split_once(' ')?;
    let seconds: f64 = seconds.parse().ok()?;
    (seconds > 0.0).then_some((seconds, bytes.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_output_of_fio() {
        let text = r#"fio: a note
{"jobs":[{"read":{"io_bytes":10485760,"runtime":500,"bw_bytes":20971520,"lat_ns":{"mean":190000.0,"N":2560}}}]}"#;
        assert_eq!(told_by_fio(text), Some((0.5, 10_485_760)));
        let (wall, _) = told_by_fio(&text.replace(":500,", ":0,")).unwrap();
        assert!((wall - 0.4864).abs() < 1e-9, "{wall}");
        assert_eq!(told_by_fio("no report"), None);
        assert_eq!(told_by_us("0.25 4096\n"), Some((0.25, 4096)));
    }

    #[test]
    fn fio_is_run_with_the_arguments_of_the_document() {
        let command = fio(Path::new("/m/a.tar"), true, 40960, 7, Path::new("/s/r"));
        assert_eq!(
            command.spelled(),
            "fio -filename=/m/a.tar -bs=4k -rw=randread -io_size=40960 -randseed=3 -readonly -output-format=json \
             -name=job1 -output=/s/r"
        );
    }
}
