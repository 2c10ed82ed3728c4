//! Requests for an object: redirects, repetition, and errors in words.

use crate::answer::Answer;
use crate::failure::{Failure, of_status};
use crate::options::RemoteOptions;
use crate::origin::{Origin, without_user};
use crate::retry;
use crate::transport::{Headers, Transport};
use packfs_core::schemes::{HTTP, HTTPS};
use packfs_core::{Error, Fetched, Place, Result};
use rustix::io::Errno;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use url::Url;

/// Most redirects on the way to an object.
const REDIRECTS_MAX: usize = 5;
/// Attempts to reach a server that has not answered yet: rather its name or port is wrong.
const FIRST_ATTEMPTS: u32 = 3;

/// Object on a server.
pub(crate) struct Object {
    pub(crate) origin: Origin,
    /// URL in messages, without secrets.
    pub(crate) shown: String,
    pub(crate) options: RemoteOptions,
    pub(crate) counts: Arc<Counts>,
    transport: Transport,
    /// Place that redirects led to, where the next request goes at once.
    redirected: Mutex<Option<Url>>,
    /// Set once the object was found to be another one.
    has_changed: AtomicBool,
    /// Set once there was an answer.
    was_reached: AtomicBool,
}

/// The live counters.
#[derive(Default)]
pub(crate) struct Counts {
    requests: AtomicU64,
    rounds: AtomicU64,
    bytes: AtomicU64,
    retries: AtomicU64,
    cached_bytes: AtomicU64,
}

impl Counts {
    pub(crate) fn request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn round(&self) {
        self.rounds.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn received(&self, len: usize) {
        self.bytes.fetch_add(len as u64, Ordering::Relaxed);
    }

    pub(crate) fn cached(&self, len: usize) {
        self.cached_bytes.fetch_add(len as u64, Ordering::Relaxed);
    }

    pub(crate) fn fetched(&self) -> Fetched {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Fetched {
            requests: get(&self.requests),
            rounds: get(&self.rounds),
            bytes: get(&self.bytes),
            retries: get(&self.retries),
            cached_bytes: get(&self.cached_bytes),
        }
    }
}

impl Object {
    /// Returns the object at a place; no request is sent.
    ///
    /// Errors: `Usage`.
    pub(crate) fn new(place: Place<'_>, options: RemoteOptions) -> Result<Self> {
        let shown = place.shown();
        let transport = Transport::new(&options.limits, &options.environment)?;
        let origin = Origin::parse(place, &shown, &options, &transport)?;
        Ok(Object::of(origin, shown, options, transport, Arc::default()))
    }

    /// Returns an object that shares connections and counters with others.
    pub(crate) fn of(
        origin: Origin,
        shown: String,
        options: RemoteOptions,
        transport: Transport,
        counts: Arc<Counts>,
    ) -> Self {
        Object {
            origin,
            shown,
            options,
            counts,
            transport,
            redirected: Mutex::default(),
            has_changed: AtomicBool::new(false),
            was_reached: AtomicBool::new(false),
        }
    }

    /// Repeats attempts until one succeeds, fails for good, or time or attempts are used up. Bytes
    /// that arrive renew the attempts, not the time.
    ///
    /// Errors: `Io`, and those of attempts.
    pub(crate) fn persist<T>(
        &self,
        action: impl Fn() -> String,
        mut attempt: impl FnMut(Instant) -> Result<T, Failure>,
    ) -> Result<T> {
        let limits = self.options.limits;
        let deadline = Instant::now().checked_add(limits.total).unwrap_or_else(Instant::now);
        let (mut failed, mut all) = (0_u32, 0_u32);
        let retries = &self.options.retries;
        loop {
            if self.has_changed.load(Ordering::Relaxed) {
                return Err(self.changed());
            }
            let outcome = attempt(deadline);
            if !matches!(outcome, Err(Failure::Unreached { .. })) {
                self.was_reached.store(true, Ordering::Relaxed);
            }
            let (words, asked, errno) = match outcome {
                Ok(done) => return Ok(done),
                Err(Failure::Final(error)) => return Err(error),
                Err(Failure::Temporary { words, wait, has_progressed, errno }) => {
                    failed = if has_progressed { 1 } else { failed.saturating_add(1) };
                    (words, wait, errno)
                }
                Err(Failure::Unreached { words, errno }) => {
                    failed = failed.saturating_add(1);
                    (words, None, errno)
                }
            };
            all = all.saturating_add(1);
            let wait = retry::wait(retries, failed, asked);
            let left = deadline.saturating_duration_since(Instant::now());
            let was_reached = self.was_reached.load(Ordering::Relaxed);
            let most = if was_reached { retries.attempts } else { retries.attempts.min(FIRST_ATTEMPTS) };
            if failed >= most || wait >= left {
                let limit = if wait >= left {
                    format!("within {} s", limits.total.as_secs_f32())
                } else {
                    format!("after {all} attempts")
                };
                let errno = errno.or((wait >= left).then_some(Errno::TIMEDOUT)).unwrap_or(Errno::IO);
                let kind = io::Error::from(errno).kind();
                let error = io::Error::new(kind, format!("{words} ({limit})"));
                return Err(Error::io(action(), error).with_errno(errno));
            }
            self.counts.retries.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(wait);
        }
    }

