//! What was measured of mounts, for a terminal, for a page and for other programs.

use serde_json::{Value, json};

use super::judge::{bound, judge, ratio, spell};
use super::session::{Measured, Outcome, Session};
use super::workload::{Figure, Workload};
use crate::bench::case::spell_block_len;
use crate::bench::judge::mebibytes;
use crate::table::Table;

/// One case in one line, as soon as it is measured.
pub fn line(outcome: &Outcome) -> String {
    let figure = outcome.case.workload.figure();
    let all = outcome.packfs.iter().chain(outcome.opponents.iter().map(|(_, measured)| measured));
    let figures: Vec<_> = all.map(|one| format!("{} {}", one.name, value(one, figure))).collect();
    format!("{}: {}; {}", outcome.case.label(), figures.join(", "), spell(&judge(outcome)))
}

pub fn text(session: &Session) -> String {
    table(session).text()
}

/// The part of a page about mounts.
pub fn markdown(session: &Session) -> String {
    let mut page = "## Mounts\n\n".to_owned();
    page += &conditions(session).iter().map(|line| format!("- {line}\n")).collect::<String>();
    page += &format!("\n{}", table(session).markdown());
    let about = Workload::ALL.into_iter().filter(|workload| uses(session, *workload));
    page += "\n";
    page += &about.map(|work| format!("- {}: {}\n", work.name(), work.about())).collect::<String>();
    page += "\n```\n";
    for command in commands(session) {
        page += &format!("{command}\n");
    }
    page + "```\n"
}

pub fn json(session: &Session) -> Value {
    let versions =
        session.versions.iter().map(|(name, version)| json!({"program": name, "version": version}));
    json!({
        "circumstances": session.circumstances,
        "versions": versions.collect::<Vec<_>>(),
        "memory": session.memory,
        "cases": session.outcomes.iter().map(outcome_json).collect::<Vec<_>>(),
        "failures": session.failures,
    })
}

fn outcome_json(outcome: &Outcome) -> Value {
    let case = &outcome.case;
    let verdicts: Vec<_> = judge(outcome)
        .iter()
        .map(|verdict| {
            json!({
                "against": verdict.against, "what": verdict.what, "found": verdict.found,
                "allowed": verdict.bound.spelled(), "met": verdict.is_met(),
            })
        })
        .collect();
    let all = outcome.packfs.iter().chain(outcome.opponents.iter().map(|(_, measured)| measured));
    json!({
        "work": case.workload.name(), "corpus": case.workload.corpus().name(), "format": case.format.name(),
        "codec": case.codec.name, "level": case.codec.level, "block_size": case.block_len,
        "figure": unit(case.workload.figure()),
        "programs": all.map(measured_json).collect::<Vec<_>>(),
        "verdicts": verdicts,
    })
}

fn measured_json(measured: &Measured) -> Value {
    let summary = &measured.summary;
    let samples = measured.samples.iter().map(|sample| {
        json!({
            "wall_s": sample.wall.as_secs_f64(), "reader_cpu_s": sample.reader_cpu.as_secs_f64(),
            "daemon_cpu_s": sample.daemon_cpu.map(|cpu| cpu.as_secs_f64()),
            "memory_peak_bytes": sample.memory_peak,
            "operations": sample.operations, "bytes": sample.bytes,
        })
    });
    json!({
        "program": measured.name, "how": measured.how, "command": measured.command,
        "median": summary.value, "median_reader_cpu_s": summary.reader_cpu,
        "median_daemon_cpu_s": summary.daemon_cpu, "memory_peak_bytes": summary.memory_peak,
        "samples": samples.collect::<Vec<_>>(),
    })
}

/// Lines about how mounts were measured.
pub fn conditions(session: &Session) -> Vec<String> {
    let versions: Vec<_> =
        session.versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
    let mut lines = session.circumstances.clone();
    lines.extend([
        format!("Programs: {}", versions.join(", ")),
        "Each run mounts anew, so nothing of the tree is known to the kernel; all mount in turn".to_owned(),
        format!("Memory: {}", session.memory),
        "CPU is that of the readers and that of the program that serves, mounting included; what the kernel decodes in \
         threads of its own is not in it; memory is the program's largest resident set of all runs"
            .to_owned(),
    ]);
    lines.extend(
        session.failures.iter().map(|failure| format!("Not measured: {}", failure.replace('\n', "; "))),
    );
    lines
}

fn uses(session: &Session, workload: Workload) -> bool {
    session.outcomes.iter().any(|outcome| outcome.case.workload == workload)
}

/// The first mount by each program, and by the kernel of each format.
fn commands(session: &Session) -> Vec<&str> {
    let mut known = vec![];
    let mut commands = vec![];
    for outcome in &session.outcomes {
        for measured in outcome.packfs.iter().chain(outcome.opponents.iter().map(|(_, measured)| measured)) {
            let key = (measured.name, measured.how, outcome.case.format);
            if !known.contains(&key) {
                known.push(key);
                commands.push(measured.command.as_str());
            }
        }
    }
    commands
}

/// A row for each opponent; one for packfs alone, or for the rivals alone, if there is nobody to compare with.
fn table(session: &Session) -> Table {
    let headings = [
        "work",
        "format",
        "codec",
        "block",
        "rival",
        "unit",
        "rival",
        "packfs",
        "ratio",
        "target",
        "CPU rival",
        "CPU packfs",
        "MiB rival",
        "MiB packfs",
        "verdict",
    ];
    let mut table = Table::new(&headings, 6);
    for outcome in &session.outcomes {
        for (opponent, rival) in &outcome.opponents {
            let against = rival.name;
            let (packfs, case) = (outcome.packfs.as_ref(), &outcome.case);
            let figure = case.workload.figure();
            let mut verdicts = judge(outcome);
            verdicts.retain(|verdict| [against, "the limit"].contains(&verdict.against));
            table.row(vec![
                case.workload.name().to_owned(),
                case.format.name().to_owned(),
                case.codec.label(),
                spell_block_len(case.block_len),
                format!("{against} {}", rival.how).trim_end().to_owned(),
                unit(figure).to_owned(),
                value(rival, figure),
                or_dash(packfs.map(|packfs| value(packfs, figure))),
                or_dash(packfs.map(|packfs| format!("{:.2}", ratio(packfs, rival)))),
                or_dash(bound(outcome, *opponent).map(|bound| bound.spelled())),
                cpu(rival),
                or_dash(packfs.map(cpu)),
                memory(rival),
                or_dash(packfs.map(memory)),
                spell(&verdicts),
            ]);
        }
    }
    table
}

fn unit(figure: Figure) -> &'static str {
    match figure {
        Figure::Wall => "s",
        Figure::Iops => "IOPS",
        Figure::Rate => "MB/s",
    }
}

fn value(measured: &Measured, figure: Figure) -> String {
    let digits = if figure == Figure::Wall { 3 } else { 0 };
    format!("{:.digits$}", measured.summary.value)
}

/// Seconds of readers and of the program: `0.31 + 0.52`.
fn cpu(measured: &Measured) -> String {
    let readers = format!("{:.2}", measured.summary.reader_cpu);
    measured.summary.daemon_cpu.map_or_else(|| readers.clone(), |daemon| format!("{readers} + {daemon:.2}"))
}

fn memory(measured: &Measured) -> String {
    or_dash(measured.summary.memory_peak.map(|len| format!("{:.0}", mebibytes(len))))
}

fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".to_owned())
}
