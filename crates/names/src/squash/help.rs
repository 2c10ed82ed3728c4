//! Help and version of squashfs-tools.

use super::options::CODECS;
use crate::common::parse::{Given, Row};
use crate::common::usage;
use packfs_terminal::{Outcome, report};
use std::process::ExitCode;

const SQUASHFS_TOOLS: &str = "4.7.5";

pub fn answered(name: &str, given: &Given, rows: &[&[Row]]) -> Option<Outcome> {
    let answer = if given.has("-version") {
        format!("{name} version {SQUASHFS_TOOLS} (packfs {})\n", env!("CARGO_PKG_VERSION"))
    } else if given.has("-mem-default") {
        "512\n".to_owned()
    } else {
        help(name, given, rows)?
    };
    Some(report::print(answer).map(|()| ExitCode::SUCCESS))
}

fn help(name: &str, given: &Given, rows: &[&[Row]]) -> Option<String> {
    let helps = ["-help", "-help-all", "-help-option", "-help-section", "-help-comp", "-Xhelp"];
    if !helps.iter().any(|help| given.has(help)) {
        return None;
    }
    let reads = name == "unsquashfs" || name == "sqfscat";
    let operands = match name {
        "mksquashfs" => "source1 source2 ...  FILESYSTEM [OPTIONS] [-e list of exclude dirs/files]",
        "sqfstar" => "[OPTIONS] FILESYSTEM [list of exclude dirs/files]",
        _ => "[OPTIONS] FILESYSTEM [files]",
    };
    let codecs = CODECS.map(|codec| match codec {
        "gzip" if !reads => "\tgzip (default)\n".to_owned(),
        _ => format!("\t{codec}\n"),
    });
    let heading = if reads { "Decompressors" } else { "Compressors" };
    let (options, codecs) = (usage::table(rows), codecs.concat());
    Some(format!("SYNTAX: {name} {operands}\n\n{options}\n{heading} available:\n{codecs}"))
}
