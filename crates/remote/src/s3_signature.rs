//! Signatures of requests to S3 in a header (AWS Signature Version 4): unlike signed addresses,
//! they are in no log.
//!
//! Source: the Amazon S3 API reference, "Authenticating Requests: Using the Authorization Header".

use crate::credentials::Keys;
use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use packfs_core::to_hex;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use url::{Position, Url};

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
/// Header with the digest of the body, and its value for one that is not signed.
const PAYLOAD: &str = "x-amz-content-sha256";
const UNSIGNED: &str = "UNSIGNED-PAYLOAD";
/// All but the characters that no parameter escapes.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Sets the parameters of an address, which are sorted by name, as signatures have them.
pub(crate) fn set_query(url: &mut Url, query: &[(&str, &str)]) {
    let escaped = |text| utf8_percent_encode(text, ESCAPED);
    let pairs: Vec<String> =
        query.iter().map(|(name, value)| format!("{}={}", escaped(name), escaped(value))).collect();
    url.set_query(Some(pairs.join("&")).filter(|query| !query.is_empty()).as_deref());
}

/// Returns the headers that sign a request: all but those given, which are signed as well.
pub(crate) fn signing_headers(
    now: &Timestamp,
    method: &str,
    url: &Url,
    headers: &[(&'static str, &str)],
    keys: &Keys,
    region: &str,
) -> Vec<(&'static str, String)> {
    let date = now.strftime("%Y%m%dT%H%M%SZ").to_string();
    let mut own = vec![(PAYLOAD, UNSIGNED.to_owned()), ("x-amz-date", date.clone())];
    own.extend(keys.token.clone().map(|token| ("x-amz-security-token", token)));
    let mut all: BTreeMap<&str, &str> = headers.iter().copied().collect();
    all.extend(own.iter().map(|(name, value)| (*name, value.as_str())));
    own.push(("authorization", authorization(&date, method, url, all, keys, region)));
    own
}

fn authorization<'a>(
    date: &str,
    method: &str,
    url: &'a Url,
    mut headers: BTreeMap<&'a str, &'a str>,
    keys: &Keys,
    region: &str,
) -> String {
    headers.insert("host", &url[Position::BeforeHost..Position::AfterPort]);
    let payload = headers.get(PAYLOAD).copied().unwrap_or(UNSIGNED);
    let names = headers.keys().copied().collect::<Vec<_>>().join(";");
    let lines: String = headers.iter().map(|(name, value)| format!("{name}:{}\n", value.trim())).collect();
    let (path, query) = (url.path(), url.query().unwrap_or(""));
    let request = format!("{method}\n{path}\n{query}\n{lines}\n{names}\n{payload}");
    let day = date.get(..8).unwrap_or(date);
    let scope = format!("{day}/{region}/s3/aws4_request");
    let text = format!("{ALGORITHM}\n{date}\n{scope}\n{}", to_hex(&Sha256::digest(request.as_bytes())));
    let first = format!("AWS4{}", keys.secret).into_bytes();
    let parts = [day, region, "s3", "aws4_request", &text];
    let signature = parts.iter().fold(first, |key, part| mac(&key, part.as_bytes()));
    let (key, signature) = (&keys.key, to_hex(&signature));
    format!("{ALGORITHM} Credential={key}/{scope},SignedHeaders={names},Signature={signature}")
}

fn mac(key: &[u8], text: &[u8]) -> Vec<u8> {
    // Keys of any length are taken.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return Vec::new() };
    mac.update(text);
    mac.finalize().into_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_those_of_the_examples_of_the_reference() {
        let keys = Keys {
            key: "AKIAIOSFODNN7EXAMPLE".into(),
            secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".into(),
            token: None,
            expires: None,
        };
        let date = "20130524T000000Z";
        let empty = to_hex(&Sha256::digest(b""));
        let all = |more: &[(&'static str, &'static str)]| -> BTreeMap<&str, String> {
            let mut all = BTreeMap::from([(PAYLOAD, empty.clone()), ("x-amz-date", date.to_owned())]);
            all.extend(more.iter().map(|(name, value)| (*name, (*value).to_owned())));
            all
        };
        let signed = |url: &Url, headers: BTreeMap<&str, String>| {
            let headers = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            authorization(date, "GET", url, headers, &keys, "us-east-1")
        };
        let mut url = Url::parse("https://examplebucket.s3.amazonaws.com/test.txt").unwrap();
        let text = signed(&url, all(&[("range", "bytes=0-9")]));
        let wanted = "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41";
        assert!(text.ends_with(&format!("host;range;x-amz-content-sha256;x-amz-date,Signature={wanted}")));
        url.set_path("/");
        set_query(&mut url, &[("max-keys", "2"), ("prefix", "J")]);
        let wanted = "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7";
        assert!(signed(&url, all(&[])).ends_with(wanted));
        set_query(&mut url, &[("prefix", "a b/c"), ("uploads", "")]);
        assert_eq!(url.query(), Some("prefix=a%20b%2Fc&uploads="));
    }
}
