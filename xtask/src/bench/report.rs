//! What was measured, for a terminal, for a page and for other programs.

use std::time::Duration;

use serde_json::{Value, json};

use super::case::Verb;
use super::judge::{mebibytes, spell};
use super::measure::Sample;
use super::session::{Measured, Outcome, Session};
use super::summary::{len_ratio, ratio};
use crate::rivals;
use crate::table::Table;

/// One case in one line, as soon as it is measured.
pub fn line(outcome: &Outcome) -> String {
    let rival = &outcome.rival;
    let start = format!("{}: {} {}", outcome.case.label(), rival.program, seconds(rival.summary.wall));
    match &outcome.packfs {
        None => start,
        Some(packfs) => {
            format!("{start}, packfs {}, {}", seconds(packfs.summary.wall), spell(&outcome.verdicts))
        }
    }
}

/// Both tables as text.
pub fn text(session: &Session) -> String {
    format!("{}\n{}", times(session).text(), sizes(session).text())
}

/// A page with machine, versions, corpora, commands and both tables.
pub fn markdown(session: &Session) -> String {
    let mut page = format!("Measured {} at commit {}.\n\n", session.machine.date, session.machine.commit);
    page += &conditions(session).iter().map(|line| format!("- {line}\n")).collect::<String>();
    page += "\n## Time\n\n";
    page += &times(session).markdown();
    page += "\n## Size and memory\n\n";
    page += &sizes(session).markdown();
    page += "\n## Commands\n\n```\n";
    for command in commands(session) {
        page += &format!("{command}\n");
    }
    page + "```\n"
}

/// Everything, with each single sample.
pub fn json(session: &Session) -> Value {
    let machine = &session.machine;
    let facts = &machine.facts;
    let versions =
        session.versions.iter().map(|(name, version)| json!({"program": name, "version": version}));
    let corpora = session.corpora.iter().map(
        |(corpus, counts)| json!({"name": corpus.name(), "entries": counts.entries, "bytes": counts.bytes}),
    );
    let cases = session.outcomes.iter().map(|outcome| outcome_json(session, outcome));
    json!({
        "machine": {
            "processor": facts.processor, "processor_count": facts.processor_count,
            "memory_bytes": facts.memory_bytes, "kernel": facts.kernel, "system": facts.system,
        },
        "date": machine.date,
        "commit": machine.commit,
        "scratch": session.scratch,
        "load_before": session.load_before,
        "load_after": session.load_after,
        "runs": session.runs,
        "jobs": session.jobs,
        "versions": versions.collect::<Vec<_>>(),
        "corpora": corpora.collect::<Vec<_>>(),
        "cases": cases.collect::<Vec<_>>(),
    })
}

fn outcome_json(session: &Session, outcome: &Outcome) -> Value {
    let case = &outcome.case;
    let verdicts = outcome.verdicts.iter().map(|verdict| {
        json!({"what": verdict.what, "found": verdict.found, "allowed": verdict.allowed, "met": verdict.is_met()})
    });
    let mut programs = vec![measured_json(session, &outcome.rival)];
    programs.extend(outcome.packfs.as_ref().map(|packfs| measured_json(session, packfs)));
    json!({
        "verb": case.verb.name(), "corpus": case.corpus.name(), "format": case.format.name(),
        "sharing": case.sharing.name(), "codec": case.codec.name,
        "level": case.codec.level, "block_size": case.block_len,
        "programs": programs, "verdicts": verdicts.collect::<Vec<_>>(),
    })
}

fn measured_json(session: &Session, measured: &Measured) -> Value {
    let summary = &measured.summary;
    json!({
        "program": measured.program,
        "command": spelled(session, measured),
        "median_wall_s": summary.wall.as_secs_f64(),
        "median_cpu_s": summary.cpu.as_secs_f64(),
        "memory_peak_bytes": summary.memory_peak,
        "output_bytes": summary.output_len,
        "samples": measured.samples.iter().map(sample_json).collect::<Vec<_>>(),
    })
}

fn sample_json(sample: &Sample) -> Value {
    json!({
        "wall_s": sample.wall.as_secs_f64(), "user_s": sample.user.as_secs_f64(),
        "system_s": sample.system.as_secs_f64(), "memory_peak_bytes": sample.memory_peak,
        "output_bytes": sample.output_len,
    })
}

