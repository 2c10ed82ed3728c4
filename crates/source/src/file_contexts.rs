//! SELinux labels by path, from the `file_contexts` files of policies.
//!
//! A line contains a regular expression for a whole path, an optional file type, and a label:
//! `/bin(/.*)? -- system:object:bin`. A line without special characters names one path and takes
//! precedence over expressions; otherwise the last match wins, as in libselinux (selabel_file(5)).

use packfs_core::{Error, FileType, ImagePath, Result, ResultExt, Tree, last_line};
use regex::bytes::{Regex, RegexBuilder};
use std::collections::HashMap;
use std::path::Path;

/// Attribute that holds a label. Its value ends with a NUL, as set by setfiles(8) and the kernel.
const SELINUX_XATTR: &[u8] = b"security.selinux";
/// Placeholder for files without a label.
const NO_LABEL: &str = "<<none>>";

/// Labels by path.
#[derive(Clone, Debug, Default)]
pub struct FileContexts {
    rows: Vec<Row>,
    literals: HashMap<Vec<u8>, Vec<usize>>,
    /// Rows of expressions that start with the name of a directory in the root, by name.
    below: HashMap<Vec<u8>, Vec<usize>>,
    anywhere: Vec<usize>,
    at: ImagePath,
}

#[derive(Clone, Debug)]
struct Row {
    beginning: Vec<u8>,
    /// The expression; `None` if `beginning` is the whole path.
    pattern: Option<Regex>,
    file_type: Option<FileType>,
    /// Label with its NUL; `None` if there is none.
    label: Option<Vec<u8>>,
}

impl FileContexts {
    /// Reads a file of a policy.
    ///
    /// Errors: `Io`; `Usage` for an invalid line, with its number.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).or_io(|| format!("cannot read {path:?}"))?;
        FileContexts::parse(&text).map_err(|error| error.at(format!("{path:?}")))
    }

    /// Parses the text of such a file.
    ///
    /// Errors: `Usage` for an invalid line, with its number.
    pub fn parse(text: &str) -> Result<Self> {
        let mut contexts = FileContexts::default();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if !line.is_empty() && !line.starts_with('#') {
                contexts.add(line).map_err(|error| error.at(format!("line {}", index + 1)))?;
            }
        }
        Ok(contexts)
    }

    /// Sets the mount point of the image, because policies contain absolute paths.
    #[must_use]
    pub fn mounted_at(mut self, path: ImagePath) -> Self {
        self.at = path;
        self
    }

    fn add(&mut self, line: &str) -> Result<()> {
        let mut words = line.split_whitespace();
        let (Some(expression), Some(second), third, None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(Error::usage(format!("{line:?}: EXPRESSION [-TYPE] LABEL is allowed")));
        };
        let (file_type, label) = match third {
            Some(label) => (type_of(second)?, label),
            None => (None, second),
        };
        let (beginning, is_literal) = beginning_of(expression);
        let pattern = if is_literal { None } else { Some(compile(expression)?) };
        let label = (label != NO_LABEL).then(|| [label.as_bytes(), b"\0"].concat());
        let index = self.rows.len();
        match first_directory(&beginning) {
            _ if is_literal => self.literals.entry(beginning.clone()).or_default().push(index),
            Some(name) => self.below.entry(name.to_vec()).or_default().push(index),
            None => self.anywhere.push(index),
        }
        self.rows.push(Row { beginning, pattern, file_type, label });
        Ok(())
    }

    /// Returns the label of a path of the image, with its NUL, if one matches.
    pub fn label(&self, path: &ImagePath, file_type: FileType) -> Option<&[u8]> {
        let mut full = Vec::with_capacity(path.as_bytes().len() + self.at.as_bytes().len() + 2);
        for part in [&self.at, path].into_iter().filter(|part| !part.is_root()) {
            full.push(b'/');
            full.extend_from_slice(part.as_bytes());
        }
        if full.is_empty() {
            full.push(b'/');
        }
        let is_about = |index: &&usize| self.rows[**index].matches(&full, file_type);
        let last = |rows: &[usize]| rows.iter().rev().find(is_about).copied();
        let literal = self.literals.get(&full).and_then(|rows| last(rows));
        let found = literal.or_else(|| {
            let below = first_directory(&full).and_then(|name| self.below.get(name));
            last(&self.anywhere).max(below.and_then(|rows| last(rows)))
        });
        self.rows[found?].label.as_deref()
    }
}

impl Row {
    fn matches(&self, path: &[u8], file_type: FileType) -> bool {
        self.file_type.is_none_or(|wanted| wanted == file_type)
            && path.starts_with(&self.beginning)
            && self.pattern.as_ref().is_none_or(|pattern| pattern.is_match(path))
    }
}

