//! The page of all options, docs/guide/options.md, made of the rows of the library;
//! `PACKFS_WRITE_DOCUMENTS=1 cargo test -p packfs-cli options_page` writes it.

use crate::schema::compare;
use packfs::options::{Info, Mark, Options, Takes};
use packfs::{LIMITS, Limits, OpenOptions, PackOptions};
use std::fmt::Write;

const HEAD: &str = "\
# Options

Options of the library: of making an image (`pack`, `repack`, `plan`, `composefs pack`), of opening one (all verbs that read), and limits on input. This page is
made of their rows in `crates/packfs/src/options/`. `packfs VERB --help` has the details, and the options that a verb has of its own.

Python has the names in its column as keyword arguments; `mount -o`, `diff --a NAME=VALUE`, and `packfs_options_set` of C take the names of options of opening.
Options marked with `+` may be given to `packfs plan`, for all shards.
";

fn option(info: &Info) -> String {
    let value =
        if info.value.is_empty() { String::new() } else { format!(" {}", info.value.replace('|', "\\|")) };
    let short = info.short.map(|letter| format!("`-{letter}`, ")).unwrap_or_default();
    let no = if let Takes::NothingOrNo(_) = info.takes {
        format!(", `--no-{}`", info.name)
    } else {
        String::new()
    };
    let aliases: String = info.aliases.iter().map(|name| format!(", `--{name}`")).collect();
    format!("{short}`--{}{value}`{no}{aliases}", info.name)
}

fn default(info: &Info) -> String {
    let limit = LIMITS.iter().find(|row| row.option == info.name).map(|row| row.default.to_string());
    let default = limit.unwrap_or_else(|| info.default.to_owned());
    if default.is_empty() { default } else { format!("; default {default}") }
}

fn table(page: &mut String, heading: &str, rows: &[&Info], is_packing: bool) {
    let _ = write!(page, "\n## {heading}\n\n| option | Python | effect |\n|---|---|---|\n");
    for info in rows {
        let keyword = info.also.first().unwrap_or(&info.name).replace('-', "_");
        let is_planned = is_packing && !info.is(Mark::Whole) && !info.is(Mark::Run);
        let plan = if is_planned { " `+`" } else { "" };
        let effect = format!("{}{}", info.line(), default(info));
        let _ = writeln!(page, "| {}{plan} | `{keyword}` | {effect} |", option(info));
    }
}

fn page() -> String {
    let limits = Limits::infos();
    let packing = PackOptions::infos();
    let packing: Vec<&Info> =
        packing.into_iter().filter(|info| !limits.iter().any(|limit| limit.name == info.name)).collect();
    let mut headings: Vec<&str> = Vec::new();
    for info in &packing {
        if !headings.contains(&info.group) {
            headings.push(info.group);
        }
    }
    let mut page = HEAD.to_owned();
    for heading in headings {
        let rows: Vec<&Info> = packing.iter().copied().filter(|info| info.group == heading).collect();
        table(&mut page, &format!("Packing: {}", heading.to_lowercase()), &rows, true);
    }
    table(&mut page, "Opening", &OpenOptions::infos(), false);
    table(&mut page, "Limits", &limits, false);
    page
}

#[test]
fn the_page_of_options_is_that_of_the_rows() {
    compare("options.md", &page());
}
