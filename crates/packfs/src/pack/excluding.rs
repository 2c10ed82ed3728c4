//! Names what takes most of an image that is too long, as options that leave it out.

use packfs_core::{NodeId, Tree};
use packfs_source::Shape;
use std::cmp::Reverse;

/// Names that are offered.
const OFFERED: usize = 3;
/// Names that are taken together.
const TOGETHER: usize = 8;

/// Returns a hint what to leave out of a tree so that an image of it becomes `excess` bytes
/// shorter; `spaces` holds the bytes that each node takes. It names entries of the first two
/// levels that have something to choose from: those that are enough alone, or else the largest
/// together.
pub(super) fn hint(tree: &Tree, spaces: &[u64], shape: &Shape, excess: u64) -> String {
    const PLAIN: &str = "exclude files, or raise the limit";
    let Some(leading) = leading(shape) else { return PLAIN.into() };
    let sizes = sizes(tree, spaces);
    let all = sizes.get(NodeId::ROOT.index()).copied().unwrap_or(0);
    let size_of = |node: NodeId| sizes.get(node.index()).copied().unwrap_or(0);
    let below = |dir: NodeId| tree.entries(dir).map(|entry| entry.node);
    let is_most = |node: &NodeId| size_of(*node) > all / 10 * 9 && tree.node(*node).is_dir();
    let Some(top) = std::iter::successors(Some(NodeId::ROOT), |dir| below(*dir).find(is_most)).last() else {
        return PLAIN.into();
    };
    let is_upper = |node: NodeId| tree.node(node).is_dir() && tree.node(node).parent() == top;
    let named = |node: NodeId| Some((option(tree, &leading, node)?, size_of(node)));
    let kib = |len: u64| format!("{} KiB", len.div_ceil(1024));
    // Something to spare: what is left out may share data with what stays.
    let excess = excess.saturating_add(excess / 16);
    let mut nodes: Vec<NodeId> = below(top).collect();
    nodes.extend(below(top).filter(|node| is_upper(*node)).flat_map(below));
    nodes.sort_by_key(|node| (Reverse(size_of(*node)), *node));

    let alone = nodes.iter().rev().filter(|node| size_of(**node) >= excess).filter_map(|node| named(*node));
    let alone: Vec<String> =
        alone.take(OFFERED).map(|(word, len)| format!("{word} (about {})", kib(len))).collect();
    if !alone.is_empty() {
        return format!("{PLAIN}; any of these is enough: {}", alone.join(", "));
    }
    let (mut words, mut sum) = (Vec::new(), 0);
    for (word, len) in nodes.iter().filter(|node| !is_upper(**node)).filter_map(|node| named(*node)) {
        if len == 0 || sum >= excess || words.len() == TOGETHER {
            break;
        }
        sum += len;
        words.push(word);
    }
    let (words, sum_kib) = (words.join(" "), kib(sum));
    if words.is_empty() || excess > all / 10 * 9 && sum >= excess {
        // What is left would be hardly anything.
        PLAIN.into()
    } else if sum < excess {
        format!("{PLAIN}; the largest are not enough: {words} (about {sum_kib})")
    } else {
        format!("{PLAIN}; these together are enough: {words} (about {sum_kib})")
    }
}

/// Returns the beginning of globs that match a path of the image in the source; `None` if paths of
/// the image begin elsewhere.
fn leading(shape: &Shape) -> Option<String> {
    let stripped = std::str::from_utf8(shape.strip_prefix.as_bytes()).ok()?;
    let stars = "/*".repeat(shape.strip_components);
    let start = if stripped.is_empty() { String::new() } else { format!("/{}", escaped(stripped)) };
    shape.prefix.is_root().then(|| format!("{start}{stars}"))
}

/// Space of each node with everything below.
fn sizes(tree: &Tree, spaces: &[u64]) -> Vec<u64> {
    let mut sizes = vec![0; spaces.len()];
    for ((id, _), &space) in tree.nodes().zip(spaces).filter(|(_, space)| **space > 0) {
        let above = |node: &NodeId| (*node != NodeId::ROOT).then(|| tree.node(*node).parent());
        for node in std::iter::successors(Some(id), above) {
            if let Some(size) = sizes.get_mut(node.index()) {
                *size += space;
            }
        }
    }
    sizes
}

/// Returns the option that leaves out a node; `None` for a name that cannot be typed.
fn option(tree: &Tree, leading: &str, node: NodeId) -> Option<String> {
    let path = tree.path(node);
    let path =
        std::str::from_utf8(path.as_bytes()).ok().filter(|path| !path.chars().any(char::is_control))?;
    let glob = format!("{leading}/{}", escaped(path));
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@%:,=".contains(c);
    let quoted = if glob.chars().all(is_plain) { glob } else { format!("'{}'", glob.replace('\'', "'\\''")) };
    Some(format!("--exclude {quoted}"))
}

/// A path as a glob that matches it alone.
fn escaped(path: &str) -> String {
    path.chars().flat_map(|c| [r"*?[]\{} ".contains(c).then_some('\\'), Some(c)]).flatten().collect()
}
