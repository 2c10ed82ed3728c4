//! The options that the help of squashfs-tools lists, each of which packfs takes; those without
//! effect and those that are refused stand in `docs/guide/names.md`.

use packfs_testkit::peer_since;
use std::collections::BTreeMap;
use std::process::Command;

/// Options by name, each with the rest of its line.
type Options = BTreeMap<String, String>;

/// Returns the text that a program prints for `-help-all`.
fn help(mut command: Command) -> String {
    let output = command.args(["-help-all"]).env("COLUMNS", "80").env_remove("PAGER").output().unwrap();
    String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
}

/// Reads the options of the original's help: `-d[est] <pathname>  text`.
fn of_original(text: &str) -> Options {
    let mut options = Options::new();
    for line in text.lines().map(str::trim_start).filter(|line| line.starts_with('-')) {
        let (word, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
        let rest = rest.trim_start().to_owned();
        let (short, more) = word.split_once('[').unwrap_or((word, ""));
        let names = [short.to_owned(), format!("{short}{}", more.trim_end_matches(']'))];
        let is_name = |name: &String| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        for name in names.into_iter().filter(is_name) {
            // Texts about others begin with a name, too, and stand behind its own line.
            options.entry(name).or_insert_with(|| rest.clone());
        }
    }
    options
}

/// Reads the options of packfs's help: `  -d, --dest VALUE (accepted, without effect)`.
fn of_ours(text: &str) -> Options {
    let text = text.split("available:").next().unwrap().replace("\n      ", " ");
    let mut options = Options::new();
    for line in text.lines().map(str::trim_start).filter(|line| line.starts_with('-')) {
        let named = line.split_inclusive(", ").take_while(|word| word.starts_with('-'));
        let names: Vec<&str> = named.collect();
        let rest = &line[names.concat().len()..];
        let last = names.last().unwrap().trim_end_matches(", ");
        let (last, value) = last.split_once(' ').unwrap_or((last, ""));
        for name in names[..names.len() - 1].iter().map(|name| name.trim_end_matches(", ")).chain([last]) {
            options.insert(name.to_owned(), format!("{value}{rest}"));
        }
    }
    options
}

#[test]
fn the_guide_names_what_has_no_effect_of_each_option_in_the_originals_help() {
    let guide = include_str!("../../../../../docs/guide/names.md");
    let mut faults = Vec::new();
    for tool in ["mksquashfs", "sqfstar", "unsquashfs", "sqfscat"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_packfs"));
        command.args(["as", tool]);
        let ours = of_ours(&help(command));
        let of_tool = format!("`{tool}`");
        let is_listed = |name: &str| {
            let name = format!("`{name}`");
            guide.lines().any(|line| line.starts_with('|') && line.contains(&of_tool) && line.contains(&name))
        };
        for (name, rest) in &ours {
            let acts = !rest.contains("without effect") && !rest.contains("not supported");
            if !acts && !is_listed(name) {
                faults.push(format!("{tool} {name}{rest}: not in the guide"));
            }
        }
        let Some(peer) = peer_since(tool, "4.7.5") else { continue };
        let theirs = of_original(&help(peer.command(&[])));
        assert!(theirs.len() > 8, "{tool}: {theirs:?}");
        for (name, rest) in theirs {
            match ours.get(&name) {
                None => faults.push(format!("{tool} {name}: unknown")),
                Some(own) if rest.starts_with('<') && !own.contains("VALUE") => {
                    faults.push(format!("{tool} {name} {rest}: {own:?} here"));
                }
                Some(_) => {}
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
