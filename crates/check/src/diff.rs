//! Compares two trees name by name.

use packfs_core::{
    Contents, DeviceNumber, Error, FileType, ImagePath, Name, Node, NodeId, NodeKind, Owner, Progress, Result,
};
use packfs_core::{Stage, Timestamp, Tree};
use std::collections::HashMap;

/// How much of two files is compared at a time.
const PART_LEN: usize = 256 << 10;

/// What counts as a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiffOptions {
    /// The bytes of files.
    pub contents: bool,
    /// Users and groups.
    pub owners: bool,
    /// Permissions; those of symbolic links never count, Linux has none.
    pub modes: bool,
    /// Times, to the second.
    pub times: bool,
    /// Fractions of seconds, too. SquashFS has none.
    pub nanos: bool,
    /// Extended attributes.
    pub xattrs: bool,
    /// Which names are links to one file.
    pub links: bool,
}

impl Default for DiffOptions {
    fn default() -> Self {
        DiffOptions {
            contents: true,
            owners: true,
            modes: true,
            times: true,
            nanos: false,
            xattrs: true,
            links: true,
        }
    }
}

/// One of the two trees.
#[derive(Clone, Copy)]
pub struct Side<'a> {
    /// Names and metadata.
    pub tree: &'a Tree,
    /// Where its contents come from.
    pub contents: &'a dyn Contents,
}

/// How a name differs; the first value is the first tree's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Only in the first tree.
    OnlyInA,
    /// Only in the second tree.
    OnlyInB,
    /// Of different types; nothing else is compared then.
    Type(FileType, FileType),
    /// Lengths of files.
    Len(u64, u64),
    /// Contents, first at this byte.
    Contents(u64),
    /// Permissions.
    Mode(u16, u16),
    /// User and group.
    Owner(Owner, Owner),
    /// Times.
    Mtime(Timestamp, Timestamp),
    /// Targets of symbolic links.
    Target(Vec<u8>, Vec<u8>),
    /// Device numbers.
    Device(DeviceNumber, DeviceNumber),
    /// An extended attribute: name and values, `None` where it is missing.
    Xattr(Vec<u8>, Option<Vec<u8>>, Option<Vec<u8>>),
    /// Names that are the same file in one tree only: the first name of that file in each.
    Link(ImagePath, ImagePath),
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The name.
    pub path: ImagePath,
    /// How it differs.
    pub change: Change,
}

/// What was compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiffReport {
    /// Names in either tree.
    pub names: u64,
    /// Differences, several of one name counted each.
    pub differences: u64,
}

/// Compares two trees; calls `report` for each difference, in the order of paths.
///
/// Errors: from reading contents; `Cancelled`.
pub fn diff(
    a: Side<'_>,
    b: Side<'_>,
    options: DiffOptions,
    progress: &dyn Progress,
    report: &mut dyn FnMut(Difference),
) -> Result<DiffReport> {
    progress.begin(Stage::Verify, a.tree.entry_count() as u64, a.tree.bytes_total());
    let mut compare = Comparing {
        a,
        b,
        options,
        progress,
        report,
        done: DiffReport::default(),
        first: HashMap::new(),
        parts: [vec![0; PART_LEN], vec![0; PART_LEN]],
    };
    // Directories with their entries still to be compared: a list instead of recursion.
    let mut open = vec![(ImagePath::root(), Some(NodeId::ROOT), Some(NodeId::ROOT))];
    while let Some((path, a, b)) = open.pop() {
        if progress.cancelled() {
            return Err(Error::cancelled());
        }
        compare.name(&path, a, b)?;
        // Pushed in reverse, so that the first name is compared next.
        open.extend(compare.children(&path, a, b).into_iter().rev());
    }
    Ok(compare.done)
}

type Pair = (ImagePath, Option<NodeId>, Option<NodeId>);

