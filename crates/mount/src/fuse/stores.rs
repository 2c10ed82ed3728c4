//! Stores the rest of a block, decoded for a random read, in the kernel's page cache. The kernel
//! then caches whole blocks instead of single pages, and sends fewer requests.
//!
//! Storing happens after the answer was sent. It may block on pages that the kernel has requested,
//! so at most one thread does it, and none without another thread to answer requests.

use super::device::Device;
use super::open_files::OpenFile;
use rustix::io::Errno;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Arc, Mutex, TryLockError};

pub(crate) struct RandomRead {
    pub(crate) file: Arc<OpenFile>,
    pub(crate) node: u64,
    pub(crate) offset: u64,
}

pub(crate) struct Stores {
    one: Mutex<()>,
    is_refused: AtomicBool,
    /// Longest file of which a good part fits into the memory of this machine.
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

    pub(crate) fn are_for(&self, file: &OpenFile) -> bool {
        file.len() <= self.file_len_max && !self.is_refused.load(Ordering::Relaxed) && file.is_random()
    }

    /// Stores the part of the block that the kernel has not requested; does nothing if another
    /// thread is storing. Decoding errors are left to the reader.
    pub(crate) fn store_around(&self, device: &Device, read: &RandomRead) {
        // Counted after the lock is released.
        let count = if self.has_stored(device, read) { &self.stores } else { &self.left_out };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Skips the read if the storing thread is busy.
    pub(crate) fn hand_over(&self, stores: &SyncSender<RandomRead>, read: RandomRead) {
        if let Err(TrySendError::Full(read) | TrySendError::Disconnected(read)) = stores.try_send(read) {
            if !read.file.given.want(read.offset, read.file.len()) {
                read.file.make_evictable(read.offset);
            }
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn has_stored(&self, device: &Device, read: &RandomRead) -> bool {
        if !read.file.given.want(read.offset, read.file.len()) {
            // The block can be evicted: the next read goes elsewhere, and the kernel has the pages.
            read.file.make_evictable(read.offset);
            return false;
        }
        let _one = match self.one.try_lock() {
            Ok(one) => one,
            Err(TryLockError::Poisoned(one)) => one.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        let Ok(Some(neighbours)) = read.file.page_neighbours(read.offset) else { return false };
        let outcome = device.store(read.node, neighbours.offset, &neighbours.bytes);
        // The kernel may have forgotten the file, or lack memory; other errors are permanent.
        if matches!(outcome, Err(error) if ![Errno::NOENT, Errno::NOMEM, Errno::INTR].contains(&error)) {
            self.is_refused.store(true, Ordering::Relaxed);
        }
        let end = neighbours.offset.saturating_add(neighbours.bytes.len() as u64);
        read.file.given.mark(&(neighbours.offset..end), read.file.len());
        outcome.is_ok()
    }

    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.stores.load(Ordering::Relaxed), self.left_out.load(Ordering::Relaxed))
    }
}

/// Length in bytes; 0 if unknown.
fn memory_len() -> u64 {
    let told = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kibibytes = told.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix("kB"));
    let kibibytes = kibibytes.and_then(|number| number.trim().parse::<u64>().ok());
    kibibytes.unwrap_or(0).saturating_mul(1024)
}
