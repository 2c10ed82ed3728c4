//! Tells which structures readers take from images, for tests that change their fields.

use crate::{DiskField, OnDisk};
use std::cell::RefCell;

/// Takes the name and the fields of a structure, and its bytes.
pub type Watcher = Box<dyn FnMut(&'static str, &'static [DiskField], &[u8])>;

thread_local! {
    static WATCHER: RefCell<Option<Watcher>> = const { RefCell::new(None) };
}

/// Has `watcher` told of each structure that this thread reads during `work`.
pub fn watch<T>(watcher: Watcher, work: impl FnOnce() -> T) -> T {
    WATCHER.set(Some(watcher));
    let done = work();
    WATCHER.set(None);
    done
}

/// Tells of the structure that `bytes` begin with.
pub(crate) fn tell<T: OnDisk>(bytes: &[u8]) {
    WATCHER.with_borrow_mut(|watcher| {
        if let (Some(watcher), Some(bytes)) = (watcher, bytes.get(..size_of::<T>())) {
            watcher(T::NAME, T::FIELDS, bytes);
        }
    });
}
