//! Objects that are sent in parts (multipart uploads of S3).

use super::content::Content;
use super::pieces::{Piece, pieces};
use super::{ANSWER_LEN, MARK, ONLY_NEW, Request, S3Folder, code, element};
use crate::failure::Failure;
use crate::image::RemoteImage;
use crate::s3::S3Object;
use packfs_core::{Copied, Error, Image, Progress, Result};
use rusty_s3::Method;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Parts sent at once.
const PARALLEL: usize = 4;
/// Longest name of an upload or of a part that is taken.
const NAME_LEN_MAX: usize = 1024;

/// An upload that has begun.
pub(super) struct Upload<'a> {
    folder: &'a S3Folder,
    name: &'a str,
    id: String,
    mark: &'a str,
}

/// Bytes of an object, and what of them lies in the store.
struct Bytes<'a> {
    image: &'a dyn Image,
    copied: &'a [Copied<'a>],
    progress: &'a dyn Progress,
}

impl S3Folder {
    /// Creates an object as [`packfs_core::Store::create`]. The parts of an upload that fails are
    /// removed.
    pub(super) fn create_in_parts(
        &self,
        name: &str,
        mark: &str,
        image: &dyn Image,
        copied: &[Copied<'_>],
        progress: &dyn Progress,
    ) -> Result<Option<u64>> {
        let from_here =
            |copied: &Copied<'_>| object_of(copied).is_some_and(|(_, it)| it.is_near(&self.place));
        let ranges = copied
            .iter()
            .map(|it| if from_here(it) { it.at..it.at.saturating_add(it.len) } else { it.at..it.at });
        let ranges: Vec<Range<u64>> = ranges.collect();
        let pieces = pieces(image.len(), &ranges, &self.url(Some(name)))?;
        let upload = self.begin(name, mark)?;
        let bytes = Bytes { image, copied, progress };
        let tags = upload.send_all(&pieces, &bytes);
        let tags = tags.and_then(|tags| image.check_unchanged().map(|()| tags));
        let is_new = tags.and_then(|tags| upload.end(&tags));
        if !matches!(is_new, Ok(true)) {
            upload.abort();
        }
        let copied = pieces.iter().filter(|piece| piece.copied.is_some()).map(Piece::len);
        is_new.map(|is_new| is_new.then(|| copied.sum()))
    }

    /// Begins an upload, whose object gets a mark.
    pub(super) fn begin<'a>(&'a self, name: &'a str, mark: &'a str) -> Result<Upload<'a>> {
        let headers = [(MARK, mark)];
        let headers = if mark.is_empty() { &[] } else { &headers[..] };
        let request = Request { query: &[("uploads", "1")], headers, ..Request::default() };
        let id = self.persist("write", name, |deadline| {
            let answer = self.send(Method::Post, name, &request, deadline)?;
            if answer.status != 200 {
                return Err(self.refusal("write", name, answer));
            }
            let text = answer.small_body(ANSWER_LEN).map_err(Failure::temporary)?;
            let text = String::from_utf8_lossy(&text);
            let id = element(&text, "UploadId").filter(|id| !id.is_empty() && id.len() <= NAME_LEN_MAX);
            id.map(str::to_owned).ok_or_else(|| Failure::temporary("the store gives the upload no name"))
        })?;
        Ok(Upload { folder: self, name, id, mark })
    }
}

