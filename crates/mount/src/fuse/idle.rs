use crate::Unmounter;
use packfs_core::ErrorKind;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// Steps of the timeout, which determine its precision.
const STEPS: u32 = 8;

/// Unmounts once `requests` has not grown for `timeout` and the mount is not in use. Requests that
/// the kernel answers itself do not count, but an open file or working directory keeps the mount.
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
                    // Gone, or an error that another attempt would not change.
                    _ => return,
                }
            }
        }
    };
    Builder::new().name("packfs-idle".into()).spawn(watch).map(drop)
}
