//! Measures of each crate that may only fall. Their values are listed in a file, one a line and
//! sorted, so that changes of several crates do not meet: `cargo xtask tidy --lower` writes it.

use std::collections::BTreeMap;
use std::path::Path;

use super::format_names;
use super::measures::{Glossary, MEASURES};
use super::sources::File;
use crate::failure::{Failure, Result};

const LIST: &str = "xtask/falling.txt";
const STYLE: &str = "docs/style.md";
/// Head of the table of words to avoid.
const WORDS: &str = "| word | write instead |";

/// Values by crate and measure.
type Values = BTreeMap<(String, String), usize>;

/// Returns the measures that are above their listed values, and rows of the list without a crate.
pub fn check(root: &Path, files: &[File]) -> Result<Vec<String>> {
    let (listed, found) = (parse(&read(root, LIST)?)?, measured(root, files)?);
    Ok(faults(&listed, &found))
}

/// Writes the values of today to the list where they are lower than listed, and those of new
/// crates.
pub fn lower(root: &Path, files: &[File]) -> Result<()> {
    let path = root.join(LIST);
    let text = if path.exists() { read(root, LIST)? } else { String::new() };
    let text = printed(&lowered(&parse(&text)?, &measured(root, files)?));
    std::fs::write(&path, text).map_err(|error| Failure::io("write", &path, error))
}

fn measured(root: &Path, files: &[File]) -> Result<Values> {
    let words = glossary(&read(root, STYLE)?);
    if words.is_empty() {
        return Err(Failure::new(format!("{STYLE} has no table {WORDS:?}")));
    }
    let glossary = Glossary { words, formats: format_names::names(files) };
    let mut values = Values::new();
    for file in files {
        let Some(package) = package(&file.path) else { continue };
        for measure in &MEASURES {
            let row = values.entry((package.to_owned(), measure.name.to_owned())).or_default();
            *row += (measure.of_file)(file, &glossary);
        }
    }
    values.retain(|_, value| *value > 0);
    for measure in &MEASURES {
        let rows = values.iter_mut().filter(|((_, name), _)| name == measure.name);
        rows.for_each(|(_, value)| *value = value.next_multiple_of(measure.step));
    }
    Ok(values)
}

/// Returns the folder of the crate that a file belongs to.
fn package(path: &str) -> Option<&str> {
    let end = ["/src/", "/tests/", "/benches/", "/examples/", "/fuzz_targets/"]
        .iter()
        .filter_map(|part| path.find(part))
        .min();
    end.map(|end| &path[..end])
}

/// Returns the words in the first column of the table, each form of a row one.
fn glossary(style: &str) -> Vec<String> {
    let rows = style.lines().skip_while(|line| !line.starts_with(WORDS)).skip(2);
    let cells = rows.take_while(|line| line.starts_with('|')).filter_map(|line| line.split('|').nth(1));
    let words = cells.flat_map(|cell| cell.split(',')).map(|word| word.trim().to_lowercase());
    words.collect()
}

fn faults(listed: &Values, found: &Values) -> Vec<String> {
    let above = found.iter().filter_map(|(row, &value)| {
        let most = listed.get(row).copied().unwrap_or(0);
        let (package, measure) = row;
        (value > most)
            .then(|| format!("{package} has {value} {measure}, at most {most} are listed in {LIST}"))
    });
    let is_crate = |package: &str| found.keys().any(|(found, _)| found == package);
    let gone = listed.keys().filter(|(package, _)| !is_crate(package));
    let gone =
        gone.map(|(package, measure)| format!("{LIST} lists {measure} of {package}, which is no crate"));
    above.chain(gone).collect()
}

/// Returns the lower one of each pair of values. Rows of crates that the list does not name are
/// new; a measure that a listed crate did not have stays at 0.
fn lowered(listed: &Values, found: &Values) -> Values {
    let is_listed = |package: &str| listed.keys().any(|(listed, _)| listed == package);
    let rows = found.iter().filter_map(|(row, &value)| match listed.get(row) {
        Some(&most) => Some((row.clone(), value.min(most))),
        None => (!is_listed(&row.0)).then(|| (row.clone(), value)),
    });
    rows.collect()
}

fn parse(text: &str) -> Result<Values> {
    let rows = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).map(|line| {
        let wrong = || Failure::new(format!("{LIST}: {line:?} is not `CRATE MEASURE COUNT`"));
        let [package, measure, value] = line.split(' ').collect::<Vec<_>>()[..] else { return Err(wrong()) };
        let value = value.parse().map_err(|_| wrong())?;
        Ok(((package.to_owned(), measure.to_owned()), value))
    });
    rows.collect()
}

fn printed(values: &Values) -> String {
    let head =
        "# Written by `cargo xtask tidy --lower`. A value is raised by hand, in a commit that says why.\n";
    let rows = values.iter().map(|((package, measure), value)| format!("{package} {measure} {value}\n"));
    [head.to_owned()].into_iter().chain(rows).collect()
}

fn read(root: &Path, name: &str) -> Result<String> {
    let path = root.join(name);
    std::fs::read_to_string(&path).map_err(|error| Failure::io("read", &path, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(rows: &[(&str, &str, usize)]) -> Values {
        rows.iter()
            .map(|(package, measure, value)| (((*package).into(), (*measure).into()), *value))
            .collect()
    }

    #[test]
    fn a_value_that_rises_is_a_fault_and_lowering_takes_what_is_lower_alone() {
        let listed = values(&[("crates/a", "x", 5), ("crates/a", "y", 2), ("crates/gone", "x", 1)]);
        let found = values(&[
            ("crates/a", "x", 6),
            ("crates/a", "y", 1),
            ("crates/a", "z", 1),
            ("crates/new", "x", 3),
        ]);
        assert_eq!(
            faults(&listed, &found),
            [
                "crates/a has 6 x, at most 5 are listed in xtask/falling.txt",
                "crates/a has 1 z, at most 0 are listed in xtask/falling.txt",
                "crates/new has 3 x, at most 0 are listed in xtask/falling.txt",
                "xtask/falling.txt lists x of crates/gone, which is no crate",
            ]
        );
        let lower = lowered(&listed, &found);
        assert_eq!(lower, values(&[("crates/a", "x", 5), ("crates/a", "y", 1), ("crates/new", "x", 3)]));
        assert_eq!(parse(&printed(&lower)).unwrap(), lower);
        assert!(parse("crates/a x\n").is_err() && parse("crates/a x many\n").is_err());
    }

    #[test]
    fn words_to_avoid_come_from_the_table_of_the_style_guide() {
        let style = "# Style\n\n| word | write instead | example |\n|---|---|---|\n\
            | place | position, offset | |\n| what is, what was | the noun | |\n\n| other | table |\n";
        assert_eq!(glossary(style), ["place", "what is", "what was"]);
        assert_eq!(package("crates/formats/erofs/src/pack/mod.rs"), Some("crates/formats/erofs"));
        assert_eq!(package("crates/cli/tests/src/a.rs"), Some("crates/cli"));
    }
}
