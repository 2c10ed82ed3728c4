//! A mount that nobody uses goes away.

use crate::Unmounter;
use packfs_core::ErrorKind;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// How exactly the end of the wait is met, as a part of it.
const STEPS: u32 = 8;

/// Takes the mount away when `requests` has not grown for so long and nobody is in it. What the
/// kernel answers by itself does not count, but who has a file open or works in the mount keeps it.
pub(crate) fn watch(timeout: Duration, requests: Arc<AtomicU64>, unmounter: Unmounter) -> io::Result<()> {
    let watch = move || {
        let step = (timeout / STEPS).clamp(Duration::from_millis(10), Duration::from_secs(10));
        let mut seen = (requests.load(Ordering::Relaxed), Instant::now());
        loop {
            std::thread::sleep(step);
            let count = requests.load(Ordering::Relaxed);
            if count != seen.0 {
                seen = (count, Instant::now());
            } else if seen.1.elapsed() >= timeout {
                match unmounter.unmount(false) {
                    Err(error) if error.kind() == ErrorKind::Failed => seen.1 = Instant::now(),
                    // Gone, or nothing that another attempt would change.
                    _ => return,
                }
            }
        }
    };
    Builder::new().name("packfs-idle".into()).spawn(watch).map(drop)
}
