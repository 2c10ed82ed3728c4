//! Headers of answers: values from a server, checked.

use std::ops::Range;
use std::time::Duration;

/// Value of `Content-Range`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ContentRange {
    /// Bytes of the body; `None` if there are none (status 416).
    pub(crate) range: Option<Range<u64>>,
    /// Length of the object, if the server tells it.
    pub(crate) len: Option<u64>,
}

impl ContentRange {
    /// Parses `bytes 0-9/100`, `bytes 0-9/*`, or `bytes */100` (RFC 9110, section 14.4).
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (unit, rest) = text.trim().split_once(' ')?;
        let (range, len) = rest.trim().split_once('/')?;
        let len = match len {
            "*" => None,
            len => Some(number(len)?),
        };
        let range = match range {
            "*" => None,
            range => {
                let (first, last) = range.split_once('-')?;
                let (first, end) = (number(first)?, number(last)?.checked_add(1)?);
                Some(first..end)
                    .filter(|range| first < end && len.is_none_or(|len| range.end <= len))
                    .map(Some)?
            }
        };
        unit.eq_ignore_ascii_case("bytes").then_some(ContentRange { range, len })
    }
}

/// Numbers of digits alone: `parse` would take a sign.
fn number(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

/// Returns the wait that `Retry-After` asks for in seconds. A date is left to the usual wait.
pub(crate) fn retry_after(text: &str) -> Option<Duration> {
    number(text.trim()).map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_parsed_strictly() {
        let found = |text| ContentRange::parse(text).map(|it| (it.range, it.len));
        assert_eq!(found("bytes 0-9/100"), Some((Some(0..10), Some(100))));
        assert_eq!(found("Bytes 5-5/*"), Some((Some(5..6), None)));
        assert_eq!(found("bytes */0"), Some((None, Some(0))));
        for wrong in [
            "",
            "bytes",
            "bytes 0-9",
            "bytes 9-0/100",
            "bytes 0-100/100",
            "bytes +1-2/9",
            "items 0-9/100",
            "bytes 0-18446744073709551615/*",
            "bytes -5/9",
            "bytes 0-99999999999999999999/*",
            "bytes 1-2-3/9",
        ] {
            assert_eq!(found(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn only_seconds_are_a_wait() {
        assert_eq!(retry_after(" 7 "), Some(Duration::from_secs(7)));
        assert_eq!(retry_after("Fri, 31 Dec 1999 23:59:59 GMT"), None);
        assert_eq!(retry_after("-1"), None);
    }
}
