//! Path arguments of unsquashfs and sqfscat, with symbolic links in them.

use crate::common::globs::{Kind, Pattern};
use packfs::{Error, ImagePath, NodeId, NodeKind, Result, Tree};

/// Most links of one path.
const LINKS_MAX: usize = 64;

/// Most names of all paths together, which links and patterns multiply.
const STEPS_MAX: u32 = 1 << 20;

#[derive(Debug, Default)]
pub struct Followed {
    pub ends: Vec<ImagePath>,
    pub links: Vec<ImagePath>,
    /// Set if a path does not exist.
    pub is_broken: bool,
}

/// Parts of `name` are patterns.
///
/// Errors: `Usage` for an invalid expression, and for too many names.
pub fn followed(tree: &Tree, name: &[u8], kind: Kind) -> Result<Followed> {
    let mut follower = Follower { tree, found: Followed::default(), steps: 0 };
    let parts = name.split(|&byte| byte == b'/').filter(|part| !part.is_empty()).map(|part| match part {
        b"." | b".." => Pattern::new(part, Kind::Exact),
        part => Pattern::new(part, kind),
    });
    let way = Way { dir: NodeId::ROOT, rest: parts.rev().collect::<Result<_>>()?, links: Vec::new() };
    follower.walk(way)?;
    Ok(follower.found)
}

struct Follower<'t> {
    tree: &'t Tree,
    found: Followed,
    steps: u32,
}

#[derive(Clone)]
struct Way {
    dir: NodeId,
    /// Remaining parts, the next one last.
    rest: Vec<Pattern>,
    links: Vec<ImagePath>,
}

impl Follower<'_> {
    fn walk(&mut self, mut way: Way) -> Result<()> {
        while let Some(part) = way.rest.pop() {
            self.steps += 1;
            if self.steps > STEPS_MAX {
                return Err(Error::usage(format!("a name leads to more than {STEPS_MAX} others by links")));
            }
            let (dir, place) = (way.dir, self.tree.path(way.dir));
            let name = match &part {
                Pattern::Exact(name) => name,
                pattern => {
                    for entry in self.tree.entries(dir).filter(|entry| pattern.matches(entry.name)) {
                        let mut way = way.clone();
                        way.rest.push(Pattern::Exact(entry.name.to_vec()));
                        self.walk(way)?;
                    }
                    return Ok(());
                }
            };
            match &name[..] {
                b"." => continue,
                b".." if dir == NodeId::ROOT => return self.lost(),
                b".." => {
                    way.dir = self.tree.node(dir).parent();
                    continue;
                }
                _ => {}
            }
            let Some(node) = self.tree.lookup(dir, name) else { return self.lost() };
            let mut path = place;
            path.push(packfs::Name::new(name).map_err(Error::usage)?);
            match &self.tree.node(node).kind {
                NodeKind::Directory => way.dir = node,
                NodeKind::Symlink(target) => {
                    way.links.push(path);
                    // Absolute targets lead outside the image.
                    if target.starts_with(b"/") || way.links.len() > LINKS_MAX {
                        return self.lost();
                    }
                    let parts = target.split(|&byte| byte == b'/').filter(|part| !part.is_empty());
                    way.rest.extend(parts.rev().map(|part| Pattern::Exact(part.to_vec())));
                }
                _ if way.rest.is_empty() => return self.end(path, way.links),
                _ => return self.lost(),
            }
        }
        self.end(self.tree.path(way.dir), way.links)
    }

    fn end(&mut self, path: ImagePath, mut links: Vec<ImagePath>) -> Result<()> {
        self.found.ends.push(path);
        self.found.links.append(&mut links);
        Ok(())
    }

    fn lost(&mut self) -> Result<()> {
        self.found.is_broken = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs::{Meta, TreeBuilder, Xattrs};

    #[test]
    fn names_lead_through_links_within_the_root() {
        let mut builder = TreeBuilder::new(Meta::default());
        let link = |target: &[u8]| NodeKind::Symlink(target.into());
        for (path, kind) in [
            ("real", NodeKind::Directory),
            ("real/sub", NodeKind::Directory),
            ("to", link(b"real/./sub/")),
            ("out", link(b"../real")),
            ("abs", link(b"/real")),
            ("one", link(b"two")),
            ("two", link(b"one")),
        ] {
            let path = ImagePath::parse(path.as_bytes()).unwrap();
            builder.add(&path, kind, Meta::default(), Xattrs::new()).unwrap();
        }
        let tree = builder.finish().unwrap();
        let shown = |name: &str, kind| {
            let found = followed(&tree, name.as_bytes(), kind).unwrap();
            let [ends, links] = [found.ends, found.links]
                .map(|paths| paths.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "));
            (ends, links, found.is_broken)
        };
        let of = |ends: &str, links: &str, is_broken| (ends.to_owned(), links.to_owned(), is_broken);
        assert_eq!(shown("to", Kind::Exact), of("real/sub", "to", false));
        assert_eq!(shown("to/..", Kind::Exact), of("real", "to", false));
        for name in ["./real/../to/none", "none", "..", "out", "abs", "one", "*o"] {
            assert_eq!(shown(name, Kind::Exact), of("", "", true), "{name}");
        }
        assert_eq!(shown("*o", Kind::Glob), of("real/sub", "to", true));
        assert_eq!(shown("t?/../[s]ub", Kind::Glob), of("real/sub", "to", false));
        assert_eq!(shown("*.bmp", Kind::Glob), of("", "", false));
    }
}
