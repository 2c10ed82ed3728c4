//! Extract of the accounts for a page: names the largest entries, and sums up the rest.

use serde::Serialize;

use super::accounts::{Accounts, Entry};

/// Most files and folders named on a page.
pub const MAX_NODES: usize = 20_000;

/// Most bytes of their names on a page.
pub const MAX_NAMES_LEN: usize = 2 << 20;

/// Kind of a node; a number for scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A folder, or the image itself.
    Folder = 0,
    /// A file.
    File = 1,
    /// Files and folders of a folder that are too small to be named.
    Rest = 2,
    /// Structure that owns bytes outside file data.
    Owner = 3,
}

/// Tile of the map. The first is the image; inner tiles follow their outer one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Index of the outer tile.
    pub parent: usize,
    /// Escaped name.
    pub name: String,
    /// Kind.
    pub kind: Kind,
    /// Bytes of contents.
    pub len: u64,
    /// Bytes of the image.
    pub stored: u64,
    /// Bytes of `stored` in shared blocks.
    pub shared: u64,
    /// Codecs, see [`Entry::codecs`].
    pub codecs: u16,
    /// Number of files.
    pub files: u64,
}

impl Serialize for Node {
    /// Serializes a list, because pages hold many nodes.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { parent, name, kind, len, stored, shared, codecs, files } = self;
        (parent, name, *kind as u8, len, stored, shared, codecs, files).serialize(serializer)
    }
}

/// Nodes of a page.
pub struct Outline {
    /// Nodes, the image first.
    pub nodes: Vec<Node>,
}

impl Outline {
    /// Selects the largest entries, within the limits of number and of total length of names.
    pub fn of(accounts: &Accounts, max_nodes: usize, max_names_len: usize) -> Self {
        let entries = &accounts.entries;
        let mut order: Vec<usize> = (0..entries.len()).filter(|index| entries[*index].stored > 0).collect();
        // A folder has at least the size of its entries, and a lower index, so it comes first.
        order.sort_by_key(|index| (std::cmp::Reverse(entries[*index].stored), *index));
        let mut names_len = 0;
        let fits = |index: &usize| {
            names_len += embedded_len(&entries[*index].name);
            names_len <= max_names_len
        };
        let mut kept: Vec<usize> = order.into_iter().take(max_nodes).take_while(fits).collect();
        kept.sort_unstable();

        let mut nodes = vec![image(accounts)];
        let mut node_of = vec![usize::MAX; entries.len()];
        for index in kept {
            let entry = &entries[index];
            node_of[index] = nodes.len();
            let parent = if index == 0 { 0 } else { node_of[entry.parent as usize] };
            let kind = if entry.is_folder { Kind::Folder } else { Kind::File };
            let name = if index == 0 { "/".into() } else { entry.name.clone() };
            nodes.push(node(parent, name, kind, entry));
        }
        rest(entries, &node_of, &mut nodes);
        for (owner, len) in &accounts.owners {
            let name = (*owner).to_owned();
            let kind = Kind::Owner;
            nodes.push(Node { parent: 0, name, kind, len: 0, stored: *len, shared: 0, codecs: 0, files: 0 });
        }
        Self { nodes }
    }
}

fn image(accounts: &Accounts) -> Node {
    let root = accounts.entries.first();
    Node {
        parent: 0,
        name: "image".into(),
        kind: Kind::Folder,
        len: root.map_or(0, |root| root.len),
        stored: accounts.len(),
        shared: root.map_or(0, |root| root.shared),
        codecs: root.map_or(0, |root| root.codecs),
        files: root.map_or(0, |root| root.files),
    }
}

fn node(parent: usize, name: String, kind: Kind, entry: &Entry) -> Node {
    let Entry { len, stored, shared, codecs, files, .. } = *entry;
    Node { parent, name, kind, len, stored, shared, codecs, files }
}

