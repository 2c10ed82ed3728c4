//! Conditions of a request, and the requested part of a file (RFC 9110, sections 13 and 14).

use hyper::header::{self, HeaderMap, HeaderName};
use std::ops::Range;
use std::time::SystemTime;

pub(crate) struct Version {
    /// Strong entity tag, with its quotes.
    pub etag: String,
    /// Whole seconds; `None` if it cannot be represented.
    pub modified: Option<SystemTime>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Whole,
    /// 206.
    Part(Range<u64>),
    /// 304.
    NotModified,
    /// 412.
    OtherVersion,
    /// 416.
    BeyondEnd,
}

impl Wanted {
    /// Evaluates the conditions in their order of precedence (RFC 9110, 13.2.2), then the range of
    /// a representation of `len` bytes.
    pub(crate) fn of(headers: &HeaderMap, version: &Version, len: u64) -> Wanted {
        let date = |name| text(headers, name).and_then(|text| httpdate::parse_http_date(text).ok());
        if let Some(tags) = joined(headers, header::IF_MATCH) {
            if !has_tag(&tags, &version.etag, false) {
                return Wanted::OtherVersion;
            }
        } else if let (Some(since), Some(modified)) = (date(header::IF_UNMODIFIED_SINCE), version.modified)
            && modified > since
        {
            return Wanted::OtherVersion;
        }
        if let Some(tags) = joined(headers, header::IF_NONE_MATCH) {
            if has_tag(&tags, &version.etag, true) {
                return Wanted::NotModified;
            }
        } else if let (Some(since), Some(modified)) = (date(header::IF_MODIFIED_SINCE), version.modified)
            && modified <= since
        {
            return Wanted::NotModified;
        }
        let is_same = text(headers, header::IF_RANGE).is_none_or(|tag| match version.modified {
            _ if tag == version.etag => true,
            Some(modified) => httpdate::parse_http_date(tag).is_ok_and(|date| date == modified),
            None => false,
        });
        match text(headers, header::RANGE).filter(|_| is_same).and_then(|range| parse(range, len)) {
            None => Wanted::Whole,
            Some(Some(range)) => Wanted::Part(range),
            Some(None) => Wanted::BeyondEnd,
        }
    }
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

/// A list may be in several fields.
fn joined(headers: &HeaderMap, name: HeaderName) -> Option<String> {
    let values: Vec<&str> = headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect();
    (!values.is_empty()).then(|| values.join(","))
}

/// Our tags have no commas, so splitting at commas is exact for them.
fn has_tag(list: &str, etag: &str, weakly: bool) -> bool {
    list.split(',').map(str::trim).any(|tag| {
        let tag = if weakly { tag.strip_prefix("W/").unwrap_or(tag) } else { tag };
        tag == etag || tag == "*"
    })
}

/// `None` without a single range, which may be ignored; `Some(None)` for an empty one.
fn parse(text: &str, len: u64) -> Option<Option<Range<u64>>> {
    let (unit, range) = text.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    let (first, last) = range.trim().split_once('-')?;
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        // Exceeds the length of any file.
        digits.then(|| text.parse::<u64>().unwrap_or(u64::MAX))
    };
    if first.is_empty() {
        let suffix_len = number(last)?;
        return Some((suffix_len > 0 && len > 0).then(|| len.saturating_sub(suffix_len)..len));
    }
    let first = number(first)?;
    let end = if last.is_empty() { len } else { number(last)?.saturating_add(1) };
    if end <= first && !last.is_empty() {
        return None;
    }
    Some((first < len).then(|| first..end.min(len)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const DATE: &str = "Thu, 26 Nov 2026 12:00:00 GMT";
    const EARLIER: &str = "Wed, 25 Nov 2026 12:00:00 GMT";
    const LATER: &str = "Fri, 27 Nov 2026 12:00:00 GMT";

    fn wanted(fields: &[(&'static str, &str)]) -> Wanted {
        let mut headers = HeaderMap::new();
        for &(name, value) in fields {
            headers.append(name, value.parse().unwrap());
        }
        let modified = httpdate::parse_http_date(DATE).unwrap();
        Wanted::of(&headers, &Version { etag: "\"v-1\"".into(), modified: Some(modified) }, 100)
    }

    #[test]
    fn ranges_are_cut_at_the_end() {
        for (range, expected) in [
            ("bytes=0-9", Wanted::Part(0..10)),
            ("bytes=90-", Wanted::Part(90..100)),
            ("bytes=90-1000", Wanted::Part(90..100)),
            ("bytes=-10", Wanted::Part(90..100)),
            ("bytes=-1000", Wanted::Part(0..100)),
            ("Bytes=5-5", Wanted::Part(5..6)),
            ("bytes=0-99999999999999999999999", Wanted::Part(0..100)),
            ("bytes=100-", Wanted::BeyondEnd),
            ("bytes=99999999999999999999999-", Wanted::BeyondEnd),
            ("bytes=-0", Wanted::BeyondEnd),
            ("bytes=9-0", Wanted::Whole),
            ("bytes=0-1,5-6", Wanted::Whole),
            ("bytes=a-b", Wanted::Whole),
            ("bytes=+1-2", Wanted::Whole),
            ("bytes=-", Wanted::Whole),
            ("lines=1-2", Wanted::Whole),
        ] {
            assert_eq!(wanted(&[("range", range)]), expected, "{range}");
        }
    }

    #[test]
    fn conditions_follow_their_order() {
        let range = ("range", "bytes=0-9");
        for (fields, expected) in [
            (vec![("if-none-match", "\"v-1\"")], Wanted::NotModified),
            (vec![("if-none-match", "\"x\", W/\"v-1\"")], Wanted::NotModified),
            (vec![("if-none-match", "*")], Wanted::NotModified),
            (vec![("if-none-match", "\"x\""), ("if-modified-since", LATER)], Wanted::Whole),
            (vec![("if-modified-since", DATE)], Wanted::NotModified),
            (vec![("if-modified-since", EARLIER)], Wanted::Whole),
            (vec![("if-match", "\"x\""), range], Wanted::OtherVersion),
            (vec![("if-match", "W/\"v-1\"")], Wanted::OtherVersion),
            (vec![("if-match", "\"x\""), ("if-match", "\"v-1\""), range], Wanted::Part(0..10)),
            (vec![("if-unmodified-since", EARLIER)], Wanted::OtherVersion),
            (vec![("if-unmodified-since", DATE), range], Wanted::Part(0..10)),
            (vec![("if-range", "\"v-1\""), range], Wanted::Part(0..10)),
            (vec![("if-range", "\"x\""), range], Wanted::Whole),
            (vec![("if-range", DATE), range], Wanted::Part(0..10)),
            (vec![("if-range", LATER), range], Wanted::Whole),
        ] {
            assert_eq!(wanted(&fields), expected, "{fields:?}");
        }
    }

    #[test]
    fn an_empty_file_has_no_ranges() {
        let mut headers = HeaderMap::new();
        headers.append("range", "bytes=0-".parse().unwrap());
        let version =
            Version { etag: "\"v\"".into(), modified: Some(SystemTime::UNIX_EPOCH + Duration::ZERO) };
        assert_eq!(Wanted::of(&headers, &version, 0), Wanted::BeyondEnd);
    }
}
