//! Counts of cases by outcome, printed as a table.

use crate::{Class, Verdict};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The end of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// Judged, without a crash or a timeout.
    Judged(Verdict),
    /// A promise did not hold.
    Breach,
    /// Some thread panicked.
    Panic,
    /// The process was killed by a signal, or gave up.
    Signal,
    /// It took longer than it may.
    Timeout,
    /// It took more memory than it may.
    Memory,
}

/// One case that did not end as it should.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Found {
    /// Its number.
    pub case: u64,
    /// Its end.
    pub ending: Ending,
    /// The message.
    pub what: String,
}

/// See the module. Kept in a file, so that a run can go on where it stopped.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Tally {
    /// The next case.
    pub next: u64,
    /// Number of cases by class and end.
    pub endings: Vec<(Class, Ending, u64)>,
    /// All that did not end as they should.
    pub found: Vec<Found>,
    /// The most memory that any case needed, with the program itself, in KiB.
    pub memory_max: u64,
    /// The longest that any case took, in milliseconds.
    pub longest: u64,
}

impl Tally {
    /// Counts a case.
    pub fn count(&mut self, class: Class, ending: Ending) {
        match self.endings.iter_mut().find(|(c, e, _)| (*c, *e) == (class, ending)) {
            Some((.., count)) => *count += 1,
            None => self.endings.push((class, ending, 1)),
        }
    }

    /// Formats a table: a row for each class and one for all.
    pub fn table(&self) -> String {
        const COLUMNS: [(&str, Ending); 8] = [
            ("ok-same", Ending::Judged(Verdict::OkSame)),
            ("ok-diff", Ending::Judged(Verdict::OkDiff)),
            ("error", Ending::Judged(Verdict::Error)),
            ("breach", Ending::Breach),
            ("panic", Ending::Panic),
            ("signal", Ending::Signal),
            ("timeout", Ending::Timeout),
            ("memory", Ending::Memory),
        ];
        let counts: BTreeMap<(Class, Ending), u64> =
            self.endings.iter().map(|(class, ending, count)| ((*class, *ending), *count)).collect();
        let of = |class: Option<Class>, ending: Option<Ending>| -> u64 {
            let fits = |c: Class, e: Ending| {
                class.is_none_or(|class| class == c) && ending.is_none_or(|ending| ending == e)
            };
            counts.iter().filter(|((c, e), _)| fits(*c, *e)).map(|(_, count)| count).sum()
        };
        let mut text = String::from("| mutation | images |");
        let mut rule = String::from("|---|--:|");
        for (name, _) in COLUMNS {
            let _ = write!(text, " {name} |");
            rule.push_str("--:|");
        }
        text = text + "\n" + &rule + "\n";
        for class in Class::ALL.into_iter().map(Some).chain([None]) {
            let name = class.map_or("all".into(), |class| format!("{class:?}").to_lowercase());
            let _ = write!(text, "| {name} | {} |", of(class, None));
            for (_, ending) in COLUMNS {
                let _ = write!(text, " {} |", of(class, Some(ending)));
            }
            text.push('\n');
        }
        let _ = writeln!(
            text,
            "\nLongest case {} ms, most memory {} MiB.",
            self.longest,
            self.memory_max.div_ceil(1024)
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_by_class_and_in_all_and_survives_a_file() {
        let mut tally = Tally::default();
        for (class, ending) in [
            (Class::Flip, Ending::Judged(Verdict::Error)),
            (Class::Flip, Ending::Judged(Verdict::Error)),
            (Class::Graft, Ending::Panic),
        ] {
            tally.count(class, ending);
        }
        let text = serde_json::to_string(&tally).unwrap();
        let again: Tally = serde_json::from_str(&text).unwrap();
        let table = again.table();
        assert!(table.contains("| flip | 2 | 0 | 0 | 2 | 0 | 0 | 0 | 0 | 0 |"), "{table}");
        assert!(table.contains("| all | 3 | 0 | 0 | 2 | 0 | 1 | 0 | 0 | 0 |"), "{table}");
    }
}
