//! Upload of an image to S3, in parts. The object appears once it is complete, and replaces none.

use crate::answer::Answer;
use crate::object::{Failure, Object};
use crate::options::RemoteOptions;
use crate::origin::Origin;
use crate::s3::{MARK, S3Object, S3Request};
use crate::transport::Method;
use packfs_core::{Error, Image, Progress, Recipient, Result, Stage};
use rusty_s3::actions::{CompleteMultipartUploadResponse, CreateMultipartUpload};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Length of parts of images up to 80 GB; 5 MiB is the least that stores take.
const PART_LEN: u64 = 8 << 20;
/// Most bytes of a part, by the limits of S3.
const PART_LEN_MAX: u64 = 5 << 30;
/// Most parts of an object.
const PARTS_MAX: u64 = 10_000;
/// Parts sent at once.
const PARALLEL: usize = 4;
/// Longest answer that is read.
const ANSWER_LEN_MAX: u64 = 1 << 20;
/// Parts take longer than ranges, and share the line.
const SLOWER: u32 = 4;

/// An upload that has begun. Dropping it removes the parts that were sent, unless it is complete.
pub struct Upload {
    object: Object,
    id: String,
    /// Value by which the object is known as that of this upload.
    mark: String,
    is_complete: AtomicBool,
}

impl Upload {
    /// Begins the upload of an object, `s3://BUCKET/KEY`, which must not exist.
    ///
    /// Errors: `Usage` for another URL; `Failed` if the object exists or the store refuses; `Io` if
    /// it does not answer.
    pub fn begin(url: &str, mut options: RemoteOptions) -> Result<Self> {
        options.limits.total = options.limits.total.saturating_mul(SLOWER);
        let object = Object::new(url, options)?;
        let target = target(&object)?;
        if head(&object, target)?.is_some() {
            return Err(exists(&object));
        }
        let mark = format!("{:016x}", RandomState::new().hash_one(std::process::id()));
        let action = || format!("cannot write {}", object.shown);
        let id = object.persist(action, |deadline| {
            let request = target.request(&S3Request::Create { mark: &mark })?;
            let answer = object.send(Method::Post, &request, &mut io::empty(), 0, deadline)?;
            if answer.status != 200 {
                return Err(refusal(&object, &answer));
            }
            let text = text(answer)?;
            let parsed = CreateMultipartUpload::parse_response(&text);
            let id = parsed.map(|it| it.upload_id().to_owned()).ok().filter(|id| !id.is_empty());
            id.ok_or_else(|| cannot(&object, "the store tells no number of the upload").into())
        })?;
        Ok(Upload { object, id, mark, is_complete: AtomicBool::new(false) })
    }

