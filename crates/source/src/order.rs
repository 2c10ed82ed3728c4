use packfs_core::{Error, ImagePath, NodeId, Result, ResultExt, Tree, escaped};
use std::path::Path;

/// Paths with priorities, read from a file: one `PATH PRIORITY` a line. Higher ones come first; the
/// default is 0.
///
/// Priorities range from -32768 to 32767; `#` starts a comment line; the priority follows the last
/// space, so paths may contain spaces. A directory's priority applies to everything below it
/// without a closer one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrderFile(Vec<(ImagePath, i16)>);

impl OrderFile {
    /// Reads an order file.
    ///
    /// Errors: `Io`; `Usage` for an invalid line, with its number.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read(path).or_io(|| format!("cannot read {path:?}"))?;
        OrderFile::parse(&text, &format!("{path:?}"))
    }

    fn parse(text: &[u8], name: &str) -> Result<Self> {
        let mut rows = Vec::new();
        for (index, line) in text.split(|&b| b == b'\n').enumerate() {
            let line = line.trim_ascii();
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            let wrong = || {
                let found = escaped(line);
                Error::usage(format!(
                    "{name}:{}: \"{found}\": PATH PRIORITY is allowed, from -32768 to 32767",
                    index + 1
                ))
            };
            let space = line.iter().rposition(u8::is_ascii_whitespace).ok_or_else(wrong)?;
            let (path, priority) = line.split_at(space);
            let priority = std::str::from_utf8(priority.trim_ascii()).ok().and_then(|text| text.parse().ok());
            rows.push((ImagePath::parse(path.trim_ascii())?, priority.ok_or_else(wrong)?));
        }
        Ok(OrderFile(rows))
    }

    /// Returns the priority of each node of a tree, and the paths that are not in it.
    pub fn priorities(&self, tree: &Tree) -> (Vec<i16>, Vec<ImagePath>) {
        let mut own: Vec<Option<i16>> = vec![None; tree.node_count() as usize];
        let mut missing = Vec::new();
        for (path, priority) in &self.0 {
            match tree.find(path) {
                Some(id) => own[id.index()] = Some(*priority),
                None => missing.push(path.clone()),
            }
        }
        let mut priorities = vec![0; own.len()];
        for (id, node) in tree.nodes() {
            let above = if id == NodeId::ROOT { 0 } else { priorities[node.parent().index()] };
            priorities[id.index()] = own[id.index()].unwrap_or(above);
        }
        (priorities, missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_core::{ContentId, Meta, NodeKind, TreeBuilder, Xattrs};

    fn path(text: &str) -> ImagePath {
        ImagePath::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn the_nearest_named_path_gives_the_priority() {
        let mut builder = TreeBuilder::new(Meta::default());
        for file in ["usr/bin/sh", "usr/bin/ls", "usr/a b", "etc/x"] {
            let kind = NodeKind::File { len: 1, content: ContentId(0) };
            builder.add(&path(file), kind, Meta::default(), Xattrs::new()).unwrap();
        }
        let tree = builder.finish().unwrap();
        let text = b"# boot order\n/usr 5\nusr/bin/sh 100\n\n usr/a b -3\nlost 7\n";
        let (priorities, missing) = OrderFile::parse(text, "order").unwrap().priorities(&tree);
        let of = |at: &str| priorities[tree.find(&path(at)).unwrap().index()];
        assert_eq!([of("usr/bin/sh"), of("usr/bin/ls"), of("usr/a b"), of("etc/x")], [100, 5, -3, 0]);
        assert_eq!(missing, [path("lost")]);
    }

    #[test]
    fn errors_name_the_line() {
        for wrong in ["a", "a b", "a 40000", "a 1\nb 1.5"] {
            let error = OrderFile::parse(wrong.as_bytes(), "order").unwrap_err().to_string();
            assert!(error.contains("order:") && error.contains("PRIORITY"), "{error}");
        }
        assert!(OrderFile::parse(b"../a 1", "order").is_err());
    }
}