struct Comparing<'a> {
    a: Side<'a>,
    b: Side<'a>,
    options: DiffOptions,
    progress: &'a dyn Progress,
    report: &'a mut dyn FnMut(Difference),
    done: DiffReport,
    /// Pairs of nodes that were compared, and the first name they had.
    first: HashMap<(NodeId, NodeId), ImagePath>,
    parts: [Vec<u8>; 2],
}

impl Comparing<'_> {
    fn found(&mut self, path: &ImagePath, change: Change) {
        self.done.differences += 1;
        (self.report)(Difference { path: path.clone(), change });
    }

    /// Entries of a directory, paired by name; a directory that only one tree has is reported by its own name alone.
    fn children(&self, path: &ImagePath, a: Option<NodeId>, b: Option<NodeId>) -> Vec<Pair> {
        let (Some(a), Some(b)) = (a, b) else { return Vec::new() };
        let mut pairs = Vec::new();
        let (mut rest_a, mut rest_b) = (self.a.tree.entries(a).peekable(), self.b.tree.entries(b).peekable());
        loop {
            let (next_a, next_b) = (rest_a.peek().copied(), rest_b.peek().copied());
            let Some(name) = next_a.iter().chain(&next_b).map(|entry| entry.name).min() else { return pairs };
            let own_a = next_a.filter(|entry| entry.name == name);
            let own_b = next_b.filter(|entry| entry.name == name);
            if own_a.is_some() {
                rest_a.next();
            }
            if own_b.is_some() {
                rest_b.next();
            }
            if let Ok(name) = Name::new(name) {
                pairs.push((path.join(name), own_a.map(|entry| entry.node), own_b.map(|entry| entry.node)));
            }
        }
    }

    fn name(&mut self, path: &ImagePath, a: Option<NodeId>, b: Option<NodeId>) -> Result<()> {
        self.done.names += 1;
        let (a, b) = match (a, b) {
            (Some(a), Some(b)) => (a, b),
            (only_in_a, _) => {
                self.found(path, if only_in_a.is_some() { Change::OnlyInA } else { Change::OnlyInB });
                return Ok(());
            }
        };
        let (node_a, node_b) = (self.a.tree.node(a), self.b.tree.node(b));
        let (type_a, type_b) = (node_a.kind.file_type(), node_b.kind.file_type());
        if type_a != type_b {
            self.found(path, Change::Type(type_a, type_b));
            return Ok(());
        }
        let several_names = !node_a.is_dir() && (node_a.links > 1 || node_b.links > 1);
        if several_names {
            if self.first.contains_key(&(a, b)) {
                return Ok(());
            }
            self.first.insert((a, b), path.clone());
            let firsts = (self.a.tree.path(a), self.b.tree.path(b));
            if self.options.links && firsts.0 != firsts.1 {
                self.found(path, Change::Link(firsts.0, firsts.1));
            }
        }
        self.meta(path, node_a, node_b);
        self.kind(path, node_a, node_b)?;
        self.progress.advance(1, 0, 0);
        Ok(())
    }

    fn meta(&mut self, path: &ImagePath, a: &Node, b: &Node) {
        let options = self.options;
        let is_symlink = matches!(a.kind, NodeKind::Symlink(_));
        if options.modes && !is_symlink && a.meta.mode != b.meta.mode {
            self.found(path, Change::Mode(a.meta.mode, b.meta.mode));
        }
        if options.owners && a.meta.owner != b.meta.owner {
            self.found(path, Change::Owner(a.meta.owner, b.meta.owner));
        }
        let (time_a, time_b) = (a.meta.mtime, b.meta.mtime);
        if options.times
            && (time_a.seconds != time_b.seconds || options.nanos && time_a.nanos != time_b.nanos)
        {
            self.found(path, Change::Mtime(time_a, time_b));
        }
        if options.xattrs {
            let (set_a, set_b) = (self.a.tree.xattrs(a.xattrs), self.b.tree.xattrs(b.xattrs));
            for (name, value) in set_a {
                if set_b.get(name) != Some(value) {
                    self.found(
                        path,
                        Change::Xattr(name.clone(), Some(value.clone()), set_b.get(name).cloned()),
                    );
                }
            }
            for (name, value) in set_b.iter().filter(|(name, _)| !set_a.contains_key(*name)) {
                self.found(path, Change::Xattr(name.clone(), None, Some(value.clone())));
            }
        }
    }

    fn kind(&mut self, path: &ImagePath, a: &Node, b: &Node) -> Result<()> {
        match (&a.kind, &b.kind) {
            (NodeKind::File { len: len_a, .. }, NodeKind::File { len: len_b, .. }) if len_a != len_b => {
                self.found(path, Change::Len(*len_a, *len_b));
            }
            (NodeKind::File { len, .. }, NodeKind::File { .. }) if self.options.contents && *len > 0 => {
                if let Some(offset) =
                    self.first_difference(*len, a, b).map_err(|error| error.at(format!("{path:?}")))?
                {
                    self.found(path, Change::Contents(offset));
                }
            }
            (NodeKind::Symlink(a), NodeKind::Symlink(b)) if a != b => {
                self.found(path, Change::Target(a.to_vec(), b.to_vec()));
            }
            (NodeKind::BlockDevice(a), NodeKind::BlockDevice(b))
            | (NodeKind::CharDevice(a), NodeKind::CharDevice(b))
                if a != b =>
            {
                self.found(path, Change::Device(*a, *b));
            }
            _ => {}
        }
        Ok(())
    }

    /// Where two files of one length differ first; holes in both are passed over.
    fn first_difference(&mut self, len: u64, a: &Node, b: &Node) -> Result<Option<u64>> {
        let (NodeKind::File { content: id_a, .. }, NodeKind::File { content: id_b, .. }) = (&a.kind, &b.kind)
        else {
            return Ok(None);
        };
        let (mut reader_a, mut reader_b) = (self.a.contents.open(*id_a)?, self.b.contents.open(*id_b)?);
        let mut offset = 0;
        // Up to where one of the two is known to hold data, so that holes are looked for once and not for every part.
        let mut data_end = 0;
        while offset < len {
            if data_end <= offset {
                let runs = [reader_a.next_data(offset)?, reader_b.next_data(offset)?];
                let Some(next) = runs.iter().flatten().min_by_key(|run| run.start) else { return Ok(None) };
                (offset, data_end) = (next.start.max(offset), next.end);
            }
            let part_len = (len - offset).min(PART_LEN as u64) as usize;
            let [part_a, part_b] = &mut self.parts;
            let (part_a, part_b) = (&mut part_a[..part_len], &mut part_b[..part_len]);
            reader_a.read_exact_at(offset, part_a)?;
            reader_b.read_exact_at(offset, part_b)?;
            if part_a != part_b {
                let at = part_a.iter().zip(part_b.iter()).position(|(a, b)| a != b).unwrap_or(0);
                return Ok(Some(offset + at as u64));
            }
            offset += part_len as u64;
            self.progress.advance(0, part_len as u64, 0);
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_core::{Held, Meta, Silent, TreeBuilder, Xattrs};

    struct Made {
        builder: TreeBuilder,
        contents: Held,
    }

    impl Made {
        fn new() -> Self {
            Made { builder: TreeBuilder::new(Meta::default()), contents: Held::default() }
        }

        fn file(mut self, at: &str, bytes: &str, mode: u16) -> Self {
            let content = self.contents.push(bytes.as_bytes());
            let kind = NodeKind::File { len: bytes.len() as u64, content };
            let meta =
                Meta { mode, mtime: Timestamp { seconds: 1, nanos: u32::from(mode) }, ..Meta::default() };
            self.builder.add(&path(at), kind, meta, Xattrs::new()).unwrap();
            self
        }

        fn node(mut self, at: &str, kind: NodeKind, xattrs: &[(&str, &str)]) -> Self {
            let pair = |(name, value): &(&str, &str)| (name.as_bytes().to_vec(), value.as_bytes().to_vec());
            self.builder.add(&path(at), kind, Meta::default(), xattrs.iter().map(pair).collect()).unwrap();
            self
        }

        fn link(mut self, at: &str, to: &str) -> Self {
            self.builder.link(&path(at), path(to)).unwrap();
            self
        }
    }

    fn path(text: &str) -> ImagePath {
        ImagePath::parse(text.as_bytes()).unwrap()
    }

    fn differences(a: Made, b: Made) -> Vec<(String, Change)> {
        let (tree_a, tree_b) = (a.builder.finish().unwrap(), b.builder.finish().unwrap());
        let mut found = Vec::new();
        let sides =
            (Side { tree: &tree_a, contents: &a.contents }, Side { tree: &tree_b, contents: &b.contents });
        let report = diff(sides.0, sides.1, DiffOptions::default(), &Silent, &mut |difference| {
            found.push((difference.path.to_string(), difference.change));
        });
        assert_eq!(report.unwrap().differences, found.len() as u64);
        found
    }

    #[test]
    fn finds_nothing_between_equal_trees() {
        let made = || Made::new().file("a/x", "content", 0o644).file("b", "", 0o600).link("c", "a/x");
        assert_eq!(differences(made(), made()), []);
    }

    #[test]
    fn names_every_kind_of_difference_in_path_order() {
        let a = Made::new()
            .file("content", "0123456789", 0o644)
            .file("len", "1", 0o644)
            .file("mode", "", 0o644)
            .file("only-a/x", "", 0)
            .node("attributes", NodeKind::Fifo, &[("user.a", "1"), ("user.b", "1")])
            .node("device", NodeKind::CharDevice(DeviceNumber { major: 1, minor: 3 }), &[])
            .node("target", NodeKind::Symlink(b"x".as_slice().into()), &[])
            .node("type", NodeKind::Fifo, &[]);
        let b = Made::new()
            .file("content", "01234X6789", 0o644)
            .file("len", "12", 0o644)
            .file("mode", "", 0o600)
            .file("z-only-b", "", 0)
            .node("attributes", NodeKind::Fifo, &[("user.b", "2"), ("user.c", "1")])
            .node("device", NodeKind::CharDevice(DeviceNumber { major: 1, minor: 5 }), &[])
            .node("target", NodeKind::Symlink(b"y".as_slice().into()), &[])
            .node("type", NodeKind::Socket, &[]);
        let one = |text: &str| Some(text.as_bytes().to_vec());
        let expected = [
            ("attributes", Change::Xattr(b"user.a".to_vec(), one("1"), None)),
            ("attributes", Change::Xattr(b"user.b".to_vec(), one("1"), one("2"))),
            ("attributes", Change::Xattr(b"user.c".to_vec(), None, one("1"))),
            ("content", Change::Contents(5)),
            (
                "device",
                Change::Device(DeviceNumber { major: 1, minor: 3 }, DeviceNumber { major: 1, minor: 5 }),
            ),
            ("len", Change::Len(1, 2)),
            ("mode", Change::Mode(0o644, 0o600)),
            ("only-a", Change::OnlyInA),
            ("target", Change::Target(b"x".to_vec(), b"y".to_vec())),
            ("type", Change::Type(FileType::Fifo, FileType::Socket)),
            ("z-only-b", Change::OnlyInB),
        ];
        assert_eq!(differences(a, b), expected.map(|(path, change)| (path.to_string(), change)));
    }

    #[test]
    fn a_copy_is_not_a_hard_link() {
        let linked = Made::new().file("a", "same", 0o644).link("b", "a");
        let copied = Made::new().file("a", "same", 0o644).file("b", "same", 0o644);
        assert_eq!(differences(linked, copied), [("b".to_string(), Change::Link(path("a"), path("b")))]);
    }
}