    /// Sends a request and follows redirects. Credentials go only to the host of the URL. The
    /// challenge of a registry is answered once; that of a host behind a redirect never, because it
    /// would name the place that passwords are sent to.
    pub(crate) fn get(&self, headers: &Headers, deadline: Instant) -> Result<Answer, Failure> {
        let (answer, is_own) = self.get_redirected(headers, deadline)?;
        match &self.origin {
            Origin::Registry(origin) if is_own && answer.status == 401 && origin.renew(&answer)? => {
                self.counts.round();
                Ok(self.get_redirected(headers, deadline)?.0)
            }
            _ => Ok(answer),
        }
    }

    /// Returns the answer, and true if it comes from the host of the URL.
    fn get_redirected(&self, headers: &Headers, deadline: Instant) -> Result<(Answer, bool), Failure> {
        // Not in the condition: the lock would last as long as the request.
        let known = self.redirected().clone();
        if let Some(url) = known {
            // Within the host of the URL, its credentials are still needed.
            let (first, own) = self.origin.request()?;
            let is_signed = matches!(self.origin, Origin::S3(_));
            let own = own.iter().filter(|_| url.origin() == first.origin() && !is_signed);
            let all: Headers = own.chain(headers).cloned().collect();
            let answer = self.get_once(&url, &all, deadline);
            // An address that was signed expires; a host may be gone.
            let is_stale =
                answer.as_ref().map_or(true, |it| matches!(it.status, 401 | 403) || it.redirect().is_some());
            if !is_stale {
                return answer.map(|answer| (answer, url.origin() == first.origin()));
            }
            *self.redirected() = None;
        }
        let (mut url, mut own) = self.origin.request()?;
        let first = url.clone();
        for _ in 0..=REDIRECTS_MAX {
            let all: Headers = own.iter().chain(headers).cloned().collect();
            let answer = self.get_once(&url, &all, deadline)?;
            let Some(place) = answer.redirect() else {
                let is_kept = url != first && matches!(answer.status, 200 | 206);
                let is_own = url.origin() == first.origin();
                *self.redirected() = is_kept.then_some(url);
                return Ok((answer, is_own));
            };
            let next = self.next_place(&url, place)?;
            // A signature is for one address.
            if next.origin() != first.origin() || matches!(self.origin, Origin::S3(_)) {
                own.clear();
            }
            url = next;
        }
        let error = self.refused(format!("more than {REDIRECTS_MAX} redirects"));
        Err(error.hint("the server redirects in a circle").into())
    }

    fn next_place(&self, from: &Url, place: &str) -> Result<Url> {
        let wrong = |why: &str| self.refused(format!("the server redirects {why}"));
        let mut next = from.join(place).map_err(|_| wrong("to something that is no URL"))?;
        without_user(&mut next);
        match (from.scheme(), next.scheme()) {
            (HTTPS, HTTP) => Err(wrong("from https:// to http://")),
            (_, HTTP | HTTPS) => Ok(next),
            (_, other) => Err(wrong(&format!("to a URL of scheme {other:?}"))),
        }
    }

    fn get_once(&self, url: &Url, headers: &Headers, deadline: Instant) -> Result<Answer, Failure> {
        self.counts.request();
        let left = deadline.saturating_duration_since(Instant::now());
        self.transport
            .get(url, headers, left)
            .map_err(|none| none.failure(&format!("cannot read {}", self.shown)))
    }

    fn redirected(&self) -> MutexGuard<'_, Option<Url>> {
        self.redirected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the error for an object that is not the one that was opened. From then on, all
    /// requests fail.
    pub(crate) fn changed(&self) -> Error {
        self.has_changed.store(true, Ordering::Relaxed);
        let error = Error::failed(format!("cannot read {}: the image changed while it was open", self.shown));
        error.hint("open it again; nothing read before is affected")
    }

    /// Returns an error for an answer that cannot be used.
    pub(crate) fn refused(&self, why: impl std::fmt::Display) -> Error {
        Error::failed(format!("cannot read {}: {why}", self.shown))
    }

    /// Returns the failure for an answer without bytes of the object.
    pub(crate) fn failure(&self, answer: &Answer) -> Failure {
        let status = answer.status;
        if retry::is_temporary(status) {
            let words = format!("the server answers with status {status}");
            return Failure::answered(words, status, answer.retry_after());
        }
        let region = answer.header("x-amz-bucket-region");
        let error = match status {
            412 => self.changed(),
            404 | 410 => self
                .refused(format!("the server has no such object (status {status})"))
                .hint(self.origin.missing_hint()),
            401 | 403 => self
                .refused(format!("the server refuses access (status {status})"))
                .hint(self.origin.access_hint()),
            _ => self.refused(format!("the server answers with status {status}; 206 (a range) is needed")),
        };
        let error = match &self.origin {
            Origin::S3(object) => object.with_region(error, region),
            _ => error,
        };
        Failure::Final(of_status(error, status))
    }
}