    /// Sends an image and gives it its name.
    ///
    /// Errors: `Failed` if the store refuses, or has such an object now; `Io`, `Limit`, `Cancelled`,
    /// and those of reading the image.
    fn send(&self, image: &dyn Image, progress: &dyn Progress) -> Result<()> {
        let parts = parts(image.len(), &self.object.shown)?;
        progress.begin(Stage::Upload, 1, image.len());
        let target = target(&self.object)?;
        let next = AtomicU16::new(0);
        let is_stopped = AtomicBool::new(false);
        let sent = Mutex::new((vec![String::new(); parts.len()], None));
        let work = || {
            while !is_stopped.load(Ordering::Relaxed) {
                let index = usize::from(next.fetch_add(1, Ordering::Relaxed));
                let Some(range) = parts.get(index) else { return };
                let part = Part { number: u16::try_from(index.saturating_add(1)).unwrap_or(u16::MAX), range };
                let outcome = self.send_part(target, &part, image, progress);
                let mut sent = sent.lock().unwrap_or_else(PoisonError::into_inner);
                match outcome {
                    Ok(tag) => {
                        if let Some(place) = sent.0.get_mut(index) {
                            *place = tag;
                        }
                        progress.advance(0, 0, range.end.saturating_sub(range.start));
                    }
                    Err(error) => {
                        is_stopped.store(true, Ordering::Relaxed);
                        sent.1.get_or_insert(error);
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..parts.len().min(PARALLEL) {
                // Without another thread, this one does all.
                let _ = std::thread::Builder::new().spawn_scoped(scope, work);
            }
            work();
        });
        let (tags, error) = sent.into_inner().unwrap_or_else(PoisonError::into_inner);
        match error {
            Some(error) => Err(error),
            None if progress.cancelled() => Err(Error::cancelled()),
            None => self.complete(target, &tags),
        }
    }

    /// Sends a part; returns its entity tag.
    fn send_part(
        &self,
        target: &S3Object,
        part: &Part<'_>,
        image: &dyn Image,
        progress: &dyn Progress,
    ) -> Result<String> {
        let Part { number, range } = *part;
        let object = &self.object;
        object.persist(
            || format!("cannot write {} at {:#x}", object.shown, range.start),
            |deadline| {
                let mut body = Body { image, range: range.clone(), progress, error: None };
                let len = range.end.saturating_sub(range.start);
                let request = target.request(&S3Request::Part { id: &self.id, number })?;
                let answer = object.send(Method::Put, &request, &mut body, len, deadline);
                if progress.cancelled() {
                    return Err(Error::cancelled().into());
                }
                if let Some(error) = body.error {
                    return Err(error.into());
                }
                let answer = answer?;
                match answer.header("etag") {
                    Some(tag) if answer.status == 200 => Ok(tag.to_owned()),
                    None if answer.status == 200 => {
                        Err(cannot(object, "the store tells no ETag of a part").into())
                    }
                    _ => Err(refusal(object, &answer)),
                }
            },
        )
    }

    /// Makes an object of the parts, unless there is one of this name.
    fn complete(&self, target: &S3Object, tags: &[String]) -> Result<()> {
        let object = &self.object;
        let body = target.completion(&self.id, tags.iter().map(String::as_str));
        let mut is_unsure = false;
        object.persist(
            || format!("cannot write {}", object.shown),
            |deadline| {
                let (url, mut headers) = target.request(&S3Request::Complete { id: &self.id })?;
                headers.push(("if-none-match", "*".into()));
                let len = body.len() as u64;
                let mut bytes = body.as_bytes();
                let was_unsure = std::mem::replace(&mut is_unsure, true);
                let answer = object.send(Method::Post, &(url, headers), &mut bytes, len, deadline)?;
                let status = answer.status;
                // An attempt whose answer was lost may have succeeded.
                if was_unsure && matches!(status, 404 | 412) && self.is_there(target)? {
                    return Ok(());
                }
                match status {
                    // The store answers before it knows.
                    200 => match CompleteMultipartUploadResponse::parse(&text(answer)?) {
                        Ok(_) => Ok(()),
                        Err(_) => Err(Failure::temporary("the store did not end the upload")),
                    },
                    412 => Err(exists(object).into()),
                    409 => Err(Failure::temporary("another upload of this object is about to end")),
                    _ => Err(refusal(object, &answer)),
                }
            },
        )?;
        self.is_complete.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// True if the object that is there came by this upload.
    fn is_there(&self, target: &S3Object) -> Result<bool> {
        Ok(head(&self.object, target)?.is_some_and(|mark| mark == self.mark))
    }

    /// Has the store remove the parts that were sent.
    fn abort(&self) -> Result<()> {
        let target = target(&self.object)?;
        let request = target.request(&S3Request::Abort { id: &self.id })?;
        let deadline = Instant::now().checked_add(self.object.options.limits.read);
        let deadline = deadline.unwrap_or_else(Instant::now);
        match self.object.send(Method::Delete, &request, &mut io::empty(), 0, deadline) {
            Ok(answer) if matches!(answer.status, 200 | 204 | 404) => Ok(()),
            _ => Err(cannot(&self.object, "the parts that were sent are still in the store")),
        }
    }
}

impl fmt::Debug for Upload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Upload({})", self.object.shown)
    }
}

impl Recipient for Upload {
    fn name(&self) -> String {
        self.object.shown.clone()
    }

    fn take(&self, image: &dyn Image, progress: &dyn Progress) -> Result<()> {
        self.send(image, progress).inspect_err(|_| {
            // It is removed here and not when this is dropped, so that the user learns of a failure.
            match self.abort() {
                Ok(()) => self.is_complete.store(true, Ordering::Relaxed),
                Err(error) => progress.warn(&error.to_string()),
            }
        })
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if !self.is_complete.load(Ordering::Relaxed) {
            // Rules of buckets remove what is left.
            let _ = self.abort();
        }
    }
}

/// Part of an upload.
struct Part<'a> {
    number: u16,
    range: &'a Range<u64>,
}

