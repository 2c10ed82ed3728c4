//! A part of the processors for the programs of a session: a weak machine out of a strong one.

use std::ffi::OsString;

use packfs::{Result, processor_count};
use packfs_device::cpu;

use super::Invocation;
use crate::one_line;
use crate::results::CpuLimit;
use crate::undo::Undo;

/// A limit that is in force as long as this lives, and gone on a signal, too.
#[derive(Debug)]
pub struct Limit {
    facts: CpuLimit,
    within: Confinement,
    _undo: Undo,
}

impl Limit {
    /// Limits to so many processors, 0.5 for example, whatever is run [`Confinement`] it.
    ///
    /// Errors: `Usage` if that is no number of processors that this machine has, `Failed` if it has
    /// no way to limit them.
    pub fn new(cpus: f64) -> Result<Self> {
        let limit = cpu::CpuLimit::new(cpus)?;
        let facts = CpuLimit { cpus: limit.cpus(), way: limit.way().word().into() };
        let within = Confinement(limit.prefix());
        let undo = Undo::new(format!("end the limit of {cpus} processors"), move || limit.end());
        Ok(Self { facts, within, _undo: undo })
    }

    /// Returns the limit for the record.
    pub fn facts(&self) -> &CpuLimit {
        &self.facts
    }

    /// For whatever is to run within it.
    pub fn within(&self) -> &Confinement {
        &self.within
    }

    /// Returns the limits that this machine offers, in words, or why it has none: found out by
    /// trying.
    pub fn offered() -> String {
        let there_are = processor_count();
        match (Self::new(0.5), Self::new(1.0)) {
            (Ok(limit), _) => format!("0.01 to {there_are} processors, by {}", limit.facts.way),
            (Err(_), Ok(limit)) => format!("1 to {there_are} whole processors, by {}", limit.facts.way),
            (Err(_), Err(error)) => one_line(&error),
        }
    }
}

/// The limit of a program, or none. Once the limit is gone, programs within it fail and do not run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confinement(Vec<OsString>);

impl Confinement {
    /// True if it limits anything.
    pub fn is_limited(&self) -> bool {
        !self.0.is_empty()
    }

    pub(crate) fn of(&self, invocation: &Invocation) -> Invocation {
        Invocation { prefix: self.0.clone(), ..invocation.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::capture;

    #[test]
    fn what_runs_within_a_limit_is_in_its_group_and_spelled_as_ever() {
        let Ok(limit) = Limit::new(0.5) else { return packfs_testkit::skip("no control group for this") };
        let group = std::path::PathBuf::from(&limit.within.0[3]);
        let name = group.parent().unwrap().file_name().unwrap().to_string_lossy().into_owned();
        let shown = Invocation::new("cat").arg("/proc/self/cgroup");
        let within = limit.within().of(&shown);
        assert!(capture(&within, false).unwrap().contains(&name));
        assert!(!capture(&shown, false).unwrap().contains(&name));
        assert_eq!(within.spelled(), "cat /proc/self/cgroup");
        drop(limit);
        assert!(!group.parent().unwrap().exists());
        assert!(capture(&within, false).is_err());
    }

    #[test]
    fn without_a_limit_nothing_changes() {
        let invocation = Invocation::new("true");
        assert_eq!(Confinement::default().of(&invocation), invocation);
        assert!(!Confinement::default().is_limited());
    }
}
