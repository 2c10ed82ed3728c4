//! Sleeping to the point.

use crate::Nanos;
use rustix::thread::{ClockId, clock_nanosleep_absolute};
use rustix::time::{Timespec, clock_gettime};
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};

/// Recent lateness of a thread that wakes: it asks for so much less, and spins for the rest.
static LATE: AtomicU64 = AtomicU64::new(20_000);
/// Longer delays come from other processes; waking earlier would not reduce them.
const LATE_MAX: Nanos = 80_000;
/// The new figure counts for one of so many.
const MEMORY: u64 = 16;

/// Nanoseconds since some time before.
pub(crate) fn now() -> Nanos {
    let now = clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Has this thread woken when it asked to be, not up to 50 microseconds later as others are to save
/// power; ahead of others if it may.
pub(crate) fn be_punctual() {
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    // Of this thread alone, as Linux has it.
    let _ = rustix::process::nice(-10);
}

/// Returns at `until`, or at once if that is over.
pub(crate) fn sleep_until(until: Nanos) {
    let late = LATE.load(Ordering::Relaxed);
    let asked = until.saturating_sub(late);
    if asked > now() {
        let time =
            Timespec { tv_sec: (asked / 1_000_000_000) as i64, tv_nsec: (asked % 1_000_000_000) as i64 };
        // Interrupted: what is left is slept again.
        while clock_nanosleep_absolute(ClockId::Monotonic, &time).is_err() {}
        let woke = now().saturating_sub(asked).min(LATE_MAX);
        LATE.store((late * (MEMORY - 1) + woke) / MEMORY, Ordering::Relaxed);
    }
    while now() < until {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_thread_wakes_early() {
        for wait in [0, 1_000, 200_000, 3_000_000] {
            let until = super::now() + wait;
            super::sleep_until(until);
            assert!(super::now() >= until);
        }
    }
}
