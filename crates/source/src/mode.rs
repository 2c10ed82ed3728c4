//! Changes of permissions, in the syntax of `chmod`.

use packfs_core::{Error, Result};
use std::str::FromStr;

/// A change of permissions: octal, or symbolic clauses such as `u=rwX,go-w`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModeChange(Vec<Clause>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Clause {
    /// Cleared first.
    clear: u16,
    /// Also cleared, except for a directory.
    clear_of_files: u16,
    set: u16,
    /// Set for directories, and for files with an execute bit (`X`).
    set_if_executable: u16,
}

impl ModeChange {
    /// Returns the permissions after the change.
    pub fn apply(&self, mode: u16, is_dir: bool) -> u16 {
        self.0.iter().fold(mode, |mode, clause| {
            let executable = is_dir || mode & 0o111 != 0;
            let clear = clause.clear | if is_dir { 0 } else { clause.clear_of_files };
            mode & !clear | clause.set | if executable { clause.set_if_executable } else { 0 }
        })
    }
}

impl FromStr for ModeChange {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || {
            Error::usage(format!("mode {text:?}: octal up to 7777 or clauses such as u=rwX,go-w are allowed"))
        };
        if text.starts_with(|c: char| c.is_ascii_digit()) {
            let set = u16::from_str_radix(text, 8).ok().filter(|&mode| mode <= 0o7777).ok_or_else(wrong)?;
            return Ok(ModeChange(vec![Clause { clear: 0o7777, set, ..Clause::default() }]));
        }
        text.split(',').map(clause).collect::<Option<Vec<_>>>().map(ModeChange).ok_or_else(wrong)
    }
}

fn clause(text: &str) -> Option<Clause> {
    let at = text.find(['+', '-', '='])?;
    let (who, rest) = text.split_at(at);
    let mut mask = 0;
    for c in who.chars() {
        mask |= match c {
            'u' => 0o4700,
            'g' => 0o2070,
            'o' => 0o1007,
            'a' => 0o7777,
            _ => return None,
        };
    }
    if who.is_empty() {
        mask = 0o7777;
    }
    let (mut bits, mut conditional) = (0, 0);
    for c in rest[1..].chars() {
        match c {
            'r' => bits |= 0o444 & mask,
            'w' => bits |= 0o222 & mask,
            'x' => bits |= 0o111 & mask,
            'X' => conditional |= 0o111 & mask,
            's' => bits |= 0o6000 & mask,
            't' => bits |= 0o1000,
            _ => return None,
        }
    }
    Some(match &rest[..1] {
        "+" => Clause { set: bits, set_if_executable: conditional, ..Clause::default() },
        "-" => Clause { clear: bits | conditional, ..Clause::default() },
        _ => Clause {
            clear: mask & 0o777 | if rest.contains('s') { mask & 0o6000 } else { 0 },
            // As chmod, which keeps set-ID bits of directories.
            clear_of_files: mask & 0o7000,
            set: bits,
            set_if_executable: conditional,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(text: &str, mode: u16, is_dir: bool) -> u16 {
        text.parse::<ModeChange>().unwrap().apply(mode, is_dir)
    }

    #[test]
    fn applies_octal_and_symbolic_changes() {
        for (text, mode, is_dir, becomes) in [
            ("0644", 0o4755, false, 0o644),
            ("go-w", 0o666, false, 0o644),
            ("u=rw,go=r", 0o6755, false, 0o644),
            ("u=rwx", 0o6755, true, 0o6755),
            ("u+x,g=r", 0o660, false, 0o740),
            ("a=rX", 0o600, false, 0o444),
            ("a=rX", 0o700, false, 0o555),
            ("a=rX", 0o700, true, 0o555),
            ("u-s", 0o4755, false, 0o755),
            ("+t", 0o777, true, 0o1777),
        ] {
            assert_eq!(change(text, mode, is_dir), becomes, "{text} on {mode:o}");
        }
    }

    #[test]
    fn refuses_invalid_modes() {
        for wrong in ["", "8", "77777", "u", "u+q", "z=r", "u=r,", "-1"] {
            assert!(wrong.parse::<ModeChange>().is_err(), "{wrong}");
        }
    }
}
