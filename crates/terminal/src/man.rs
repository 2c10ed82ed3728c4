//! Manual pages, generated from the same table as `--help`.

use clap_mangen::Man;
use packfs::{Result, ResultExt};
use std::io::{self, Write};
use std::path::Path;

/// Exit codes and their meaning, as in docs/guide/cli.md.
const EXIT_STATUS: [(&str, &str); 8] = [
    ("0", "Success: the request was fulfilled completely."),
    (
        "1",
        "Failure, or input beyond a limit. diff: the two differ; digest: a digest differs from the expected one; unpack \
         \\-\\-strict and pack \\-\\-keep\\-going: partial success.",
    ),
    ("2", "Usage error."),
    ("3", "Corrupt input: it violates the rules of its own format; ls and unpack output the undamaged part."),
    ("4", "Unsupported input: it may be valid, but packfs does not support it."),
    ("5", "pack\\-shard: the source changed since it was planned."),
    ("129, 130, 143", "Ended by SIGHUP, SIGINT, SIGTERM; no partial file remains under the output name."),
    ("141", "Standard output was closed early."),
];

/// Writes a page for the command and one for each verb, such as `packfs.1` and `packfs-pack.1`,
/// into a folder, which is created if missing.
///
/// Errors: `Io`.
pub fn write(command: clap::Command, dir: &Path) -> Result<()> {
    std::fs::create_dir_all(dir).or_io(|| format!("cannot create {dir:?}"))?;
    let mut command = command.disable_help_subcommand(true);
    command.build();
    write_pages(&command, dir).or_io(|| format!("cannot write manual pages to {dir:?}"))
}

fn write_pages(command: &clap::Command, dir: &Path) -> io::Result<()> {
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        write_pages(verb, dir)?;
    }
    let version = concat!("packfs ", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command.clone()).source(version).manual("packfs");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    write_exit_status(&mut page)?;
    if let Some(help) = command.get_after_long_help().or_else(|| command.get_after_help()) {
        write_as_typed(&help.to_string(), &mut page)?;
    }
    writeln!(page, ".SH VERSION\n{version}")?;
    std::fs::write(dir.join(man.get_filename()), page)
}

fn write_exit_status(page: &mut Vec<u8>) -> io::Result<()> {
    writeln!(page, ".SH \"EXIT STATUS\"")?;
    EXIT_STATUS.iter().try_for_each(|(code, meaning)| writeln!(page, ".TP\n\\fB{code}\\fR\n{meaning}"))
}

/// Writes the text after the options in `--help`: each heading begins a section, and lines are
/// unchanged.
fn write_as_typed(help: &str, page: &mut Vec<u8>) -> io::Result<()> {
    let mut is_as_typed = false;
    for line in help.lines() {
        let is_indented = line.starts_with(' ') || line.is_empty();
        if is_indented != is_as_typed {
            writeln!(page, "{}", if is_indented { ".nf" } else { ".fi" })?;
            is_as_typed = is_indented;
        }
        match line.strip_suffix(':').filter(|_| !is_indented) {
            Some(heading) => writeln!(page, ".SH \"{}\"", roff(&heading.to_uppercase()))?,
            None if is_indented => writeln!(page, "{}", roff(line))?,
            None => writeln!(page, ".PP\n{}", roff(line))?,
        }
    }
    if is_as_typed { writeln!(page, ".fi") } else { Ok(()) }
}

/// Escapes text for roff.
fn roff(text: &str) -> String {
    let escaped = text.replace('\\', "\\e").replace('-', "\\-").replace('"', "\\(dq").replace('\'', "\\(aq");
    if escaped.starts_with('.') { format!("\\&{escaped}") } else { escaped }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_keep_their_lines_in_a_section_of_their_own() {
        let mut page = Vec::new();
        write_as_typed("Examples:\n  packfs ls 'a\\b'\n  packfs cat -q\nExit code 1 if not.", &mut page)
            .unwrap();
        let page = String::from_utf8(page).unwrap();
        let expected = ".SH \"EXAMPLES\"\n.nf\n  packfs ls \\(aqa\\eb\\(aq\n  packfs cat \\-q\n.fi\n.PP\nExit code 1 if not.\n";
        assert_eq!(page, expected);
    }
}
