//! Command lines of all subjects.

use std::path::Path;

use super::makers::tests::{named as maker, recipe};
use super::table::TABLE;
use super::writable::tests::named as writable;
use super::{Input, Unpack, Unpacker};
use crate::results::Missing;

/// Returns the command line that does `task` of `of`.
fn spelled(task: &str, of: &'static str) -> Result<String, Missing> {
    let image = Path::new("i");
    let unpack = |task: Unpack| {
        let row = TABLE.own_unpackers.iter().chain(&TABLE.unpackers).find(|row| row.name == of).unwrap();
        let command = Unpacker::in_bin(&row.name, &row.kind).command(&task, image, 4);
        let none = Missing { what: of.into(), why: "no such task".into() };
        command.map(|command| command.spelled()).ok_or(none)
    };
    let (name, rest) = of.split_once(':').unwrap_or((of, ""));
    let recipe = || recipe(name, rest);
    let make = |input: Input| maker(name).command(&recipe(), &input, image, 4).map(|it| it.spelled());
    match task {
        "dir" => make(Input::Dir("d".into())),
        "tar" => make(Input::Tar("t.tar".into())),
        "to-tar" => unpack(Unpack::Tar),
        "to-dir" => unpack(Unpack::Dir("o".into())),
        "to-list" => unpack(Unpack::List),
        "disk" => writable(name).command(&recipe(), Path::new("/dev/loop7")).map(|it| it.spelled()),
        _ => writable(name).mount_options(&recipe()),
    }
}

#[test]
fn each_task_has_its_command_line_or_a_reason() {
    let lines =
        include_str!("commands.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    for line in lines {
        let (task, rest) = line.split_once(' ').unwrap();
        if let Some((of, word)) = rest.split_once(" -! ") {
            let missing = spelled(task, of).unwrap_err();
            assert!(!missing.what.is_empty() && missing.why.contains(word), "{line}: {missing:?}");
            continue;
        }
        let (of, command) = rest.split_once(" ->").unwrap();
        assert_eq!(
            spelled(task, of).unwrap_or_else(|why| panic!("{line}: {why:?}")),
            command.trim(),
            "{line}"
        );
    }
}
