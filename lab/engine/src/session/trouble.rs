//! The meaning of a failure for the rest of a session.

use std::path::Path;

use packfs::Error;

use crate::one_line;
use crate::results::Missing;
use crate::scratch::Scratch;

/// With less than this a place counts as full: a program that fails for want of room leaves hardly
/// more.
const FULL: u64 = 1 << 20;
/// The way out where the scratch has no room.
pub(super) const NO_ROOM: &str =
    "free some space, or have --scratch DIR name another place; the same command goes on";

/// Reason why a step was not done.
#[derive(Debug)]
pub enum Trouble {
    /// This cell, or subject, cannot be measured; others can.
    Missing(String),
    /// Nothing can go on: the disk is full, or the user wants to stop.
    Stop(Error),
}

impl From<Missing> for Trouble {
    fn from(Missing { what, why }: Missing) -> Self {
        Self::Missing(if why.contains(&what) { why } else { format!("{what}: {why}") })
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Missing(one_line(&error))
    }
}

impl From<String> for Trouble {
    fn from(why: String) -> Self {
        Self::Missing(why)
    }
}

impl Trouble {
    /// Stops the session if the scratch is full. A full memory hinders those alone that need it.
    ///
    /// The text of a failure is no evidence: a filesystem that is measured may be full where the
    /// scratch is not.
    pub(super) fn judged(self, scratch: Space<'_>, memory: Option<Space<'_>>) -> Self {
        match (self, memory.filter(|memory| memory.is_full())) {
            (Self::Missing(why), _) if scratch.is_full() => {
                let stop = Error::failed(format!("the scratch in {:?} is full: {why}", scratch.dir));
                Self::Stop(stop.hint(NO_ROOM))
            }
            (Self::Missing(why), Some(memory)) => Self::Missing(format!("{:?} is full: {why}", memory.dir)),
            (trouble, _) => trouble,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Space<'a> {
    dir: &'a Path,
    free: u64,
}

impl<'a> Space<'a> {
    /// Looks at a place; one that cannot be asked is not full.
    pub(super) fn of(scratch: &'a Scratch) -> Self {
        Self { dir: scratch.dir(), free: scratch.free().unwrap_or(u64::MAX) }
    }

    fn is_full(self) -> bool {
        self.free < FULL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_SPACE: &str = "unsquashfs exits with 1: No space left on device";

    fn space(dir: &'static str, free: u64) -> Space<'static> {
        Space { dir: Path::new(dir), free }
    }

    fn failed(why: &str) -> Trouble {
        Trouble::Missing(why.into())
    }

    #[test]
    fn only_a_full_scratch_stops_regardless_of_the_program() {
        let roomy = space("/var/tmp", 1 << 30);
        for memory in [None, Some(space("/dev/shm", 1 << 30))] {
            let Trouble::Missing(why) = failed(NO_SPACE).judged(roomy, memory) else {
                panic!("the scratch has room");
            };
            assert_eq!(why, NO_SPACE);
        }
        let Trouble::Stop(error) = failed("killed").judged(space("/var/tmp", 0), None) else {
            panic!("the scratch is full");
        };
        assert!(error.to_string().contains("/var/tmp"), "{error}");
        assert!(error.hints()[0].contains("--scratch"), "{error:?}");
    }

    #[test]
    fn reports_full_memory_without_stopping() {
        let (scratch, memory) = (space("/var/tmp", 1 << 30), space("/dev/shm", 4096));
        let Trouble::Missing(why) = failed(NO_SPACE).judged(scratch, Some(memory)) else {
            panic!("the scratch has room");
        };
        assert!(why.contains("\"/dev/shm\" is full: unsquashfs"), "{why}");
    }
}
