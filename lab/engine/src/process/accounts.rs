//! Processor time as the kernel counts it, in `/proc`.

use crate::results::Noise;

/// Processor seconds of a process and its threads, also those that have ended: user mode, kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct CpuTime {
    pub user: f64,
    pub system: f64,
}

impl CpuTime {
    /// Reads the time of a running process; none if it is gone. See `proc_pid_stat(5)`.
    pub(super) fn of(process: u32) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
    }

    fn parse(stat: &str) -> Option<Self> {
        // The name in brackets may hold blanks and brackets. Behind it, utime and stime are the
        // 12th and 13th field.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
        let mut next = || Some(seconds(fields.next()?.parse().ok()?));
        Some(Self { user: next()?, system: next()? })
    }

    pub(super) fn total(self) -> f64 {
        self.user + self.system
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self { user: self.user + other.user, system: self.system + other.system }
    }

    /// Returns the time since `before`; a process that is gone adds nothing.
    pub(super) fn since(self, before: Self) -> Self {
        Self { user: (self.user - before.user).max(0.0), system: (self.system - before.system).max(0.0) }
    }
}

/// Time of all processors since the start of the machine: `/proc/stat`, see `proc_stat(5)`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Processors {
    busy: f64,
    stolen: f64,
}

impl Processors {
    pub(super) fn now() -> Self {
        let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        Self::parse(&text).unwrap_or_default()
    }

    fn parse(text: &str) -> Option<Self> {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let fields: Vec<f64> =
            line.split_whitespace().map_while(|word| word.parse().ok().map(seconds)).collect();
        // user nice system idle iowait irq softirq steal; guests' time is part of user and nice.
        let field = |index: usize| fields.get(index).copied().unwrap_or(0.0);
        Some(Self { busy: [0, 1, 2, 5, 6].map(field).iter().sum(), stolen: field(7) })
    }

    /// Returns the time of others since `before`, when the measured program took `own` seconds.
    pub(super) fn noise_since(self, before: Self, own: f64) -> Noise {
        Noise {
            others_cpu: (self.busy - before.busy - own).max(0.0),
            stolen_cpu: (self.stolen - before.stolen).max(0.0),
        }
    }
}

/// The kernel counts in hundredths, whatever its own clock does.
fn seconds(ticks: u64) -> f64 {
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}

/// Most memory this process has had resident, in bytes: a child begins with it.
pub(super) fn own_memory_peak() -> Option<u64> {
    memory_peak_of(std::process::id())
}

/// Most memory a process that runs has had resident, in bytes.
pub(super) fn memory_peak_of(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let value = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    value.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_time_of_a_process_with_an_odd_name() {
        let stat = "12 (a) b (c) S 1 12 12 0 -1 4194560 1 2 3 4 250 50 7 8 20 0 1 0 100 1 1";
        assert_eq!(CpuTime::parse(stat), Some(CpuTime { user: 2.5, system: 0.5 }));
        assert_eq!(CpuTime::parse("12 (a"), None);
    }

    #[test]
    fn others_took_what_the_run_did_not() {
        let before = Processors::parse("cpu  100 0 100 1000 0 0 0 10 0 0\ncpu0 1 1\n").unwrap();
        let after = Processors::parse("cpu  300 10 150 2000 50 5 5 60 0 0\n").unwrap();
        let noise = after.noise_since(before, 2.0);
        assert!((noise.others_cpu - 0.7).abs() < 1e-9, "{noise:?}");
        assert!((noise.stolen_cpu - 0.5).abs() < 1e-9, "{noise:?}");
    }

    #[test]
    fn this_process_has_memory_and_time() {
        assert!(own_memory_peak().unwrap() > 100 << 10);
        assert!(CpuTime::of(std::process::id()).is_some());
    }
}
