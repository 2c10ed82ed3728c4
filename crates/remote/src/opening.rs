//! First requests: the head and the tail of an object, its length, and its version.

use crate::answer::Answer;
use crate::failure::Failure;
use crate::fetch::range_header;
use crate::object::Object;
use crate::transport::Headers;
use crate::version::{Validator, Version};
use packfs_core::{Result, usize_of};
use std::time::Instant;

/// Bytes requested at the start, where most formats have their superblock and EROFS its metadata.
pub(crate) const HEAD_LEN: u64 = 1 << 20;
/// Bytes requested at the end, where SquashFS has its metadata.
pub(crate) const TAIL_LEN: u64 = 1 << 20;

/// Object as its first answers show it.
pub(crate) struct Beginning {
    pub(crate) version: Version,
    pub(crate) head: Vec<u8>,
    /// Start and bytes of the end, if they came with the head and are of the same version.
    pub(crate) tail: Option<(u64, Vec<u8>)>,
}

/// Head of an object, whose body may have broken off.
struct Head {
    version: Version,
    bytes: Vec<u8>,
    filled: usize,
}

impl Object {
    /// Requests the head and the tail at once. If `known` is still the version, an answer without
    /// bytes says so; no tail is requested then.
    ///
    /// Errors: as [`Object::fetch`]; `Failed` if the server has no ranges.
    pub(crate) fn begin(&self, known: Option<&Version>) -> Result<Beginning> {
        self.counts.round();
        let (head, tail) = match known {
            Some(_) => (self.head(known), None),
            None => std::thread::scope(|scope| {
                let tail = std::thread::Builder::new().spawn_scoped(scope, || self.tail());
                let head = self.head(None);
                // A panic there has been reported; the tail is only an early answer.
                (head, tail.ok().and_then(|tail| tail.join().ok()).flatten())
            }),
        };
        let Head { version, mut bytes, filled } = head?;
        let rest = bytes.get_mut(filled..).unwrap_or_default();
        if !rest.is_empty() {
            self.fetch(&version, filled as u64, rest)?;
        }
        let tail = tail.filter(|(found, ..)| *found == version).map(|(_, start, bytes)| (start, bytes));
        Ok(Beginning { version, head: bytes, tail })
    }

    fn head(&self, known: Option<&Version>) -> Result<Head> {
        let action = || format!("cannot open {}", self.shown);
        self.persist(action, |deadline| self.head_once(known, deadline))
    }

    fn head_once(&self, known: Option<&Version>, deadline: Instant) -> Result<Head, Failure> {
        let mut headers: Headers = vec![range_header(&(0..HEAD_LEN))];
        if let Some(Version { validator: Validator::ETag(tag), .. }) = known {
            headers.push(("if-none-match", tag.clone()));
        }
        let answer = self.get(&headers, deadline)?;
        let validator = Validator::of(&answer);
        if answer.is_encoded() {
            return Err(self
                .refused("the server sends the image in an encoding that was not requested")
                .into());
        }
        match (answer.status, known) {
            (304, Some(known)) => {
                return Ok(Head { version: known.clone(), bytes: Vec::new(), filled: 0 });
            }
            (206, _) => {}
            (200, _) => return self.whole(answer, validator),
            // No range is within an empty object.
            (416, _) if answer.content_range().is_some_and(|it| it.len == Some(0)) => {
                return Ok(Head { version: Version { len: 0, validator }, bytes: Vec::new(), filled: 0 });
            }
            _ => return Err(self.failure(&answer)),
        }
        let (range, len) = answer.content_range().map(|it| (it.range, it.len)).unwrap_or_default();
        let Some(len) = len.filter(|&len| len <= i64::MAX as u64) else {
            return Err(self
                .refused("the server does not tell the length of the image (Content-Range)")
                .into());
        };
        let end = len.min(HEAD_LEN);
        if range != Some(0..end) {
            let message =
                format!("the server sent another range than the first {end} bytes, which were requested");
            return Err(self.refused(message).into());
        }
        let mut bytes = vec![0; usize_of(end)];
        let (filled, _) = self.read_body(answer, &mut bytes);
        Ok(Head { version: Version { len, validator }, bytes, filled })
    }

    /// Takes an answer without a range if the whole object is no longer than the head.
    fn whole(&self, answer: Answer, validator: Validator) -> Result<Head, Failure> {
        let len = answer.content_len().filter(|&len| len <= HEAD_LEN);
        let version = Version { len: len.unwrap_or(u64::MAX), validator };
        if len.is_none() {
            return Err(self.no_range(&answer, &version).into());
        }
        let mut bytes = vec![0; usize_of(version.len)];
        let (filled, outcome) = self.read_body(answer, &mut bytes);
        outcome.map_err(|none| none.failure("cannot read the head"))?;
        Ok(Head { version, bytes, filled })
    }

    /// Requests the tail once. Without it, its bytes are requested when they are read.
    fn tail(&self) -> Option<(Version, u64, Vec<u8>)> {
        let deadline = Instant::now().checked_add(self.options.limits.total)?;
        let answer = self.get(&vec![("range", format!("bytes=-{TAIL_LEN}"))], deadline).ok()?;
        let found = answer.content_range().filter(|_| answer.status == 206 && !answer.is_encoded())?;
        let (range, len) = (found.range?, found.len?);
        let version = Version { len, validator: Validator::of(&answer) };
        if range != (len.saturating_sub(TAIL_LEN)..len) {
            return None;
        }
        let mut bytes = vec![0; usize_of(range.end.saturating_sub(range.start))];
        let (_, outcome) = self.read_body(answer, &mut bytes);
        outcome.ok().map(|()| (version, range.start, bytes))
    }
}
