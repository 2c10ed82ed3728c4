//! The mirror: the one that this machine's own apt uses, so that a machine behind a mirror of its
//! own keeps to it.

use std::path::PathBuf;

/// The public mirror, used where apt's configuration names none for Debian.
const EVERYBODYS: &str = "http://deb.debian.org/debian";

/// Returns the mirror of packages: the first of apt's configuration that looks like Debian's main
/// archive (sources.list(5)).
pub fn mirror() -> String {
    let mut files = vec![PathBuf::from("/etc/apt/sources.list")];
    if let Ok(entries) = std::fs::read_dir("/etc/apt/sources.list.d") {
        files.extend(entries.flatten().map(|entry| entry.path()));
    }
    files.sort();
    let texts = files.iter().filter_map(|file| std::fs::read_to_string(file).ok());
    texts.into_iter().find_map(|text| mirror_in(&text)).unwrap_or_else(|| EVERYBODYS.to_owned())
}

/// The first archive in a sources file, of either syntax, that looks like Debian's main one.
fn mirror_in(sources: &str) -> Option<String> {
    let enabled = sources.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let places = enabled.filter(|line| line.starts_with("deb ") || line.starts_with("URIs:"));
    places.flat_map(str::split_whitespace).find_map(|word| {
        let place = word.trim_end_matches('/');
        (place.contains("://") && place.ends_with("/debian")).then(|| place.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::mirror_in;

    #[test]
    fn finds_the_mirror_in_both_syntaxes() {
        let old = "# deb http://old/debian sid main\ndeb [arch=amd64] http://near.example/debian/ sid main\n";
        assert_eq!(mirror_in(old).as_deref(), Some("http://near.example/debian"));
        let new = "Types: deb\n# a note\nURIs: http://near.example/debian\nSuites: sid\n";
        assert_eq!(mirror_in(new).as_deref(), Some("http://near.example/debian"));
    }

    #[test]
    fn passes_over_archives_of_others() {
        assert_eq!(mirror_in("deb https://packages.example/apt cloud main\n"), None);
        assert_eq!(mirror_in("URIs: http://near.example/debian-security\n"), None);
    }
}