/// Files without a matching line keep their label.
pub(crate) fn label_all(tree: &Tree, contexts: &FileContexts) -> Result<Tree> {
    tree.edit(|path, _, edited| {
        if let Some(label) = contexts.label(path, edited.kind.file_type()) {
            edited.xattrs.insert(SELINUX_XATTR.to_vec(), label.to_vec());
        }
        Ok(true)
    })
}

fn type_of(word: &str) -> Result<Option<FileType>> {
    Ok(Some(match word {
        "--" => FileType::File,
        "-d" => FileType::Directory,
        "-l" => FileType::Symlink,
        "-c" => FileType::CharDevice,
        "-b" => FileType::BlockDevice,
        "-p" => FileType::Fifo,
        "-s" => FileType::Socket,
        _ => return Err(Error::usage(format!("type {word:?}: --, -d, -l, -c, -b, -p or -s is allowed"))),
    }))
}

fn compile(expression: &str) -> Result<Regex> {
    // Paths are bytes; a dot matches any byte, as in libselinux.
    let built =
        RegexBuilder::new(&format!("^(?:{expression})$")).unicode(false).dot_matches_new_line(true).build();
    built.map_err(|fault| {
        let why = fault.to_string();
        Error::usage(format!("expression {expression:?}: {}", last_line(&why)))
    })
}

/// The flag is true if the prefix is the whole expression.
fn beginning_of(expression: &str) -> (Vec<u8>, bool) {
    let mut beginning = Vec::new();
    let bytes = expression.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' if bytes.get(at + 1).is_some_and(u8::is_ascii_punctuation) => {
                beginning.push(bytes[at + 1]);
                at += 2;
            }
            b'.' | b'^' | b'$' | b'?' | b'*' | b'+' | b'|' | b'[' | b'(' | b'{' | b'\\' => break,
            _ => {
                beginning.push(byte);
                at += 1;
            }
        }
    }
    match bytes.get(at) {
        None => return (beginning, true),
        // The last byte is optional.
        Some(b'?' | b'*' | b'{') => {
            beginning.pop();
        }
        _ => {}
    }
    // Alternatives have different prefixes.
    if has_outer_alternatives(bytes) {
        beginning.clear();
    }
    (beginning, false)
}

fn has_outer_alternatives(expression: &[u8]) -> bool {
    let (mut depth, mut in_class, mut escaped) = (0_i64, false, false);
    for &byte in expression {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b']' => in_class = false,
            _ if in_class => {}
            b'[' => in_class = true,
            b'(' => depth += 1,
            b')' => depth -= 1,
            b'|' if depth <= 0 => return true,
            _ => {}
        }
    }
    false
}

