//! `~/.netrc`: names and passwords of hosts.

use crate::environment::Environment;
use std::path::PathBuf;

/// Longest file that is read.
const LEN_MAX: u64 = 1 << 20;

/// Name and password for a host, from the file that `NETRC` names or from `~/.netrc`.
pub(crate) fn login(environment: &Environment, host: &str) -> Option<(String, String)> {
    let path =
        environment.get("NETRC").map(PathBuf::from).or_else(|| Some(environment.home()?.join(".netrc")))?;
    let is_short = std::fs::metadata(&path).ok()?.len() <= LEN_MAX;
    let text = is_short.then(|| std::fs::read_to_string(&path).ok()).flatten()?;
    find(&text, host)
}

/// Finds the entry of a host, or else the default.
fn find(text: &str, host: &str) -> Option<(String, String)> {
    let lines = text.lines().map(|line| line.split_once('#').map_or(line, |(start, _)| start.trim_end()));
    let lines: Vec<&str> =
        text.lines().zip(lines).map(|(line, cut)| if cut.is_empty() { cut } else { line }).collect();
    let mut words = lines.iter().flat_map(|line| line.split_whitespace());
    let (mut is_ours, mut login, mut password) = (false, None, None);
    while let Some(word) = words.next() {
        match word {
            "machine" | "default" => {
                if is_ours {
                    break;
                }
                is_ours =
                    word == "default" || words.next().is_some_and(|name| name.eq_ignore_ascii_case(host));
                (login, password) = (None, None);
            }
            "login" => login = words.next(),
            "password" => password = words.next(),
            // A macro lasts up to an empty line, which words do not show: nothing after it counts.
            "macdef" => break,
            _ => {}
        }
    }
    is_ours.then(|| Some((login?.to_owned(), password?.to_owned()))).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_of_the_host_or_the_default_counts() {
        let text = "# machine b login no password no\nmachine a login u password p#1\nmachine b\n  login v\n\
                    password q machine c login w\ndefault login d password e\n";
        let found = |host| find(text, host);
        assert_eq!(found("a"), Some(("u".into(), "p#1".into())));
        assert_eq!(found("B"), Some(("v".into(), "q".into())));
        assert_eq!(found("c"), None, "no password");
        assert_eq!(found("z"), Some(("d".into(), "e".into())));
        assert_eq!(find("machine", "a"), None);
        assert_eq!(find("macdef m\nmachine a login u password p\n", "a"), None);
    }
}
