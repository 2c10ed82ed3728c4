//! What a reader did, and in which time.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

/// What was read, and what it took.
#[derive(Clone, Copy, Default, Debug, PartialEq)]
pub struct Done {
    pub wall: Duration,
    /// Processor time of the readers, in user and in kernel mode.
    pub cpu: Duration,
    /// Files, or reads.
    pub operations: u64,
    pub bytes: u64,
}

impl Done {
    pub fn to_json(self) -> Value {
        json!({
            "seconds": self.wall.as_secs_f64(), "cpu_seconds": self.cpu.as_secs_f64(),
            "operations": self.operations, "bytes": self.bytes,
        })
    }

    /// None if the text is no such line.
    pub fn from_json(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        let seconds = |name: &str| Duration::try_from_secs_f64(value[name].as_f64()?).ok();
        Some(Self {
            wall: seconds("seconds")?,
            cpu: seconds("cpu_seconds")?,
            operations: value["operations"].as_u64()?,
            bytes: value["bytes"].as_u64()?,
        })
    }
}

/// When a reader began.
pub struct Clock {
    wall: Instant,
    cpu: Duration,
}

impl Clock {
    pub fn start() -> Self {
        Self { wall: Instant::now(), cpu: cpu_so_far() }
    }

    pub fn stop(&self, done: &mut Done) {
        done.wall = self.wall.elapsed();
        done.cpu = cpu_so_far().saturating_sub(self.cpu);
    }
}

/// Of this process with all its threads.
fn cpu_so_far() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_back_the_line_it_writes() {
        let millis = Duration::from_millis;
        let done = Done { wall: millis(1500), cpu: millis(250), operations: 7, bytes: 28 << 30 };
        assert_eq!(Done::from_json(&done.to_json().to_string()), Some(done));
        assert_eq!(Done::from_json("error: no such file"), None);
    }
}