/// Returns `usr` for `/usr/bin`, and `None` for `/usr`.
fn first_directory(path: &[u8]) -> Option<&[u8]> {
    let path = path.strip_prefix(b"/")?;
    path.iter().position(|&byte| byte == b'/').map(|end| &path[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_core::{ContentId, Meta, NodeKind, TreeBuilder, Xattrs};

    const POLICY: &str = "\
# comment
/.*                     all:file
/.*              -d     all:dir
/usr/bin(/.*)?          bin
/usr/bin/.*\\.sh   --    script
/usr/bin/sh             shell
/usr/b[a-z]+/s.*        late
/etc/passwd[-+]?   --    passwd
/dev/.*          -c     char
/(home|root)/.*         home
/tmp/.*                 <<none>>
/a.b                    dotted
/a\\.b                   exact
";

    fn label(contexts: &FileContexts, path: &str, file_type: FileType) -> Option<String> {
        let label = contexts.label(&ImagePath::parse(path.as_bytes()).unwrap(), file_type)?;
        Some(String::from_utf8(label.strip_suffix(b"\0").unwrap().to_vec()).unwrap())
    }

    #[test]
    fn the_last_expression_counts_and_a_plain_path_beats_them_all() {
        let contexts = FileContexts::parse(POLICY).unwrap();
        let file = |path| label(&contexts, path, FileType::File).unwrap_or_default();
        assert_eq!(file("opt/x"), "all:file");
        assert_eq!(file("usr/bin/a"), "bin");
        assert_eq!(file("usr/bin"), "bin");
        assert_eq!(file("usr/bin/x.sh"), "script");
        assert_eq!(file("usr/bin/s.sh"), "late");
        assert_eq!(file("usr/bin/sh"), "shell", "though it stands before another that matches");
        assert_eq!(file("usr/bin2"), "all:file", "expressions are about whole paths");
        assert_eq!(file("etc/passwd-"), "passwd");
        assert_eq!(file("etc/passw"), "all:file");
        assert_eq!(file("home/x"), "home");
        assert_eq!(file("root/x"), "home");
        assert_eq!(file("a.b"), "exact");
        assert_eq!(file("axb"), "dotted");
        assert_eq!(file("tmp/x"), "", "none at all, whatever was before");
    }

    #[test]
    fn a_type_limits_a_line() {
        let contexts = FileContexts::parse(POLICY).unwrap();
        assert_eq!(label(&contexts, "", FileType::Directory).unwrap(), "all:dir");
        assert_eq!(label(&contexts, "dev/null", FileType::CharDevice).unwrap(), "char");
        assert_eq!(label(&contexts, "dev/sda", FileType::BlockDevice).unwrap(), "all:file");
        assert_eq!(label(&contexts, "etc/passwd", FileType::Symlink).unwrap(), "all:file");
    }

    #[test]
    fn paths_count_from_where_the_image_is_mounted() {
        let contexts = FileContexts::parse("/system(/.*)? sys\n/.* other").unwrap();
        assert_eq!(label(&contexts, "", FileType::Directory).unwrap(), "other");
        let contexts = FileContexts::parse("/system sys\n/system/bin/.* bin").unwrap();
        let contexts = contexts.mounted_at(ImagePath::parse(b"system").unwrap());
        assert_eq!(label(&contexts, "", FileType::Directory).unwrap(), "sys");
        assert_eq!(label(&contexts, "bin/sh", FileType::File).unwrap(), "bin");
        assert_eq!(label(&contexts, "lib", FileType::Directory), None);
    }

    #[test]
    fn alternatives_and_optional_characters_do_not_hide_matches() {
        let contexts =
            FileContexts::parse("/usr/x/a|/lib/b one\n/var/logs? two\n/var/run/[|]x three").unwrap();
        for (path, expected) in
            [("lib/b", "one"), ("usr/x/a", "one"), ("var/log", "two"), ("var/run/|x", "three")]
        {
            assert_eq!(label(&contexts, path, FileType::File).as_deref(), Some(expected), "{path}");
        }
    }

    #[test]
    fn names_that_are_no_text_match_like_others() {
        let contexts = FileContexts::parse("/a/. label").unwrap();
        let path = ImagePath::parse(b"a/\xff").unwrap();
        assert_eq!(contexts.label(&path, FileType::File), Some(&b"label\0"[..]));
    }

    #[test]
    fn errors_name_the_line_number() {
        for (text, why) in [
            ("/a b\n/c", "line 2"),
            ("/a -x b", "--, -d, -l"),
            ("/a -- b c", "EXPRESSION [-TYPE] LABEL"),
            ("/a(b label", "line 1"),
            ("/a(?=b) label", "look-around"),
        ] {
            let error = FileContexts::parse(text).unwrap_err();
            let shown = format!("{error}");
            assert!(shown.contains(why), "{text:?}: {shown}");
            assert_eq!(error.kind(), packfs_core::ErrorKind::Usage);
        }
    }

    #[test]
    fn every_file_gets_its_label_once_and_hard_links_stay() {
        let mut builder = TreeBuilder::new(Meta::default());
        let path = |text: &str| ImagePath::parse(text.as_bytes()).unwrap();
        let old = Xattrs::from([(SELINUX_XATTR.to_vec(), b"old\0".to_vec()), (b"user.a".to_vec(), vec![1])]);
        let kind = NodeKind::File { len: 1, content: ContentId(7) };
        builder.add(&path("a/file"), kind.clone(), Meta::default(), old).unwrap();
        builder.link(&path("b"), path("a/file")).unwrap();
        builder.add(&path("tmp/x"), NodeKind::Fifo, Meta::default(), Xattrs::new()).unwrap();
        let tree = label_all(&builder.finish().unwrap(), &FileContexts::parse(POLICY).unwrap()).unwrap();
        let node = |text| tree.node(tree.find(&path(text)).unwrap());
        assert_eq!(node("a/file").kind, kind);
        assert_eq!(node("b").links, 2);
        let xattrs = |text| tree.xattrs(node(text).xattrs);
        assert_eq!(xattrs("a/file")[SELINUX_XATTR], b"all:file\0");
        assert_eq!(xattrs("a/file")[&b"user.a"[..]], [1]);
        assert_eq!(xattrs("a")[SELINUX_XATTR], b"all:dir\0", "though no entry describes it");
        assert!(xattrs("tmp/x").is_empty());
    }
}