/// Sums up folder by folder.
fn rest(entries: &[Entry], node_of: &[usize], nodes: &mut Vec<Node>) {
    let mut rest_of = vec![usize::MAX; nodes.len()];
    for (index, entry) in entries.iter().enumerate().skip(1) {
        let parent = node_of[entry.parent as usize];
        // Entries of an unnamed folder are counted with that folder.
        if node_of[index] != usize::MAX || parent == usize::MAX || entry.stored == 0 {
            continue;
        }
        if rest_of[parent] == usize::MAX {
            rest_of[parent] = nodes.len();
            let none = Entry { len: 0, stored: 0, shared: 0, codecs: 0, files: 0, ..entry.clone() };
            nodes.push(node(parent, String::new(), Kind::Rest, &none));
        }
        let rest = &mut nodes[rest_of[parent]];
        rest.len = rest.len.saturating_add(entry.len);
        rest.stored += entry.stored;
        rest.shared += entry.shared;
        rest.codecs |= entry.codecs;
        rest.files += entry.files;
    }
}

/// Upper bound: quotes and backslashes take two bytes, characters special to HTML six.
fn embedded_len(name: &str) -> usize {
    let byte_len = |byte| match byte {
        b'<' | b'>' | b'&' => 6,
        b'"' | b'\\' => 2,
        _ => 1,
    };
    name.bytes().map(byte_len).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(parent: u32, name: String, is_folder: bool, stored: u64) -> Entry {
        let files = u64::from(!is_folder);
        Entry { parent, name, is_folder, len: stored * 2, stored, shared: 0, codecs: 1, files }
    }

    /// A root, 400 folders, 300 files in each; later files are larger.
    fn many() -> Accounts {
        let mut entries = vec![entry(0, String::new(), true, 0)];
        for folder in 0..400_u64 {
            let index = u32::try_from(entries.len()).unwrap();
            entries.push(entry(0, format!("folder {folder}"), true, 0));
            for file in 0..300_u64 {
                entries.push(entry(index, format!("file {file}"), false, 1 + file * file + folder));
            }
        }
        Accounts::summed(entries, vec![("inode table", 5000), ("superblock", 96)])
    }

    /// Asserts that the children of every node add up to it.
    fn adds_up(nodes: &[Node]) {
        let mut sums = vec![(0, 0); nodes.len()];
        for (index, node) in nodes.iter().enumerate().skip(1) {
            assert!(node.parent < nodes.len() && node.parent != index);
            sums[node.parent].0 += node.stored;
            sums[node.parent].1 += node.files;
        }
        for (node, (stored, files)) in nodes.iter().zip(sums).filter(|(node, _)| node.kind == Kind::Folder) {
            assert_eq!((node.stored, node.files), (stored, files), "{}", node.name);
        }
    }

    #[test]
    fn a_hundred_thousand_files_fit_and_add_up() {
        let accounts = many();
        assert_eq!(accounts.entries.len(), 120_401);
        let outline = Outline::of(&accounts, MAX_NODES, MAX_NAMES_LEN);
        adds_up(&outline.nodes);
        assert_eq!(outline.nodes[0].stored, accounts.len());
        let by_name =
            outline.nodes.iter().filter(|node| matches!(node.kind, Kind::Folder | Kind::File)).count();
        assert_eq!(by_name, MAX_NODES + 1);
        assert!(crate::data(&outline.nodes).unwrap().len() < 2 << 20);
    }

    #[test]
    fn long_names_take_the_room_of_others() {
        let accounts = many();
        for (nodes, names_len) in [(20_000, 1000), (1, 1000), (0, 0), (usize::MAX, usize::MAX)] {
            let outline = Outline::of(&accounts, nodes, names_len);
            let names: usize = outline.nodes.iter().map(|node| node.name.len()).sum();
            assert!(names <= names_len.saturating_add(100), "{names}");
            if nodes > 0 {
                adds_up(&outline.nodes);
            }
        }
    }

    #[test]
    fn folders_come_before_what_is_in_them() {
        let outline = Outline::of(&many(), 1000, MAX_NAMES_LEN);
        for (index, node) in outline.nodes.iter().enumerate().skip(1) {
            assert!(node.parent < index, "{index}");
        }
    }
}
