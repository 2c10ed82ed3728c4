//! The import table of ARCHITECTURE.md: rows of `| crate | may import | ... |` below the heading of
//! the map.

use std::collections::BTreeMap;
use std::path::Path;

use crate::failure::{Failure, Result};

const HEADING: &str = "## Map";

pub type Allowed = BTreeMap<String, Vec<String>>;

pub fn read(root: &Path) -> Result<Allowed> {
    let path = root.join("ARCHITECTURE.md");
    let text = std::fs::read_to_string(&path).map_err(|error| Failure::io("read", &path, error))?;
    parse(&text).map_err(|why| Failure::new(format!("{}: {why}", path.display())))
}

fn parse(text: &str) -> std::result::Result<Allowed, String> {
    let section = text.lines().skip_while(|line| line.trim() != HEADING).skip(1);
    let lines = section.take_while(|line| !line.starts_with("## "));
    let mut rows = lines.filter_map(cells);
    match rows.next() {
        Some(head) if head.first().is_some_and(|cell| cell == "crate") => {}
        _ => return Err(format!("no table `| crate | may import |` under {HEADING:?}")),
    }
    let mut allowed = Allowed::new();
    for row in rows.filter(|row| !is_rule(row)) {
        let [name, imports, ..] = &row[..] else { return Err(format!("row {row:?} has one cell")) };
        let imports = if imports == "-" { vec![] } else { names(imports) };
        if allowed.insert(name.clone(), imports).is_some() {
            return Err(format!("{name} has two rows"));
        }
    }
    for (name, imports) in &allowed {
        if let Some(unknown) = imports.iter().find(|import| !allowed.contains_key(*import)) {
            return Err(format!("{name} may import {unknown}, which has no row"));
        }
    }
    Ok(allowed)
}

/// Returns the cells of a row without blanks and backticks; none for other lines.
fn cells(line: &str) -> Option<Vec<String>> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    Some(inner.split('|').map(|cell| cell.trim().replace('`', "")).collect())
}

fn is_rule(row: &[String]) -> bool {
    row.iter().all(|cell| cell.chars().all(|c| c == '-' || c == ':') && cell.len() > 1)
}

fn names(cell: &str) -> Vec<String> {
    cell.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "# A\n| crate | other |\n|---|---|\n| no | part |\n\n## Map\n\nWords.\n\n\
        | crate | may import |\n|---|:--|\n| core | - |\n| `read` | core |\n| sink | `core`, read |\n\n## Next\n| crate | x |\n";

    #[test]
    fn reads_the_rows_under_its_heading_only() {
        let allowed = parse(GOOD).unwrap();
        assert_eq!(allowed.keys().collect::<Vec<_>>(), ["core", "read", "sink"]);
        assert_eq!(allowed["core"], Vec::<String>::new());
        assert_eq!(allowed["sink"], ["core", "read"]);
    }

    #[test]
    fn refuses_a_file_without_the_table() {
        assert!(parse("# A\n").is_err());
        assert!(parse("## Map\n\nnothing\n").is_err());
    }

    #[test]
    fn refuses_a_row_that_names_a_crate_without_one() {
        let text = GOOD.replace("| `read` | core |", "| `read` | cores |");
        assert_eq!(parse(&text).unwrap_err(), "read may import cores, which has no row");
    }

    #[test]
    fn refuses_two_rows_for_one_crate() {
        let text = GOOD.replace("| `read` | core |", "| core | - |");
        assert_eq!(parse(&text).unwrap_err(), "core has two rows");
    }
}
