//! Checks the commands in documents against the command line.

use clap::Command;
use std::path::{Path, PathBuf};

/// Documents about the past: their commands may no longer exist.
const RECORDS: [&str; 2] = ["notebook", "CHANGELOG.md"];

fn documents(folder: &Path, found: &mut Vec<PathBuf>) {
    for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = path.file_name().unwrap().to_str().unwrap();
        if RECORDS.contains(&name) {
            continue;
        }
        if path.is_dir() && (folder.ends_with("docs") || name == "docs") {
            documents(&path, found);
        } else if name.ends_with(".md") {
            found.push(path);
        }
    }
}

/// Commands in fenced blocks, one per line, and between backticks.
fn commands(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (index, part) in text.split("```").enumerate() {
        if index % 2 == 1 {
            found.extend(part.replace("\\\n", " ").lines().map(str::to_owned));
        } else {
            found.extend(part.split('`').skip(1).step_by(2).map(|quoted| quoted.replace('\n', " ")));
        }
    }
    found.iter().flat_map(|line| simple_commands(line)).collect()
}

/// Splits a line at operators of the shell.
fn simple_commands(line: &str) -> Vec<String> {
    let line = line.split(" #").next().unwrap_or(line);
    let parts = line.split(['|', ';', '&', '(', ')', '>']).map(|part| {
        let part = part.trim().trim_start_matches("$ ");
        part.trim_start_matches("sudo ").to_owned()
    });
    parts.filter(|part| part.starts_with("packfs ")).collect()
}

/// Names an option or verb that the command line does not have.
fn fault(whole: &Command, typed: &str) -> Option<String> {
    let mut words = typed.split_whitespace().skip(1).peekable();
    let name = words.next()?;
    if name.starts_with('-') || !name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-') {
        return None;
    }
    let Some(verb) = whole.find_subcommand(name) else {
        // Salts of dm-verity are named like verbs, too.
        return Some(format!("no verb {name}")).filter(|_| !name.contains('-'));
    };
    // The program of the laboratory reads these words.
    if matches!(name, "lab" | "advise") {
        return None;
    }
    let action = words.peek().and_then(|action| verb.find_subcommand(action));
    let verb = action.unwrap_or(verb);
    let options = words.filter_map(|word| word.strip_prefix("--")).filter(|word| !word.is_empty());
    for option in options {
        let option =
            option.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).next().unwrap_or(option);
        let is_it = |arg: &clap::Arg| {
            arg.get_long() == Some(option)
                || arg.get_all_aliases().is_some_and(|aliases| aliases.contains(&option))
        };
        if !verb.get_arguments().any(is_it) && !matches!(option, "help" | "version") {
            return Some(format!("{name} has no option --{option}"));
        }
    }
    None
}

#[test]
fn every_command_in_the_documents_is_one_that_packfs_takes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (whole, mut paths, mut count) = (super::command(), Vec::new(), 0);
    documents(&root, &mut paths);
    let mut faults = Vec::new();
    for path in paths {
        for typed in commands(&std::fs::read_to_string(&path).unwrap()) {
            count += 1;
            faults.extend(fault(&whole, &typed).map(|fault| format!("{}: {typed}: {fault}", path.display())));
        }
    }
    assert!(count > 100, "{count} commands found");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_verb_or_an_option_that_is_gone_is_a_fault() {
    let whole = super::command();
    let found =
        |text: &str| commands(text).iter().filter_map(|typed| fault(&whole, typed)).collect::<Vec<_>>();
    assert_eq!(found("`packfs fold a b`"), ["no verb fold"]);
    assert_eq!(found("`packfs oci push a b --all`"), ["oci has no option --all"]);
    assert_eq!(
        found("```\n$ tar c . | packfs pack - a \\\n  --colour=red\n```"),
        ["pack has no option --colour"]
    );
    assert_eq!(found("`packfs pack a b --codec=zstd --no-verify` and `packfs VERB --none`"), [""; 0]);
}
