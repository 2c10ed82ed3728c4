//! Objects of a bucket under a prefix, which are created once and never changed.

mod content;
mod parts;
mod pieces;

use crate::answer::Answer;
use crate::failure::{Failure, of_status};
use crate::image::RemoteImage;
use crate::object::{Counts, Object};
use crate::options::RemoteOptions;
use crate::origin::Origin;
use crate::s3::S3Object;
use crate::transport::{Headers, Transport};
use content::Content;
use packfs_core::schemes::S3;
use packfs_core::{Copied, Error, Image, Place, Progress, Result, Stage, Store};
use pieces::SENT_LEN;
use rusty_s3::Method;
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// Longest answer that is read, besides objects.
const ANSWER_LEN: u64 = 64 << 10;
/// Header by which a store refuses to replace an object.
const ONLY_NEW: (&str, &str) = ("if-none-match", "*");
/// Header of an object by which its upload knows it again, if the last answer was lost.
const MARK: &str = "x-amz-meta-packfs-upload";
/// Code of an error about a bucket that does not exist.
const NO_BUCKET: &str = "NoSuchBucket";
/// Requests with bodies take this many times the time of ranges, which they share the line with.
const SLOWER: u32 = 4;

/// Objects of a bucket under a prefix, in S3 or a store with its interface.
pub struct S3Folder {
    /// The prefix as a key, without a slash at its end; empty for a whole bucket.
    place: S3Object,
    shown: String,
    options: RemoteOptions,
    transport: Transport,
    counts: Arc<Counts>,
}

/// Parameters and headers of a request, each sorted by name.
#[derive(Default)]
struct Request<'a> {
    query: &'a [(&'a str, &'a str)],
    headers: &'a [(&'static str, &'a str)],
    body: Content<'a>,
}

impl S3Folder {
    /// Parses `s3://BUCKET/PREFIX`; no request is sent.
    ///
    /// Errors: `Usage`.
    pub fn open<'a>(url: impl Into<Place<'a>>, options: RemoteOptions) -> Result<Self> {
        let place = url.into();
        let shown = place.shown().trim_end_matches('/').to_owned();
        let Some(rest) = place.rest_of(S3) else {
            let error = Error::usage(format!("cannot open {shown}: it is no place in a bucket"));
            return Err(error.hint("form: s3://BUCKET/PREFIX"));
        };
        let transport = Transport::new(&options.limits, &options.environment)?;
        let rest = rest.trim_end_matches('/');
        let place = S3Object::parse(rest, &shown, &options.environment, &transport)?;
        Ok(S3Folder { place, shown, options, transport, counts: Arc::default() })
    }

    /// Parses `s3://BUCKET/KEY` into a folder and the name of an object in it; no request is sent.
    ///
    /// Errors: `Usage`.
    pub fn of_object<'a>(url: impl Into<Place<'a>>, options: RemoteOptions) -> Result<(Self, String)> {
        let url = url.into();
        let mut folder = S3Folder::open(url, options)?;
        let key = folder.place.key().to_owned();
        let (prefix, name) = key.rsplit_once('/').unwrap_or(("", &key));
        if url.text().ends_with('/') {
            let error = Error::usage(format!("{} names no object", folder.shown));
            return Err(error.hint("form: s3://BUCKET/KEY, without a slash at its end"));
        }
        folder.place = folder.place.beside(prefix.into());
        // Names with a question mark are shown in part.
        if let Some(shown) = folder.shown.strip_suffix(name) {
            folder.shown = shown.trim_end_matches('/').into();
        }
        Ok((folder, name.into()))
    }

    /// Returns the URL of the folder, or of an object in it.
    fn url(&self, name: Option<&str>) -> String {
        name.map_or_else(|| self.shown.clone(), |name| format!("{}/{name}", self.shown))
    }

    fn has(&self, name: &str) -> Result<bool> {
        Ok(self.mark_of(name)?.is_some())
    }

    /// Returns the mark of an object, which may be empty; `None` if there is no object.
    fn mark_of(&self, name: &str) -> Result<Option<String>> {
        self.persist("open", name, |deadline| {
            let answer = self.send(Method::Head, name, &Request::default(), deadline)?;
            match answer.status {
                200 => Ok(Some(answer.header(MARK).unwrap_or_default().to_owned())),
                404 => Ok(None),
                _ => Err(self.refusal("open", name, answer)),
            }
        })
    }

    fn place_of(&self, name: &str) -> S3Object {
        let prefix = self.place.key();
        self.place.beside(if prefix.is_empty() { name.into() } else { format!("{prefix}/{name}") })
    }

    fn object(&self, name: &str) -> Object {
        let (transport, counts) = (self.transport.clone(), Arc::clone(&self.counts));
        let origin = Origin::S3(Box::new(self.place_of(name)));
        Object::of(origin, self.url(Some(name)), self.options.clone(), transport, counts)
    }

    fn persist<T>(
        &self,
        action: &str,
        name: &str,
        attempt: impl FnMut(Instant) -> Result<T, Failure>,
    ) -> Result<T> {
        let mut object = self.object(name);
        object.options.limits.total = object.options.limits.total.saturating_mul(SLOWER);
        object.persist(|| format!("cannot {action} {}", self.url(Some(name))), attempt)
    }

    fn send(
        &self,
        method: Method,
        name: &str,
        request: &Request<'_>,
        deadline: Instant,
    ) -> Result<Answer, Failure> {
        let (url, headers) = self.place_of(name).signed(method, request.query, request.headers)?;
        self.counts.request();
        let left = deadline.saturating_duration_since(Instant::now());
        let sent = |body: &mut dyn std::io::Read, len| {
            let sent = self.transport.send_from(method.into(), &url, &headers, body, len, left);
            sent.map_err(|none| none.failure(&format!("cannot reach {}", self.url(Some(name)))))
        };
        request.body.read_by(sent)
    }

    /// Accepts an answer that there is no such object, unless there is no such bucket.
    fn missing(&self, action: &str, name: &str, answer: Answer) -> Result<(), Failure> {
        let text = answer.small_body(ANSWER_LEN).unwrap_or_default();
        match code(&text) {
            Some(code) if code == NO_BUCKET => Err(self.no_bucket(action, name).into()),
            _ => Ok(()),
        }
    }

    fn no_bucket(&self, action: &str, name: &str) -> Error {
        let url = self.url(Some(name));
        let error = Error::failed(format!("cannot {action} {url}: the store has no such bucket"));
        error.hint("buckets are not created; upper and lower case letters differ")
    }

    /// Returns the failure for an answer to a request that changes something.
    fn refusal(&self, action: &str, name: &str, answer: Answer) -> Failure {
        let (status, wait) = (answer.status, answer.retry_after());
        let words = format!("the store answers with status {status}");
        // 409: another request for this name is not through yet.
        if crate::retry::is_temporary(status) || status == 409 {
            return Failure::answered(words, status, wait);
        }
        let region = answer.header("x-amz-bucket-region").map(str::to_owned);
        let said = answer.small_body(ANSWER_LEN).ok().and_then(|text| code(&text));
        if said.as_deref() == Some(NO_BUCKET) {
            return self.no_bucket(action, name).into();
        }
        let said = said.map(|code| format!(" ({code})")).unwrap_or_default();
        let error = Error::failed(format!("cannot {action} {}: {words}{said}", self.url(Some(name))));
        let error = of_status(error, status);
        let error = match status {
            401 | 403 => error.hint(self.place.access_hint()),
            501 => error.hint("the store cannot create objects on a condition (If-None-Match), as is needed"),
            _ => error,
        };
        Failure::Final(self.place.with_region(error, region.as_deref()))
    }
}

