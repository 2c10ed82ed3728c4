//! Symbolic modes of squashfs-tools, which differ from chmod: without letters of users, set-ID and
//! sticky bits are kept; with them, `=` clears those of directories, too.

use packfs::{Error, Result};
use std::str::FromStr;

/// Octal, or clauses such as `u=rwX,go-w`, `g=u`, `u=rw+x`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Modes {
    Octal(u16),
    Symbolic(Vec<Step>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    mask: u16,
    sign: char,
    letters: String,
}

impl Modes {
    pub fn apply(&self, mode: u16, is_dir: bool) -> u16 {
        match self {
            Modes::Octal(octal) => *octal,
            Modes::Symbolic(steps) => steps.iter().fold(mode, |mode, step| step.apply(mode, is_dir)),
        }
    }
}

impl Step {
    fn apply(&self, mode: u16, is_dir: bool) -> u16 {
        let is_executable = is_dir || mode & 0o111 != 0;
        let of = |letter: char| match letter {
            'r' => 0o444,
            'w' => 0o222,
            'x' => 0o111,
            'X' if is_executable => 0o111,
            's' => 0o6000,
            't' => 0o1000,
            'u' => (mode >> 6 & 7) * 0o111,
            'g' => (mode >> 3 & 7) * 0o111,
            'o' => (mode & 7) * 0o111,
            _ => 0,
        };
        let bits = self.letters.chars().fold(0, |bits, letter| bits | of(letter)) & self.mask;
        match self.sign {
            '+' => mode | bits,
            '-' => mode & !bits,
            _ => mode & !self.mask | bits,
        }
    }
}

impl FromStr for Modes {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || {
            Error::usage(format!("mode {text:?}: octal up to 7777 or clauses such as u=rwX,go-w are allowed"))
        };
        if text.starts_with(|letter: char| letter.is_ascii_digit()) {
            let octal = u16::from_str_radix(text, 8).ok().filter(|octal| *octal <= 0o7777);
            return octal.map(Modes::Octal).ok_or_else(wrong);
        }
        let mut steps = Vec::new();
        for clause in text.split(',').filter(|clause| !clause.is_empty()) {
            steps.extend(clause_of(clause).ok_or_else(wrong)?);
        }
        if steps.is_empty() { Err(wrong()) } else { Ok(Modes::Symbolic(steps)) }
    }
}

fn clause_of(text: &str) -> Option<Vec<Step>> {
    let signs = ['+', '-', '='];
    let (who, mut rest) = text.split_at(text.find(signs)?);
    let mask = who.chars().try_fold(0, |mask, letter| match letter {
        'u' => Some(mask | 0o4700),
        'g' => Some(mask | 0o2070),
        'o' => Some(mask | 0o1007),
        'a' => Some(mask | 0o7777),
        _ => None,
    })?;
    let mask = if who.is_empty() { 0o777 } else { mask };
    let mut steps = Vec::new();
    while let Some(sign) = rest.chars().next() {
        let end = rest[1..].find(signs).map_or(rest.len(), |at| at + 1);
        let letters = &rest[1..end];
        let is_copy = letters.len() == 1 && letters.contains(['u', 'g', 'o']);
        if !is_copy && !letters.chars().all(|letter| "rwxXst".contains(letter)) {
            return None;
        }
        steps.push(Step { mask, sign, letters: letters.to_owned() });
        rest = &rest[end..];
    }
    Some(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_change_as_the_tool_changes_them() {
        for (text, of_dir, of_file) in [
            ("+t", 0o700, 0o7755),
            ("a+t", 0o1700, 0o7755),
            ("u+t", 0o700, 0o7755),
            ("=", 0, 0o7000),
            ("a=", 0, 0),
            ("+s", 0o700, 0o7755),
            ("a+s", 0o6700, 0o7755),
            ("=X", 0o111, 0o7111),
            ("o=X", 0o701, 0o6751),
            ("u=g", 0, 0o3555),
            ("o=u", 0o707, 0o6757),
            ("g-o", 0o700, 0o7705),
            ("u=rw+x-w", 0o500, 0o3555),
            ("u=r,,g=w", 0o420, 0o1425),
            ("u+", 0o700, 0o7755),
            ("644", 0o644, 0o644),
        ] {
            let modes: Modes = text.parse().unwrap();
            assert_eq!((modes.apply(0o700, true), modes.apply(0o7755, false)), (of_dir, of_file), "{text}");
        }
        for wrong in ["", "10000", "08", "+rg", "z=r", "u", ","] {
            assert!(wrong.parse::<Modes>().is_err(), "{wrong}");
        }
    }
}
