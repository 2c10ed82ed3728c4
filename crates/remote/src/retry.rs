//! Waits between attempts.

use crate::options::Retries;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// Returns the wait before the attempt after `failed` ones: doubled each time, and up to a half
/// shorter by chance, so that clients do not come back together. A wait that the server asks for is
/// kept up to the limit.
pub(crate) fn wait(retries: &Retries, failed: u32, asked: Option<Duration>) -> Duration {
    let doubled = retries.first_wait.saturating_mul(1 << failed.saturating_sub(1).min(16));
    let limited = doubled.min(retries.longest_wait);
    let chance = u32::try_from(RandomState::new().hash_one(0) % 1024).unwrap_or(0);
    let jittered =
        limited.saturating_sub(limited.checked_div(2048).unwrap_or_default().saturating_mul(chance));
    asked.map_or(jittered, |asked| asked.min(retries.longest_wait).max(jittered))
}

/// True if a server that answers with this status may answer otherwise later.
pub(crate) fn is_temporary(status: u16) -> bool {
    matches!(status, 408 | 429 | 500 | 502..=504 | 506..=599)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_limit() {
        let retries = Retries {
            attempts: 9,
            first_wait: Duration::from_millis(100),
            longest_wait: Duration::from_secs(2),
        };
        for (failed, longest) in [(1, 100), (2, 200), (3, 400), (6, 2000), (u32::MAX, 2000)] {
            let found = wait(&retries, failed, None);
            let longest = Duration::from_millis(longest);
            assert!(found <= longest && found >= longest / 2, "{failed}: {found:?}");
        }
    }

    #[test]
    fn servers_may_ask_for_a_wait_within_the_limit() {
        let retries = Retries::default();
        let asked = |seconds| wait(&retries, 1, Some(Duration::from_secs(seconds)));
        assert_eq!(asked(3), Duration::from_secs(3));
        assert_eq!(asked(u64::MAX), retries.longest_wait);
    }

    #[test]
    fn statuses_that_stay_are_not_temporary() {
        for status in [200, 301, 400, 403, 404, 412, 416, 501, 505] {
            assert!(!is_temporary(status), "{status}");
        }
        for status in [408, 429, 500, 502, 503, 504, 507] {
            assert!(is_temporary(status), "{status}");
        }
    }
}
