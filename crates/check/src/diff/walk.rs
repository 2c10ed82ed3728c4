//! A parallel walk of two trees.

use packfs_core::{ImagePath, Name, NodeId, Result, Tree};

/// Visits names in path order, with the node in each tree. Only directories in both trees are
/// entered. Paths are borrowed, and nothing recurses, because trees may be deep.
pub(crate) fn pairs(
    a: &Tree,
    b: &Tree,
    mut visit: impl FnMut(&ImagePath, Option<NodeId>, Option<NodeId>) -> Result<()>,
) -> Result<()> {
    let mut path = ImagePath::root();
    visit(&path, Some(NodeId::ROOT), Some(NodeId::ROOT))?;
    let mut open = vec![(a.entries(NodeId::ROOT).peekable(), b.entries(NodeId::ROOT).peekable())];
    while let Some((rest_a, rest_b)) = open.last_mut() {
        let next = [rest_a.peek(), rest_b.peek()].into_iter().flatten().map(|entry| entry.name).min();
        let Some(name) = next else {
            open.pop();
            path.pop();
            continue;
        };
        let own_a = rest_a.next_if(|entry| entry.name == name).map(|entry| entry.node);
        let own_b = rest_b.next_if(|entry| entry.name == name).map(|entry| entry.node);
        path.push(Name::new(name).expect("a tree only holds checked names"));
        visit(&path, own_a, own_b)?;
        match (own_a, own_b) {
            (Some(own_a), Some(own_b)) if a.node(own_a).is_dir() && b.node(own_b).is_dir() => {
                open.push((a.entries(own_a).peekable(), b.entries(own_b).peekable()));
            }
            _ => {
                path.pop();
            }
        }
    }
    Ok(())
}
