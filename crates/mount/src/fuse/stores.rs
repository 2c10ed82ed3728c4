//! What a jump into a file had decoded beside what was asked for, given to the kernel: it keeps
//! whole blocks then, not a page of each, and comes back less often.
//!
//! Only after the answer has gone out, so nobody waits for it. A store waits for pages that the
//! kernel has asked for and not got yet, so one thread at most is at it, and none where there is no
//! other that answers meanwhile.

use super::device::Device;
use super::open_files::OpenFile;
use rustix::io::Errno;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, TryLockError};

/// Where a reader has jumped to, as others before.
pub(crate) struct Jump {
    pub(crate) file: Arc<OpenFile>,
    pub(crate) node: u64,
    pub(crate) offset: u64,
}

/// See the module.
pub(crate) struct Stores {
    /// Whoever stores.
    one: Mutex<()>,
    is_refused: AtomicBool,
    /// Longest file of which the memory of this machine may hold a good part.
    file_len_max: u64,
    stores: AtomicU64,
    left_out: AtomicU64,
}

impl Stores {
    pub(crate) fn new(thread_count: usize) -> Self {
        Stores {
            one: Mutex::default(),
            is_refused: AtomicBool::new(thread_count < 2),
            file_len_max: memory_len(),
            stores: AtomicU64::new(0),
            left_out: AtomicU64::new(0),
        }
    }

    /// Whether stores of parts of a file are worth their work.
    pub(crate) fn are_for(&self, file: &OpenFile) -> bool {
        file.len() <= self.file_len_max && !self.is_refused.load(Ordering::Relaxed) && file.is_at_random()
    }

    /// Decodes all of the block that was jumped into and hands over what the kernel has not asked
    /// for; not if another thread is at that. What cannot be decoded is left for whoever asks for
    /// it.
    pub(crate) fn store_around(&self, device: &Device, jump: &Jump) {
        // Counted when others may be at it again.
        let count = if self.has_stored(device, jump) { &self.stores } else { &self.left_out };
        count.fetch_add(1, Ordering::Relaxed);
    }

    fn has_stored(&self, device: &Device, jump: &Jump) -> bool {
        if !jump.file.given.want(jump.offset, jump.file.len()) {
            // What was decoded is hardly needed again: the next jump goes elsewhere, and the kernel
            // has better use for memory.
            jump.file.let_go(jump.offset);
            return false;
        }
        let _one = match self.one.try_lock() {
            Ok(one) => one,
            Err(TryLockError::Poisoned(one)) => one.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        let Ok(Some(beside)) = jump.file.beside(jump.offset) else { return false };
        let outcome = device.store(jump.node, beside.offset, &beside.bytes);
        // It may have forgotten the file, or be short of memory; anything else will be so the next
        // time.
        if matches!(outcome, Err(error) if ![Errno::NOENT, Errno::NOMEM, Errno::INTR].contains(&error)) {
            self.is_refused.store(true, Ordering::Relaxed);
        }
        let end = beside.offset.saturating_add(beside.bytes.len() as u64);
        jump.file.given.mark(&(beside.offset..end), jump.file.len());
        outcome.is_ok()
    }

    /// How often something was stored, and how often not after all.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.stores.load(Ordering::Relaxed), self.left_out.load(Ordering::Relaxed))
    }
}

/// All memory of this machine, in bytes; nothing where nobody tells.
fn memory_len() -> u64 {
    let told = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kibibytes = told.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix("kB"));
    let kibibytes = kibibytes.and_then(|number| number.trim().parse::<u64>().ok());
    kibibytes.unwrap_or(0).saturating_mul(1024)
}
