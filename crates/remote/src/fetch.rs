//! Ranges of an object: requested, compared with the answer, and resumed.

use crate::answer::Answer;
use crate::failure::Failure;
use crate::no_answer::NoAnswer;
use crate::object::Object;
use crate::transport::Headers;
use crate::version::Version;
use packfs_core::Result;
use std::io::Read;
use std::ops::Range;
use std::time::Instant;

impl Object {
    /// Fills `buf` with the bytes at `start` of this version of the object.
    ///
    /// Errors: `Io` if they do not arrive; `Failed` if the object has changed or the server answers
    /// with anything else.
    pub(crate) fn fetch(&self, version: &Version, start: u64, buf: &mut [u8]) -> Result<()> {
        let mut filled = 0;
        let action = || format!("cannot read {} at {start:#x}", self.shown);
        self.persist(action, |deadline| {
            let rest = buf.get_mut(filled..).unwrap_or_default();
            let from = start.saturating_add(filled as u64);
            let read = self.fetch_once(version, from, rest, deadline);
            let (len, outcome) = read?;
            filled = filled.saturating_add(len);
            outcome.map_err(|NoAnswer { words, errno, .. }| Failure::Temporary {
                words,
                wait: None,
                has_progressed: len > 0,
                errno,
            })
        })
    }

    /// Fills `buf` as [`Object::fetch`], but tries only once, because no read waits for it yet.
    /// Returns false if bytes are missing.
    pub(crate) fn fetch_ahead(&self, version: &Version, start: u64, buf: &mut [u8]) -> bool {
        let deadline = Instant::now().checked_add(self.options.limits.read).unwrap_or_else(Instant::now);
        matches!(self.fetch_once(version, start, buf, deadline), Ok((_, Ok(()))))
    }

    /// Requests a range once; returns the number of bytes that came, and the cause if some are
    /// missing.
    fn fetch_once(
        &self,
        version: &Version,
        start: u64,
        buf: &mut [u8],
        deadline: Instant,
    ) -> Result<(usize, Result<(), NoAnswer>), Failure> {
        let wanted = start..start.saturating_add(buf.len() as u64);
        if wanted.is_empty() {
            return Ok((0, Ok(())));
        }
        let mut headers: Headers = vec![range_header(&wanted)];
        headers.extend(version.validator.condition());
        let answer = self.get(&headers, deadline)?;
        self.check_part(&answer, version, &wanted)?;
        Ok(self.read_body(answer, buf))
    }

    /// Compares an answer with the request.
    fn check_part(&self, answer: &Answer, version: &Version, wanted: &Range<u64>) -> Result<(), Failure> {
        match answer.status {
            206 => {}
            // The object ends before the range.
            416 => return Err(self.changed().into()),
            200 => return Err(self.no_range(answer, version).into()),
            _ => return Err(self.failure(answer)),
        }
        if !version.validator.agrees(answer) {
            return Err(self.changed().into());
        }
        let Some(found) = answer.content_range() else {
            return Err(self.refused("the answer to a range has no Content-Range that can be read").into());
        };
        if found.len.is_some_and(|len| len != version.len) {
            return Err(self.changed().into());
        }
        let range = found.range.unwrap_or_default();
        if range != *wanted {
            let message = format!(
                "the server sent bytes {} to {}, requested were {} to {}",
                range.start, range.end, wanted.start, wanted.end
            );
            return Err(self.refused(message).into());
        }
        let len = wanted.end.saturating_sub(wanted.start);
        if answer.is_encoded() || answer.content_len().is_some_and(|found| found > len) {
            return Err(self
                .refused("the body of the answer is not the range: it is encoded, or longer")
                .into());
        }
        Ok(())
    }

    /// Returns the error for an answer with the whole object, whose body is not read.
    pub(crate) fn no_range(&self, answer: &Answer, version: &Version) -> packfs_core::Error {
        if !version.validator.agrees(answer) {
            return self.changed();
        }
        let error = self.refused("the server sent the whole object where a range was requested (status 200)");
        error.hint("the server has no range requests; download the image, or serve it by one that has them")
    }

    /// Reads a body into `buf`; returns the number of bytes that came, and the cause if some are
    /// missing.
    pub(crate) fn read_body(&self, answer: Answer, buf: &mut [u8]) -> (usize, Result<(), NoAnswer>) {
        let mut reader = answer.body.into_with_config().limit(u64::MAX).reader();
        let mut filled = 0;
        let outcome = loop {
            let rest = buf.get_mut(filled..).unwrap_or_default();
            if rest.is_empty() {
                // The connection is free again once the end was seen.
                let _ = reader.read(&mut [0]);
                break Ok(());
            }
            match reader.read(rest) {
                Ok(0) => break Err(NoAnswer::passing("the answer ends early")),
                Ok(len) => filled = filled.saturating_add(len),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                // Errors of the client speak of sockets and limits, not of the URL.
                Err(error) => break Err(NoAnswer::broken_off(&error)),
            }
        };
        self.counts.received(filled);
        (filled, outcome)
    }
}

/// Returns the header that requests a range, which is not empty.
pub(crate) fn range_header(range: &Range<u64>) -> (&'static str, String) {
    ("range", format!("bytes={}-{}", range.start, range.end.saturating_sub(1)))
}

/// Returns the header that requests all from an offset on.
pub(crate) fn range_header_from(start: u64) -> (&'static str, String) {
    ("range", format!("bytes={start}-"))
}
