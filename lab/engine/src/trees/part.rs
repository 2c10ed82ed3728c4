//! A smaller tree of the same kind, for sessions of minutes.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use crate::workload::{Listed, shuffled};

/// Files of whole folders, drawn by lot until they have `bytes`, and all below `wanted` first: a
/// smaller tree of the same kind. Returned in the order of their paths.
pub fn part_of(files: &[Listed], bytes: u64, wanted: &[impl AsRef<Path>], seed: u64) -> Vec<Listed> {
    let folder = |file: &Listed| file.path.parent().map(Path::to_owned).unwrap_or_default();
    let mut folders: Vec<_> = files.iter().map(folder).collect::<HashSet<_>>().into_iter().collect();
    folders.sort();
    let is_wanted = |path: &Path| wanted.iter().any(|start| path.starts_with(start));
    let (mut order, rest): (Vec<_>, Vec<_>) = folders.into_iter().partition(|folder| is_wanted(folder));
    order.extend(shuffled(rest, seed));
    let mut lens = HashMap::<PathBuf, u64>::new();
    for file in files {
        *lens.entry(folder(file)).or_default() += file.len;
    }
    let (mut chosen, mut sum) = (HashSet::new(), 0u64);
    for candidate in order {
        let len = lens.get(&candidate).copied().unwrap_or(0);
        if is_wanted(&candidate) || sum.saturating_add(len) <= bytes {
            sum = sum.saturating_add(len);
            chosen.insert(candidate);
        }
    }
    files.iter().filter(|file| chosen.contains(&folder(file))).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_holds_what_is_wanted_and_whole_folders_up_to_a_length() {
        let file = |path: &str, len| Listed { path: path.into(), len };
        let files: Vec<_> = (0..100).map(|i| file(&format!("d{:02}/f{i}", i / 2), 10)).collect();
        let files = [vec![file("bin/sh", 50)], files].concat();
        let part = part_of(&files, 200, &["bin"], 3);
        assert!(part.iter().any(|file| file.path == Path::new("bin/sh")));
        assert_eq!(part.iter().map(|file| file.len).sum::<u64>(), 190);
        assert_eq!(part, part_of(&files, 200, &["bin"], 3));
    }
}
