//! Sources and images that fail at a call of one's choice: run with the first, the second, the
//! third ... until nothing fails any more.

use packfs_core::{ContentId, ContentReader, Contents, Error, Image, Result};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Lets so many calls pass, fails the next ones, and lets all later ones pass.
#[derive(Debug)]
pub struct Countdown {
    calls: AtomicU64,
    first: u64,
    count: u64,
}

impl Countdown {
    /// The call of this number fails, and those after it, `count` together; the first is 0.
    pub fn new(first: u64, count: u64) -> Arc<Self> {
        Arc::new(Countdown { calls: AtomicU64::new(0), first, count })
    }

    /// Returns the number of calls.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }

    /// Returns true if any call failed.
    pub fn has_failed(&self) -> bool {
        self.calls() > self.first
    }

    fn fails(&self) -> bool {
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        (self.first..self.first.saturating_add(self.count)).contains(&call)
    }

    fn pass(&self) -> Result<()> {
        if self.fails() {
            Err(Error::io("cannot read what is made to fail", io::Error::from_raw_os_error(5)))
        } else {
            Ok(())
        }
    }
}

/// Contents that fail with EIO.
pub struct FaultyContents<'a> {
    inner: &'a dyn Contents,
    countdown: Arc<Countdown>,
}

impl<'a> FaultyContents<'a> {
    /// Fails instead of what `inner` says when `countdown` says so.
    pub fn new(inner: &'a dyn Contents, countdown: Arc<Countdown>) -> Self {
        FaultyContents { inner, countdown }
    }
}

impl Contents for FaultyContents<'_> {
    fn open(&self, id: ContentId) -> Result<Box<dyn ContentReader + '_>> {
        self.countdown.pass()?;
        Ok(Box::new(FaultyReader { inner: self.inner.open(id)?, countdown: &self.countdown }))
    }
}

struct FaultyReader<'a> {
    inner: Box<dyn ContentReader + 'a>,
    countdown: &'a Countdown,
}

impl ContentReader for FaultyReader<'_> {
    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.countdown.pass()?;
        self.inner.read_exact_at(offset, buf)
    }

    fn next_data(&mut self, offset: u64) -> Result<Option<Range<u64>>> {
        self.countdown.pass()?;
        self.inner.next_data(offset)
    }

    fn check_unchanged(&mut self) -> Result<()> {
        self.countdown.pass()?;
        self.inner.check_unchanged()
    }
}

/// A way for a read of an image to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadFault {
    /// EIO.
    Error,
    /// Half of what was requested comes, as if the image ended there.
    Short,
}

/// An image of which reads fail.
pub struct FaultyImage {
    inner: Arc<dyn Image>,
    fault: ReadFault,
    countdown: Arc<Countdown>,
}

impl FaultyImage {
    /// Fails instead of reading `inner` when `countdown` says so.
    pub fn new(inner: Arc<dyn Image>, fault: ReadFault, countdown: Arc<Countdown>) -> Arc<Self> {
        Arc::new(FaultyImage { inner, fault, countdown })
    }
}

impl Image for FaultyImage {
    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        match self.fault {
            ReadFault::Error => self.countdown.pass()?,
            ReadFault::Short if self.countdown.fails() => {
                let half = buf.len() / 2;
                return self.inner.read_at(offset, &mut buf[..half]);
            }
            ReadFault::Short => {}
        }
        self.inner.read_at(offset, buf)
    }

    fn name(&self) -> String {
        self.inner.name()
    }
}
