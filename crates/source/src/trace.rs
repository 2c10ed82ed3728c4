//! A trace: files in order of first use.

use packfs_core::{Error, ImagePath, NodeId, Result, ResultExt, Tree};
use std::path::Path;

/// Paths in order of first use, as written by `packfs mount --record` or listed by other programs:
/// one a line, or each followed by a NUL if the file contains any (`find -print0`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace(Vec<ImagePath>);

impl Trace {
    /// Reads a trace.
    ///
    /// Errors: `Io`; `Usage` for an invalid path, with its position in the list.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read(path).or_io(|| format!("cannot read {path:?}"))?;
        Trace::parse(&text, &format!("{path:?}"))
    }

    fn parse(text: &[u8], name: &str) -> Result<Self> {
        let end = if text.contains(&0) { 0 } else { b'\n' };
        let rows = text.split(|&byte| byte == end).enumerate().filter(|(_, row)| !row.is_empty());
        let parse = |(index, row)| {
            ImagePath::parse(row).map_err(|error: Error| error.at(format_args!("{name}:{}", index + 1)))
        };
        Ok(Trace(rows.map(parse).collect::<Result<_>>()?))
    }

    /// Returns the nodes of a tree in order of first use, each after the directories above it, and
    /// the paths that are not in the tree.
    pub fn nodes(&self, tree: &Tree) -> (Vec<NodeId>, Vec<ImagePath>) {
        let (mut nodes, mut missing) = (Vec::new(), Vec::new());
        let mut seen = vec![false; tree.node_count() as usize];
        for path in &self.0 {
            if tree.find(path).is_none() {
                missing.push(path.clone());
                continue;
            }
            let mut at = ImagePath::root();
            let way = path.names().map(|name| {
                at.push(name);
                tree.find(&at)
            });
            for node in way.flatten() {
                if !std::mem::replace(&mut seen[node.index()], true) {
                    nodes.push(node);
                }
            }
        }
        (nodes, missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_core::{ContentId, Meta, NodeKind, TreeBuilder, Xattrs};

    fn tree() -> Tree {
        let mut builder = TreeBuilder::new(Meta::default());
        for file in ["usr/bin/sh", "usr/bin/ls", "usr/a b", "etc/x"] {
            let kind = NodeKind::File { len: 1, content: ContentId(0) };
            let path = ImagePath::parse(file.as_bytes()).unwrap();
            builder.add(&path, kind, Meta::default(), Xattrs::new()).unwrap();
        }
        builder.finish().unwrap()
    }

    #[test]
    fn nodes_come_once_behind_the_directories_on_their_way() {
        let tree = tree();
        for text in ["/usr/a b\n./usr/bin/ls\nlost\netc\nusr/bin/ls\n\n", "usr/a b\0usr/bin/ls\0lost\0etc\0"]
        {
            let (nodes, missing) = Trace::parse(text.as_bytes(), "trace").unwrap().nodes(&tree);
            let paths: Vec<String> = nodes.iter().map(|&node| tree.path(node).to_string()).collect();
            assert_eq!(paths, ["usr", "usr/a b", "usr/bin", "usr/bin/ls", "etc"]);
            assert_eq!(missing, [ImagePath::parse(b"lost").unwrap()]);
        }
    }

    #[test]
    fn errors_name_the_line() {
        let error = Trace::parse(b"usr\n../etc\n", "trace").unwrap_err().to_string();
        assert!(error.contains("trace:2"), "{error}");
    }
}
