//! Names of users and groups in headers and access lists, converted to ids of this machine.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::io::Read;
use std::path::Path;

/// Most bytes of a table; longer ones count as empty.
const TABLE_LEN_MAX: u64 = 64 << 20;

/// Each table is read on first use.
#[derive(Default)]
pub(super) struct Ids {
    users: OnceCell<Table>,
    groups: OnceCell<Table>,
}

type Table = HashMap<String, u32>;

impl Ids {
    /// `name` may be a number; `None` for an unknown name.
    pub(super) fn user(&self, name: &str) -> Option<u32> {
        name.parse().ok().or_else(|| self.user_named(name))
    }

    pub(super) fn user_named(&self, name: &str) -> Option<u32> {
        id(name, &self.users, "/etc/passwd")
    }

    pub(super) fn group(&self, name: &str) -> Option<u32> {
        name.parse().ok().or_else(|| self.group_named(name))
    }

    pub(super) fn group_named(&self, name: &str) -> Option<u32> {
        id(name, &self.groups, "/etc/group")
    }
}

fn id(name: &str, table: &OnceCell<Table>, path: &str) -> Option<u32> {
    table.get_or_init(|| read(Path::new(path))).get(name).copied()
}

/// A table that cannot be read, as in a sandbox, is empty.
fn read(path: &Path) -> Table {
    let mut bytes = Vec::new();
    let outcome = std::fs::File::open(path)
        .and_then(|file| file.take(TABLE_LEN_MAX + 1).read_to_end(&mut bytes))
        .unwrap_or(0);
    if outcome as u64 > TABLE_LEN_MAX { Table::new() } else { parsed(&String::from_utf8_lossy(&bytes)) }
}

/// Lines such as `games:x:5:60:games:/usr/games:/bin/sh`; the first one of a name counts.
fn parsed(text: &str) -> Table {
    let mut table = Table::new();
    for line in text.lines().filter(|line| !line.starts_with(['#', '+', '-'])) {
        let mut fields = line.split(':');
        if let (Some(name), Some(Ok(id))) = (fields.next(), fields.nth(1).map(str::parse)) {
            table.entry(name.to_owned()).or_insert(id);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::{Ids, parsed};

    #[test]
    fn reads_names_and_passes_over_what_is_none() {
        let table =
            parsed("root:x:0:0::/:/bin/sh\n# c:x:1:\n+nis:x:2:\nshort\ngames:x:5:60:::\nroot:x:7:0:::\n");
        assert_eq!((table.len(), table["root"], table["games"]), (2, 0, 5));
    }

    #[test]
    fn numbers_need_no_table() {
        assert_eq!(Ids::default().user("4294967294"), Some(u32::MAX - 1));
        assert_eq!(Ids::default().user("root"), Some(0));
        assert_eq!(Ids::default().group("no such group: here"), None);
    }
}
