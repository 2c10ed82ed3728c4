//! Rows of `images.txt`.

use std::path::{Path, PathBuf};

/// The version in Cargo.toml.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// An image: its source, its options, and its digests in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub name: String,
    /// Name of its tree.
    pub source: String,
    /// Options of `packfs pack`, by name and value.
    pub options: Vec<(String, String)>,
    /// SHA-256 of the image.
    pub image: String,
    /// Digest of the tree that is read of it.
    pub tree_read: String,
}

impl Row {
    pub fn format(&self) -> &str {
        let format = self.options.iter().find(|(name, _)| name == "format");
        format.map_or_else(|| panic!("{} has no format", self.name), |(_, value)| value)
    }

    /// Name of its file, if it is kept.
    pub fn file(&self) -> String {
        format!("{}.zst", self.name)
    }
}

/// Returns true if the image is small enough to be kept.
pub fn kept(row: &Row) -> bool {
    ["few", "tiny"].contains(&&*row.source)
}

pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub fn folder(version: &str) -> PathBuf {
    repository().join("testdata/releases").join(version)
}

/// Returns the versions that have a folder, oldest first.
pub fn versions() -> Vec<String> {
    let entries = std::fs::read_dir(folder("")).unwrap().map(|entry| entry.unwrap().file_name());
    let mut versions: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
    versions.sort_by_key(|version| {
        version.split(['.', '-']).map(|part| part.parse().unwrap_or(0)).collect::<Vec<u64>>()
    });
    versions
}

pub fn parsed(text: &str) -> Vec<Row> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [name, source, options @ .., image, tree_read] = &words[..] else { panic!("{line}") };
            let options = options.iter().map(|word| word.split_once('=').unwrap_or_else(|| panic!("{line}")));
            Row {
                name: (*name).into(),
                source: (*source).into(),
                options: options.map(|(name, value)| (name.into(), value.into())).collect(),
                image: (*image).into(),
                tree_read: (*tree_read).into(),
            }
        })
        .collect()
}

const HEAD: &str = "\
# Images of packfs: name, tree, options of `packfs pack`, SHA-256 of the image, digest of the tree read.
# A new row has - for both digests. PACKFS_WRITE_DOCUMENTS=1 cargo test -p packfs releases::
# writes them, and the images of the trees `few` and `tiny` beside this file.
";

pub fn text(rows: &[Row]) -> String {
    let lines = rows.iter().map(|row| {
        let options: Vec<String> =
            row.options.iter().map(|(name, value)| format!("{name}={value}")).collect();
        format!("{} {} {} {} {}\n", row.name, row.source, options.join(" "), row.image, row.tree_read)
    });
    lines.fold(HEAD.to_owned(), |text, line| text + &line)
}