impl Upload<'_> {
    /// Sends or copies all parts, and returns their tags in order.
    fn send_all(&self, pieces: &[Piece], bytes: &Bytes<'_>) -> Result<Vec<String>> {
        let next = AtomicUsize::new(0);
        let sent = Mutex::new((vec![String::new(); pieces.len()], None));
        let work = || {
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(piece) = pieces.get(index) else { return };
                let tag = if bytes.progress.cancelled() {
                    Err(Error::cancelled())
                } else {
                    self.send(index, piece, bytes)
                };
                let mut sent = sent.lock().unwrap_or_else(PoisonError::into_inner);
                let (tags, failure) = &mut *sent;
                match (tag, tags.get_mut(index)) {
                    (Ok(tag), Some(place)) => *place = tag,
                    (Ok(_), None) => {}
                    (Err(error), _) => {
                        // The others end after their part.
                        next.store(pieces.len(), Ordering::Relaxed);
                        failure.get_or_insert(error);
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..pieces.len().min(PARALLEL) {
                // Without another thread, this one does all.
                let _ = std::thread::Builder::new().spawn_scoped(scope, work);
            }
            work();
        });
        let (tags, error) = sent.into_inner().unwrap_or_else(PoisonError::into_inner);
        error.map_or(Ok(tags), Err)
    }

    fn send(&self, index: usize, piece: &Piece, bytes: &Bytes<'_>) -> Result<String> {
        let number = index.saturating_add(1).to_string();
        let query = [("partNumber", number.as_str()), ("uploadId", self.id.as_str())];
        let source = piece.copied.and_then(|index| bytes.copied.get(index));
        let tag = match source {
            Some(source) => self.copy(&query, &piece.range, source)?,
            None => self.put(&query, &piece.range, bytes)?,
        };
        bytes.progress.advance(0, 0, piece.len());
        Ok(tag)
    }

    fn put(&self, query: &[(&str, &str)], range: &Range<u64>, bytes: &Bytes<'_>) -> Result<String> {
        let Bytes { image, progress, .. } = *bytes;
        self.folder.persist("write", self.name, |deadline| {
            let body = Content::Part { image, range: range.clone(), progress };
            let request = Request { query, body, ..Request::default() };
            let answer = self.folder.send(Method::Put, self.name, &request, deadline)?;
            if answer.status != 200 {
                return Err(self.folder.refusal("write", self.name, answer));
            }
            tag(answer.header("etag").unwrap_or_default())
        })
    }

    /// Has the store copy a range of another object, unless that has changed since it was opened.
    fn copy(&self, query: &[(&str, &str)], range: &Range<u64>, source: &Copied<'_>) -> Result<String> {
        let Some((image, place)) = object_of(source) else {
            return Err(Error::failed("internal: a range that the store cannot copy"));
        };
        let start = source.start.saturating_add(range.start.saturating_sub(source.at));
        let last = start.saturating_add(range.end.saturating_sub(range.start)).saturating_sub(1);
        let (path, range) = (place.copy_source(), format!("bytes={start}-{last}"));
        let mut headers = vec![("x-amz-copy-source", path.as_str())];
        let version = image.etag();
        headers.extend(version.map(|tag| ("x-amz-copy-source-if-match", tag)));
        headers.push(("x-amz-copy-source-range", &range));
        let request = Request { query, headers: &headers, ..Request::default() };
        self.folder.persist("write", self.name, |deadline| {
            let answer = self.folder.send(Method::Put, self.name, &request, deadline)?;
            match answer.status {
                200 => {}
                412 => return Err(image.changed().into()),
                _ => return Err(self.folder.refusal("write", self.name, answer)),
            }
            let text = answer.small_body(ANSWER_LEN).map_err(Failure::temporary)?;
            let text = String::from_utf8_lossy(&text);
            // The status comes before the work is done. Stores escape quotes in several ways.
            let escaped = element(&text, "ETag").unwrap_or_default();
            tag(&["&quot;", "&#34;", "&#x22;"]
                .iter()
                .fold(escaped.into(), |text: String, quote| text.replace(quote, "\"")))
        })
    }

    /// Has the store join the parts; returns false if there is another object of this name.
    fn end(&self, tags: &[String]) -> Result<bool> {
        let rows = tags.iter().zip(1_u32..);
        let rows = rows
            .map(|(tag, number)| format!("<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>"));
        let rows: String = rows.collect();
        let body = format!("<CompleteMultipartUpload>{rows}</CompleteMultipartUpload>");
        let query = [("uploadId", self.id.as_str())];
        let request = Request { query: &query, headers: &[ONLY_NEW], body: Content::Bytes(body.as_bytes()) };
        let mut is_unsure = false;
        self.folder.persist("write", self.name, |deadline| {
            let was_unsure = std::mem::replace(&mut is_unsure, true);
            let answer = self.folder.send(Method::Post, self.name, &request, deadline)?;
            // An attempt whose answer was lost may have ended the upload.
            if was_unsure && matches!(answer.status, 404 | 412) {
                let found = self.folder.mark_of(self.name)?;
                if let Some(found) = found {
                    return Ok(found == self.mark);
                }
            }
            match answer.status {
                200 => {}
                412 => return Ok(false),
                _ => return Err(self.folder.refusal("write", self.name, answer)),
            }
            // The status comes before the work is done; the body tells how it went.
            let text = answer.small_body(ANSWER_LEN).map_err(Failure::temporary)?;
            match code(&text) {
                // The name of the outer element differs among stores.
                None if element(&String::from_utf8_lossy(&text), "ETag").is_some() => Ok(true),
                Some(code) if code == "PreconditionFailed" => Ok(false),
                said => {
                    let said = said.unwrap_or_else(|| "no result".into());
                    Err(Failure::temporary(format!("the store cannot join the parts: {said}")))
                }
            }
        })
    }

    /// Removes the parts. A failure leaves them to the rules of the bucket.
    pub(super) fn abort(&self) {
        let query = [("uploadId", self.id.as_str())];
        let request = Request { query: &query, ..Request::default() };
        let _ = self.folder.persist("write", self.name, |deadline| {
            self.folder.send(Method::Delete, self.name, &request, deadline).map(|_| ())
        });
    }
}

/// Returns the object in S3 that a range is of.
fn object_of<'a>(copied: &Copied<'a>) -> Option<(&'a RemoteImage, &'a S3Object)> {
    let image = copied.from.object()?.downcast_ref::<RemoteImage>()?;
    Some((image, image.s3_place()?))
}

/// Checks the tag of a part, which is sent back within XML.
fn tag(text: &str) -> Result<String, Failure> {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"<>&".contains(&byte);
    if text.is_empty() || text.len() > NAME_LEN_MAX || !text.bytes().all(is_plain) {
        return Err(Failure::temporary("the store gives a part no tag (ETag)"));
    }
    Ok(text.to_owned())
}