impl Store for S3Folder {
    fn name(&self) -> String {
        self.url(None)
    }

    fn place(&self, name: &str) -> PathBuf {
        self.url(Some(name)).into()
    }

    fn open(&self, name: &str) -> Result<Option<Arc<dyn Image>>> {
        if !self.has(name)? {
            return Ok(None);
        }
        Ok(Some(Arc::new(RemoteImage::of(self.object(name))?)))
    }

    fn get(&self, name: &str, len_max: u64) -> Result<Option<Vec<u8>>> {
        let object = self.object(name);
        let action = || format!("cannot read {}", object.shown);
        object.persist(action, |deadline| {
            let answer = object.get(&Headers::new(), deadline)?;
            match answer.status {
                200 => {}
                404 => return self.missing("read", name, answer).map(|()| None),
                _ => return Err(object.failure(&answer)),
            }
            if answer.content_len().is_some_and(|len| len > len_max) {
                let fault = format!("more than {len_max} bytes");
                return Err(Error::corrupt(&object.shown, fault).into());
            }
            answer.small_body(len_max).map(Some).map_err(Failure::temporary)
        })
    }

    // Objects of more than 16 MiB are sent in parts, four at a time, which the store joins.
    fn create(
        &self,
        name: &str,
        image: &dyn Image,
        copied: &[Copied<'_>],
        progress: &dyn Progress,
    ) -> Result<Option<u64>> {
        progress.begin(Stage::Upload, 0, image.len());
        let mark = format!("{:016x}", RandomState::new().hash_one(std::process::id()));
        if image.len() > SENT_LEN {
            return self.create_in_parts(name, &mark, image, copied, progress);
        }
        let headers = [ONLY_NEW, (MARK, &*mark)];
        let mut is_unsure = false;
        let is_new = self.persist("write", name, |deadline| {
            let body = Content::Part { image, range: 0..image.len(), progress };
            let request = Request { headers: &headers, body, ..Request::default() };
            let was_unsure = std::mem::replace(&mut is_unsure, true);
            let answer = self.send(Method::Put, name, &request, deadline)?;
            match answer.status {
                200..=204 => Ok(true),
                412 => Ok(was_unsure && self.mark_of(name)?.is_some_and(|found| found == mark)),
                _ => Err(self.refusal("write", name, answer)),
            }
        })?;
        if is_new && let Err(changed) = image.check_unchanged() {
            self.remove(name)?;
            return Err(changed);
        }
        progress.advance(0, 0, image.len());
        Ok(is_new.then_some(0))
    }

    // The store lets an upload begin.
    fn check_creation(&self, name: &str) -> Result<()> {
        // Those who may write but not read learn of it at the end.
        if self.has(name).unwrap_or(false) {
            return Err(self.exists(name));
        }
        self.begin(name, "").map(|upload| upload.abort())
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.persist("remove", name, |deadline| {
            let answer = self.send(Method::Delete, name, &Request::default(), deadline)?;
            match answer.status {
                200..=204 => Ok(()),
                404 => self.missing("remove", name, answer),
                _ => Err(self.refusal("remove", name, answer)),
            }
        })
    }
}

/// Returns the text between the first tags of this name in XML; there are no escapes in what is
/// looked for.
fn element<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    Some(rest.split_once(&format!("</{name}>"))?.0)
}

/// Returns the code of an error, such as `AccessDenied`.
fn code(text: &[u8]) -> Option<String> {
    let code = element(std::str::from_utf8(text).ok()?, "Code")?;
    let is_word = code.len() <= 64 && code.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_word.then(|| code.to_owned())
}
