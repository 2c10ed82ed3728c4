//! Bodies of requests, read while they are sent.

use crate::answer::Answer;
use crate::failure::Failure;
use packfs_core::{Error, Image, Progress, usize_of};
use std::io::{self, Read};
use std::ops::Range;

/// Bytes that a request sends.
pub(super) enum Content<'a> {
    Bytes(&'a [u8]),
    /// Range of an image; `progress` may stop it.
    Part {
        image: &'a dyn Image,
        range: Range<u64>,
        progress: &'a dyn Progress,
    },
}

impl Default for Content<'_> {
    fn default() -> Self {
        Content::Bytes(&[])
    }
}

impl Content<'_> {
    /// Lends the bytes and their number to a request.
    ///
    /// Errors: those of the request, `Cancelled`, those of reading the image.
    pub(super) fn read_by(
        &self,
        send: impl FnOnce(&mut dyn Read, u64) -> Result<Answer, Failure>,
    ) -> Result<Answer, Failure> {
        match self {
            Content::Bytes(bytes) => send(&mut &**bytes, bytes.len() as u64),
            Content::Part { image, range, progress } => {
                let len = range.end.saturating_sub(range.start);
                let mut part = Part { image: *image, range: range.clone(), progress: *progress, error: None };
                let sent = send(&mut part, len);
                part.error.map_or(sent, |error| Err(error.into()))
            }
        }
    }
}

/// Reader of a range of an image.
struct Part<'a> {
    image: &'a dyn Image,
    range: Range<u64>,
    progress: &'a dyn Progress,
    /// Error of the image, which the client of HTTP would lose.
    error: Option<Error>,
}

impl Read for Part<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let left = self.range.end.saturating_sub(self.range.start);
        let part = buf.get_mut(..usize_of(left).min(buf.len())).unwrap_or_default();
        let outcome = if self.progress.cancelled() {
            Err(Error::cancelled())
        } else {
            self.image.read_exact_at(self.range.start, part)
        };
        self.range.start = self.range.start.saturating_add(part.len() as u64);
        outcome.map(|()| part.len()).map_err(|error| {
            self.error = Some(error);
            io::Error::other("no more bytes")
        })
    }
}
