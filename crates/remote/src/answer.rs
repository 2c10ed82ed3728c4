//! One request and its answer, as far as its headers.

use crate::headers::{ContentRange, retry_after};
use std::time::Duration;
use ureq::Body;
use ureq::http::HeaderMap;

/// Answer of a server whose body is not read yet.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Body,
}

impl Answer {
    /// Returns the value of a header, if it is text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    pub(crate) fn content_range(&self) -> Option<ContentRange> {
        ContentRange::parse(self.header("content-range")?)
    }

    pub(crate) fn content_len(&self) -> Option<u64> {
        self.header("content-length")?.parse().ok()
    }

    pub(crate) fn retry_after(&self) -> Option<Duration> {
        retry_after(self.header("retry-after")?)
    }

    /// True if the body is not the bytes of the object.
    pub(crate) fn is_encoded(&self) -> bool {
        self.header("content-encoding").is_some_and(|coding| !coding.eq_ignore_ascii_case("identity"))
    }

    /// Returns the place that the answer redirects to.
    pub(crate) fn redirect(&self) -> Option<&str> {
        matches!(self.status, 301 | 302 | 303 | 307 | 308).then(|| self.header("location")).flatten()
    }
}