fn conditions(session: &Session) -> Vec<String> {
    let machine = &session.machine;
    let versions: Vec<_> =
        session.versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
    let corpora: Vec<_> = session
        .corpora
        .iter()
        .map(|(corpus, counts)| {
            format!("{} ({} entries, {} bytes in files)", corpus.name(), counts.entries, counts.bytes)
        })
        .collect();
    let mut lines = vec![
        format!("Machine: {}", machine.hardware()),
        format!("System: {}, {}", machine.facts.system, machine.facts.kernel),
        format!("Load average before and after: {}, {}", session.load_before, session.load_after),
        format!("Programs: {}", versions.join(", ")),
        format!("Corpora: {}", corpora.join(", ")),
        format!("Sources in the page cache; outputs on {}", session.scratch),
        format!(
            "Medians of {} runs in turn after one to warm up; memory is the largest of all runs; ratios are packfs to rival",
            session.runs
        ),
    ];
    for outcome in &session.outcomes {
        let count = outcome.rival.samples.len();
        if count < session.runs {
            lines.push(format!(
                "{}: {} was run only {count} times and not warmed up, for it takes so long",
                outcome.case.label(),
                outcome.rival.program
            ));
        }
    }
    lines
}

/// One command of each program for each verb and compressor that is spelled differently.
fn commands(session: &Session) -> Vec<String> {
    let mut commands: Vec<String> = vec![];
    for outcome in &session.outcomes {
        for measured in std::iter::once(&outcome.rival).chain(&outcome.packfs) {
            let mut command = spelled(session, measured);
            if outcome.case.verb == Verb::Tar {
                command += &format!(" > SCRATCH/{}.out", measured.program);
            }
            if !commands.contains(&command) {
                commands.push(command);
            }
        }
    }
    commands
}

/// A command, its folder for outputs called the same in every session.
fn spelled(session: &Session, measured: &Measured) -> String {
    let dir = session.scratch_dir.display().to_string();
    rivals::spelled(&measured.command).replace(&dir, "SCRATCH")
}

const CASE: [&str; 5] = ["verb", "corpus", "format", "codec", "block"];

fn case_cells(outcome: &Outcome) -> Vec<String> {
    let case = &outcome.case;
    vec![
        case.verb.name().to_owned(),
        case.corpus.name().to_owned(),
        case.format.name().to_owned(),
        case.codec.label(),
        case.layout(),
    ]
}

fn times(session: &Session) -> Table {
    let figures = ["rival", "wall", "packfs", "ratio", "target", "CPU", "packfs", "ratio", "verdict"];
    let mut table = Table::new(&[&CASE[..], &figures].concat(), 6);
    for outcome in &session.outcomes {
        let (rival, packfs) = (&outcome.rival.summary, outcome.packfs.as_ref().map(|packfs| packfs.summary));
        let both = |value: fn(&super::summary::Summary) -> Duration| {
            let ours = packfs.as_ref().map(value);
            let ratio = ours.map(|ours| format!("{:.2}", ratio(ours, value(rival))));
            [seconds(value(rival)), or_dash(ours.map(seconds)), or_dash(ratio)]
        };
        let mut cells = case_cells(outcome);
        cells.push(outcome.rival.program.to_owned());
        cells.extend(both(|summary| summary.wall));
        cells.push(allowed(outcome, "wall"));
        cells.extend(both(|summary| summary.cpu));
        cells.push(or_dash(packfs.map(|_| spell(&outcome.verdicts))));
        table.row(cells);
    }
    table
}

fn sizes(session: &Session) -> Table {
    let figures = ["rival", "bytes", "packfs", "ratio", "target", "MiB", "packfs", "target"];
    let mut table = Table::new(&[&CASE[..], &figures].concat(), 6);
    for outcome in &session.outcomes {
        let (rival, packfs) = (&outcome.rival.summary, outcome.packfs.as_ref().map(|packfs| packfs.summary));
        let ours = packfs.and_then(|packfs| packfs.output_len);
        let ratio =
            rival.output_len.zip(ours).map(|(theirs, ours)| format!("{:.4}", len_ratio(ours, theirs)));
        let mut cells = case_cells(outcome);
        cells.push(outcome.rival.program.to_owned());
        cells.push(or_dash(rival.output_len.map(|len| len.to_string())));
        cells.push(or_dash(ours.map(|len| len.to_string())));
        cells.push(or_dash(ratio));
        cells.push(allowed(outcome, "size"));
        cells.push(format!("{:.0}", mebibytes(rival.memory_peak)));
        cells.push(or_dash(packfs.map(|packfs| format!("{:.0}", mebibytes(packfs.memory_peak)))));
        cells.push(allowed(outcome, "MiB"));
        table.row(cells);
    }
    table
}

fn allowed(outcome: &Outcome, what: &str) -> String {
    let verdict = outcome.verdicts.iter().find(|verdict| verdict.what == what);
    let digits = if what == "MiB" { 0 } else { 2 };
    or_dash(verdict.map(|verdict| format!("<= {:.digits$}", verdict.allowed)))
}

fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".to_owned())
}

fn seconds(duration: Duration) -> String {
    format!("{:.3} s", duration.as_secs_f64())
}
