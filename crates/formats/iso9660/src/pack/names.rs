//! Valid ISO 9660 and Joliet names, unique within a directory.

use packfs_core::{Entry, Tree};
use std::collections::{HashMap, HashSet};

/// Maximum length of a file's name and extension together, and of a directory's name (ECMA-119
/// 7.5.1, 7.6.3).
const FILE_NAME_MAX: usize = 30;
const DIR_NAME_MAX: usize = 31;
/// Maximum length of the extension, within that.
const EXTENSION_MAX: usize = 10;

/// Names used in a directory.
#[derive(Default)]
struct Given<T> {
    names: HashSet<T>,
    /// Last number tried to make a name unique, by truncated name.
    numbers: HashMap<T, u32>,
}

impl<T: Clone + Eq + std::hash::Hash> Given<T> {
    fn give(&mut self, name: T, numbered: impl Fn(&T, &str) -> T) -> T {
        if self.names.insert(name.clone()) {
            return name;
        }
        let number = self.numbers.entry(name.clone()).or_insert(0);
        loop {
            let other = numbered(&name, &format!("{number:03}"));
            *number += 1;
            if self.names.insert(other.clone()) {
                return other;
            }
        }
    }
}

/// Returns names of ISO 9660, level 3, for the entries of a directory, as stored in records.
pub(super) fn iso<'a>(tree: &Tree, entries: impl Iterator<Item = Entry<'a>>) -> Vec<Vec<u8>> {
    let mut given = Given::default();
    let mut name = |entry: Entry<'_>| {
        let is_dir = tree.node(entry.node).is_dir();
        let max = if is_dir { DIR_NAME_MAX } else { FILE_NAME_MAX };
        let parts = if is_dir { (allowed(entry.name, max), Vec::new()) } else { file_parts(entry.name) };
        let numbered = |(name, extension): &(Vec<u8>, Vec<u8>), number: &str| {
            let mut name = name.clone();
            name.truncate(max - extension.len() - number.len());
            name.extend_from_slice(number.as_bytes());
            (name, extension.clone())
        };
        let (name, extension) = given.give(parts, numbered);
        if is_dir { name } else { [&name[..], b".", &extension, b";1"].concat() }
    };
    entries.map(&mut name).collect()
}

fn file_parts(name: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let dot = name.iter().rposition(|&byte| byte == b'.').filter(|&dot| dot > 0);
    let (name, extension) = match dot {
        Some(dot) => (&name[..dot], &name[dot + 1..]),
        None => (name, &b""[..]),
    };
    let extension = allowed(extension, EXTENSION_MAX);
    (allowed(name, FILE_NAME_MAX - extension.len()), extension)
}

/// Keeps capital letters, digits, and underscores, up to `max`.
fn allowed(name: &[u8], max: usize) -> Vec<u8> {
    let letter = |&byte: &u8| if byte.is_ascii_alphanumeric() { byte.to_ascii_uppercase() } else { b'_' };
    name.iter().take(max).map(letter).collect()
}

/// Returns Joliet names of at most `max` units, as stored in records; `None` for entries that are
/// neither directories nor files.
pub(super) fn joliet<'a>(
    tree: &Tree,
    entries: impl Iterator<Item = Entry<'a>>,
    max: usize,
) -> Vec<Option<Vec<u8>>> {
    let mut given = Given::default();
    let mut name = |entry: Entry<'_>| {
        let kind = &tree.node(entry.node).kind;
        let version = match kind.file_type() {
            packfs_core::FileType::Directory => "",
            packfs_core::FileType::File => ";1",
            _ => return None,
        };
        let max = max - version.len();
        let numbered = |name: &String, number: &str| cut(name, max - number.len()) + number;
        let name = given.give(cut(&joliet_text(entry.name), max), numbered) + version;
        Some(name.encode_utf16().flat_map(u16::to_be_bytes).collect())
    };
    entries.map(&mut name).collect()
}

/// Removes characters that Joliet does not permit, and trailing dots, which readers drop.
fn joliet_text(name: &[u8]) -> String {
    let text = String::from_utf8_lossy(name);
    let kept = text.trim_end_matches('.').len();
    let letter = |(at, c): (usize, char)| match c {
        '*' | '/' | ':' | ';' | '?' | '\\' | char::REPLACEMENT_CHARACTER => '_',
        '.' if at >= kept => '_',
        c if c.is_control() => '_',
        c => c,
    };
    text.char_indices().map(letter).collect()
}

/// Truncates a text to `max` units of UTF-16; dots at the new end become underscores.
fn cut(text: &str, max: usize) -> String {
    let mut units = 0;
    let kept = text.chars().take_while(|c| {
        units += c.len_utf16();
        units <= max
    });
    let mut kept: String = kept.collect();
    if kept.ends_with('.') {
        kept.pop();
        kept.push('_');
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_core::{ContentId, ImagePath, Meta, NodeId, NodeKind, TreeBuilder, Xattrs};

    fn tree(names: &[&str]) -> Tree {
        let mut builder = TreeBuilder::new(Meta::default());
        for name in names {
            let (name, kind) = match name.strip_suffix('/') {
                Some(name) => (name, NodeKind::Directory),
                None => (*name, NodeKind::File { len: 1, content: ContentId(0) }),
            };
            builder
                .add(&ImagePath::parse(name.as_bytes()).unwrap(), kind, Meta::default(), Xattrs::new())
                .unwrap();
        }
        builder.finish().unwrap()
    }

    #[test]
    fn iso_names_are_allowed_and_all_different() {
        let long = "x".repeat(40);
        let tree = tree(&[
            "README",
            "readme",
            "Read.Me.txt",
            ".hidden",
            "a.b/",
            "a_b",
            &long,
            &format!("{long}y"),
            "n.",
        ]);
        let names = iso(&tree, tree.entries(NodeId::ROOT));
        let names: Vec<_> = names.into_iter().map(|name| String::from_utf8(name).unwrap()).collect();
        let x30 = "X".repeat(30);
        let x27 = format!("{}000", "X".repeat(27));
        assert_eq!(
            names,
            [
                "_HIDDEN.;1",
                "README.;1",
                "READ_ME.TXT;1",
                "A_B",
                "A_B000.;1",
                "N.;1",
                "README000.;1",
                &format!("{x30}.;1"),
                &format!("{x27}.;1")
            ]
        );
    }

    #[test]
    fn thousands_of_equal_beginnings_stay_different() {
        let names: Vec<String> = (0..3000).map(|number| format!("{}{number}", "n".repeat(40))).collect();
        let tree = tree(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let names: HashSet<_> = iso(&tree, tree.entries(NodeId::ROOT)).into_iter().collect();
        assert_eq!(names.len(), 3000);
        assert!(names.iter().all(|name| name.len() <= FILE_NAME_MAX + 3));
    }

    #[test]
    fn joliet_names_keep_what_they_can() {
        let long = "\u{1f600}".repeat(60);
        let tree = tree(&["a:b", "a;b", "dot.", "dir./", &long]);
        let names = joliet(&tree, tree.entries(NodeId::ROOT), 64);
        let text = |name: &Vec<u8>| String::from_utf8(crate::names::joliet(name)).unwrap();
        let names: Vec<_> = names.iter().flatten().map(text).collect();
        assert_eq!(names, ["a_b", "a_b000", "dir_", "dot_", &"\u{1f600}".repeat(31)]);
    }
}