/// Bytes of a part, read while they are sent.
struct Body<'a> {
    image: &'a dyn Image,
    range: Range<u64>,
    progress: &'a dyn Progress,
    error: Option<Error>,
}

impl Read for Body<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.progress.cancelled() {
            return Err(io::Error::other("cancelled"));
        }
        let left = packfs_core::usize_of(self.range.end.saturating_sub(self.range.start));
        let len = left.min(buf.len());
        let part = buf.get_mut(..len).unwrap_or_default();
        if let Err(error) = self.image.read_exact_at(self.range.start, part) {
            self.error = Some(error);
            return Err(io::Error::other("the image cannot be read"));
        }
        self.range.start = self.range.start.saturating_add(len as u64);
        Ok(len)
    }
}

/// Returns the parts of an image.
///
/// Errors: `Limit` for one that is too long for a store.
fn parts(len: u64, shown: &str) -> Result<Vec<Range<u64>>> {
    let part_len = len.div_ceil(PARTS_MAX).next_multiple_of(1 << 20).max(PART_LEN);
    if part_len > PART_LEN_MAX {
        let fault = format!("{len} bytes; stores take {PARTS_MAX} parts of {PART_LEN_MAX} bytes");
        return Err(Error::limit(shown, fault));
    }
    let part = |number: u64| {
        let start = number.saturating_mul(part_len);
        start..start.saturating_add(part_len).min(len)
    };
    Ok((0..len.div_ceil(part_len)).map(part).collect())
}

fn target(object: &Object) -> Result<&S3Object> {
    match &object.origin {
        Origin::S3(target) => Ok(target),
        _ => Err(Error::usage(format!("cannot write an image to {}: it is not in S3", object.shown))),
    }
}

/// Returns the mark of the object, which may be empty; `None` if there is no object, or the store
/// does not tell.
fn head(object: &Object, target: &S3Object) -> Result<Option<String>> {
    let action = || format!("cannot look for {}", object.shown);
    object.persist(action, |deadline| {
        let request = target.request(&S3Request::Head)?;
        let answer = object.send(Method::Head, &request, &mut io::empty(), 0, deadline)?;
        match answer.status {
            200 => Ok(Some(answer.header(MARK).unwrap_or_default().to_owned())),
            // Without the right to list a bucket, an object that is missing is one that is closed.
            404 | 403 => Ok(None),
            _ => Err(object.failure(&answer)),
        }
    })
}

fn cannot(object: &Object, why: &str) -> Error {
    Error::failed(format!("cannot write {}: {why}", object.shown))
}

fn exists(object: &Object) -> Error {
    cannot(object, "the store has an object of this name")
        .hint("it is unchanged; choose another key, or remove it")
}

/// Returns the failure for an answer to a request that changes something.
fn refusal(object: &Object, answer: &Answer) -> Failure {
    let error = |why: &str| cannot(object, &format!("the store {why} (status {})", answer.status));
    match answer.status {
        401 | 403 => error("refuses access").hint(object.origin.access_hint()).into(),
        404 => error("has no such bucket or upload")
            .hint("upper and lower case letters of buckets differ; AWS_ENDPOINT_URL names another store")
            .into(),
        _ => object.failure(answer),
    }
}

/// Returns the body of an answer.
fn text(answer: Answer) -> std::result::Result<String, Failure> {
    let bytes = answer.small_body(ANSWER_LEN_MAX).map_err(Failure::temporary)?;
    String::from_utf8(bytes).map_err(|_| Failure::temporary("the answer is no text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_cut_into_parts_that_stores_take() {
        let lens = |len: u64| -> Vec<u64> {
            parts(len, "").unwrap().iter().map(|part| part.end - part.start).collect()
        };
        assert_eq!(lens(1), [1]);
        assert_eq!(lens(PART_LEN), [PART_LEN]);
        assert_eq!(lens(2 * PART_LEN + 1), [PART_LEN, PART_LEN, 1]);
        let huge = lens(1 << 40);
        assert!(huge.len() <= 10_000 && huge.iter().sum::<u64>() == 1 << 40);
        assert!(parts(u64::MAX, "s3://b/k").is_err());
    }
}
