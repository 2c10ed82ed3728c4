//! Suggestions for misspelled names.

/// Longest names whose letters are compared, in bytes: the work grows with the square of it.
const LEN_MAX: usize = 64;

/// The most similar name of those compared, the first of equals. Memory does not grow with their
/// number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MostSimilar {
    best: Option<(usize, Vec<u8>)>,
}

impl MostSimilar {
    /// Compares one more name.
    pub fn look(&mut self, wanted: &[u8], name: &[u8]) {
        let Some(distance) = distance(wanted, name) else { return };
        if self.best.as_ref().is_none_or(|(best, _)| distance < *best) {
            self.best = Some((distance, name.to_vec()));
        }
    }

    /// Returns the name, if any was similar enough.
    pub fn name(&self) -> Option<&[u8]> {
        self.best.as_ref().map(|(_, name)| name.as_slice())
    }
}

/// 0 for a difference in case, then the number of letters to insert, delete, replace or swap, then
/// that of letters missing from a prefix. `None` for unlikely misspellings.
fn distance(wanted: &[u8], name: &[u8]) -> Option<usize> {
    if wanted.eq_ignore_ascii_case(name) {
        return Some(0);
    }
    let allowed = (wanted.len() / 3).max(1);
    let edits = edits(wanted, name, allowed).filter(|edits| *edits < wanted.len().max(2));
    let is_beginning = wanted.len() >= 2 && name.len() > wanted.len() && name.starts_with(wanted);
    edits.or_else(|| is_beginning.then(|| LEN_MAX + name.len() - wanted.len()))
}

/// Optimal string alignment distance, if it is at most `allowed`.
fn edits(a: &[u8], b: &[u8], allowed: usize) -> Option<usize> {
    if a.len().abs_diff(b.len()) > allowed || a.len().max(b.len()) > LEN_MAX {
        return None;
    }
    // The row before the last is for swapped letters.
    let mut rows: [Vec<usize>; 3] = [Vec::new(), Vec::new(), (0..=b.len()).collect()];
    for i in 1..=a.len() {
        rows.rotate_left(1);
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = rows[1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(rows[1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[0][j - 2] + 1);
            }
            row.push(least);
        }
        rows[2] = row;
    }
    rows[2].last().copied().filter(|edits| *edits <= allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn most_similar(wanted: &str, names: &[&str]) -> Option<String> {
        let mut similar = MostSimilar::default();
        names.iter().for_each(|name| similar.look(wanted.as_bytes(), name.as_bytes()));
        similar.name().map(|name| String::from_utf8_lossy(name).into_owned())
    }

    #[test]
    fn finds_names_with_typing_errors_and_beginnings() {
        let names = ["bin", "etc", "os-release", "OS-Data", "usr", "readme.txt"];
        for (wanted, meant) in [
            ("bni", Some("bin")),
            ("Etc", Some("etc")),
            ("os-relaese", Some("os-release")),
            ("os-", Some("os-release")),
            ("os-data", Some("OS-Data")),
            ("README.txt", Some("readme.txt")),
            ("us", Some("usr")),
            ("x", None),
            ("zzz", None),
            ("opt", None),
            ("", None),
        ] {
            assert_eq!(most_similar(wanted, &names).as_deref(), meant, "{wanted}");
        }
    }

    #[test]
    fn counts_swapped_letters_once() {
        assert_eq!(edits(b"ab", b"ba", 9), Some(1));
        assert_eq!(edits(b"kitten", b"sitting", 9), Some(3));
        assert_eq!(edits(b"kitten", b"sitting", 2), None);
        assert_eq!(edits(&[b'a'; 200], &[b'a'; 201], 9), None);
    }
}
