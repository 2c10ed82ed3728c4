//! What a failure means for the rest of a session.

use std::path::Path;

use packfs::Error;

use super::super::Trouble;
use crate::results::Missing;
use crate::scratch::Scratch;

/// With less than this a place counts as full: who fails for want of room leaves hardly more.
const FULL: u64 = 1 << 20;

/// A place that something was written to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Space<'a> {
    dir: &'a Path,
    free: u64,
}

impl<'a> Space<'a> {
    /// As it is now; what cannot be asked is not full.
    pub(super) fn of(scratch: &'a Scratch) -> Self {
        Self { dir: scratch.dir(), free: scratch.free().unwrap_or(u64::MAX) }
    }

    fn is_full(self) -> bool {
        self.free < FULL
    }
}

/// What became of `what`, which failed, as `text` says: usually its own failure; but with a full
/// scratch nothing can go on. What is told of room is not asked: a file system that is measured is
/// full where the scratch is not. A full memory hinders those alone that need it.
pub(super) fn trouble(what: &str, text: &str, scratch: Space<'_>, memory: Option<Space<'_>>) -> Trouble {
    if scratch.is_full() {
        let stop = Error::failed(format!("the scratch in {:?} is full: {text}", scratch.dir));
        return Trouble::Stop(stop.hint(NO_ROOM));
    }
    let why = match memory.filter(|memory| memory.is_full()) {
        Some(memory) => format!("{:?} is full: {text}", memory.dir),
        None => text.to_owned(),
    };
    Trouble::Missing(Missing { what: what.into(), why })
}

/// The way out where the scratch has no room.
pub(super) const NO_ROOM: &str =
    "free some space, or have --scratch DIR name another place; the same command goes on";

#[cfg(test)]
mod tests {
    use super::*;

    const NO_SPACE: &str = "unsquashfs exits with 1: No space left on device";

    fn space(dir: &'static str, free: u64) -> Space<'static> {
        Space { dir: Path::new(dir), free }
    }

    #[test]
    fn only_a_full_scratch_stops_whatever_the_program_says() {
        let roomy = space("/var/tmp", 1 << 30);
        for memory in [None, Some(space("/dev/shm", 1 << 30))] {
            let Trouble::Missing(missing) = trouble("list", NO_SPACE, roomy, memory) else {
                panic!("the scratch has room");
            };
            assert_eq!((&*missing.what, &*missing.why), ("list", NO_SPACE));
        }
        let Trouble::Stop(error) = trouble("list", "killed", space("/var/tmp", 0), None) else {
            panic!("the scratch is full");
        };
        assert!(error.to_string().contains("/var/tmp"), "{error}");
        assert!(error.hints()[0].contains("--scratch"), "{error:?}");
    }

    #[test]
    fn a_full_memory_is_named_and_stops_nobody() {
        let (scratch, memory) = (space("/var/tmp", 1 << 30), space("/dev/shm", 4096));
        let Trouble::Missing(missing) = trouble("decode", NO_SPACE, scratch, Some(memory)) else {
            panic!("the scratch has room");
        };
        assert!(missing.why.contains("\"/dev/shm\" is full: unsquashfs"), "{}", missing.why);
    }
}
