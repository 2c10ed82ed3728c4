//! An object read once, from start to end, by servers with ranges or without.

use crate::answer::Answer;
use crate::failure::Failure;
use crate::fetch::range_header_from;
use crate::no_answer::NoAnswer;
use crate::object::Object;
use crate::options::RemoteOptions;
use crate::transport::Headers;
use crate::version::Validator;
use packfs_core::{Place, Result};
use std::io::{self, Read};
use std::time::{Duration, Instant};

/// An answer may last as long as bytes come.
const LONG: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Body of an answer.
type Body = Box<dyn Read + Send>;

/// Reader of an object. Where its server breaks off, it is asked for the rest, or for all of it
/// again; the object has to be the same then. Errors hold those of packfs.
pub struct Download {
    object: Object,
    /// The object as the first answer showed it.
    seen: Option<Seen>,
    body: Option<Body>,
    /// Bytes read so far.
    at: u64,
}

/// See [`Download::seen`].
#[derive(Clone)]
struct Seen {
    /// Its length, if the server tells it.
    len: Option<u64>,
    validator: Validator,
}

impl Download {
    /// Prepares to read the object that a URL names. The first read sends the first request.
    ///
    /// Errors: `Usage` for a wrong URL; `Failed` without a connection because of `--offline`.
    pub fn new<'a>(url: impl Into<Place<'a>>, options: RemoteOptions) -> Result<Self> {
        let object = Object::new(url.into(), options)?;
        if object.options.is_offline {
            return Err(object.refused("it is read from start to end, and --offline is given"));
        }
        Ok(Download { object, seen: None, body: None, at: 0 })
    }

    fn next(&mut self, buf: &mut [u8]) -> Result<usize> {
        if let (Some(body), Some(seen)) = (&mut self.body, &self.seen)
            && let Ok(len) = part(body, buf, seen.left(self.at))
        {
            return Ok(len);
        }
        self.body = None;
        let action = || format!("cannot read {}", self.object.shown);
        let (body, seen, len) = self.object.persist(action, |_| {
            let (mut body, seen) = self.connected()?;
            let len =
                part(&mut body, buf, seen.left(self.at)).map_err(|none| none.failure("cannot read on"))?;
            Ok((body, seen, len))
        })?;
        (self.body, self.seen) = (Some(body), Some(seen));
        Ok(len)
    }

    /// Asks for what was not read so far.
    fn connected(&self) -> Result<(Body, Seen), Failure> {
        let mut headers = Headers::new();
        if let Some(seen) = self.seen.as_ref().filter(|_| self.at > 0) {
            headers.push(range_header_from(self.at));
            headers.extend(seen.validator.condition());
        }
        let deadline = Instant::now().checked_add(LONG).unwrap_or_else(Instant::now);
        let answer = self.object.get(&headers, deadline)?;
        let (seen, passed) = self.found(&answer)?;
        if self.seen.as_ref().is_some_and(|first| !first.agrees(&answer, seen.len)) {
            return Err(self.object.changed().into());
        }
        let mut body: Body = Box::new(answer.body.into_with_config().limit(u64::MAX).reader());
        // A server without ranges sends again what was read.
        let again = io::copy(&mut body.by_ref().take(passed), &mut io::sink()).unwrap_or(0);
        if again < passed {
            return Err(Failure::temporary("the answer breaks off"));
        }
        Ok((body, seen))
    }

    /// Returns the object as an answer shows it, and how many bytes of its body were read before.
    fn found(&self, answer: &Answer) -> Result<(Seen, u64), Failure> {
        let validator = Validator::of(answer);
        if answer.ends_unseen() {
            let what = "the answer has no length and no end, so that a part could pass for the whole";
            return Err(self.object.refused(what).into());
        }
        match (answer.status, answer.content_range()) {
            (200, _) => Ok((Seen { len: answer.content_len(), validator }, self.at)),
            (206, Some(found)) if found.range.as_ref().is_some_and(|range| range.start == self.at) => {
                Ok((Seen { len: found.len, validator }, 0))
            }
            (206, _) => Err(self.object.refused("the server sent another range than was requested").into()),
            // The object ends before the range.
            (416, _) => Err(self.object.changed().into()),
            _ => Err(self.object.failure(answer)),
        }
    }
}

impl Seen {
    /// True if an answer shows the same object.
    fn agrees(&self, answer: &Answer, len: Option<u64>) -> bool {
        let same_len = len.zip(self.len).is_none_or(|(found, first)| found == first);
        same_len && self.validator.agrees(answer)
    }

    /// Returns the bytes that are still to come, if that is known.
    fn left(&self, at: u64) -> Option<u64> {
        self.len.map(|len| len.saturating_sub(at))
    }
}

/// Reads the next bytes; 0 at the end alone.
fn part(body: &mut Body, buf: &mut [u8], left: Option<u64>) -> Result<usize, NoAnswer> {
    loop {
        match body.read(buf) {
            Ok(0) if left.is_some_and(|left| left > 0) => {
                return Err(NoAnswer::passing("the answer ends early"));
            }
            Ok(len) => return Ok(len),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Errors of the client speak of sockets and limits, not of the URL.
            Err(error) => return Err(NoAnswer::broken_off(&error)),
        }
    }
}

impl Read for Download {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        let len = self.next(buf).map_err(io::Error::other)?;
        self.at = self.at.saturating_add(len as u64);
        self.object.counts.received(len);
        Ok(len)
    }
}
