//! One request and its answer, as far as its headers.

use crate::headers::{ContentRange, retry_after};
use std::io::Read;
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

    /// True if the body ends with the connection, wherever that breaks off.
    pub(crate) fn ends_unseen(&self) -> bool {
        let is_chunked = self.header("transfer-encoding").is_some_and(|coding| coding.contains("chunked"));
        self.content_len().is_none() && !is_chunked
    }

    pub(crate) fn retry_after(&self) -> Option<Duration> {
        retry_after(self.header("retry-after")?)
    }

    /// True if the body is not the bytes of the object.
    pub(crate) fn is_encoded(&self) -> bool {
        self.header("content-encoding").is_some_and(|coding| !coding.eq_ignore_ascii_case("identity"))
    }

    /// Reads a short body.
    ///
    /// Errors: the cause in words, also for a body of more than `len_max` bytes.
    pub(crate) fn small_body(self, len_max: u64) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        let mut reader = self.body.into_with_config().limit(len_max).reader();
        match reader.read_to_end(&mut bytes) {
            Ok(_) => Ok(bytes),
            // Errors of the client speak of sockets and limits, not of the URL.
            Err(error) => {
                Err(format!("the answer breaks off, or is longer than {len_max} bytes: {}", error.kind()))
            }
        }
    }

    /// Returns the place that the answer redirects to.
    pub(crate) fn redirect(&self) -> Option<&str> {
        matches!(self.status, 301 | 302 | 303 | 307 | 308).then(|| self.header("location")).flatten()
    }
}
