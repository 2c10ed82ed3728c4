//! URLs among paths, and URLs without their secrets.

use std::borrow::Cow;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Returns the scheme of a path that is a URL, such as `https` of `https://host/image`.
///
/// A file with such a name is reached by another path, such as `./https:/host`.
pub fn url_scheme(path: &Path) -> Option<&str> {
    let (scheme, _) = path.to_str()?.split_once("://")?;
    let is_scheme = scheme.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    is_scheme.then_some(scheme)
}

/// Returns the scheme of a path that names an OCI image: `oci` of `oci://HOST/NAME`, `oci-layout`,
/// `oci-archive`, or `docker-archive` of `SCHEME:FILE`.
pub fn oci_scheme(path: &Path) -> Option<&'static str> {
    let text = path.to_str()?;
    let files = ["oci-layout", "oci-archive", "docker-archive"];
    let is_of = |scheme: &&str| text.strip_prefix(*scheme).is_some_and(|rest| rest.starts_with(':'));
    if text.starts_with("oci://") { Some("oci") } else { files.into_iter().find(is_of) }
}

/// True for a path that names an image by more than a file: a URL, or an OCI image with its scheme.
pub fn is_reference(path: &Path) -> bool {
    url_scheme(path).is_some() || oci_scheme(path).is_some()
}

/// Returns a path for messages and documents: of a URL without user, password, fragment, and the
/// values of its query, which may be signatures. Any other path is as it is.
pub fn without_secrets(path: &Path) -> Cow<'_, Path> {
    let Some(text) = url_scheme(path).and_then(|_| path.to_str()) else { return Cow::Borrowed(path) };
    let (scheme, rest) = text.split_once("://").unwrap_or_default();
    let (host, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    // Keys of object stores may contain these letters.
    if scheme.eq_ignore_ascii_case("s3") {
        return Cow::Owned(format!("{scheme}://{host}{tail}").into());
    }
    let tail = tail.split_once('#').map_or(tail, |(tail, _)| tail);
    let mut shown = format!("{scheme}://{host}");
    match tail.split_once('?') {
        None => shown.push_str(tail),
        Some((path, query)) => {
            let names = query.split('&').map(|pair| match pair.split_once('=') {
                Some((name, _)) => format!("{name}=..."),
                None => "...".to_owned(),
            });
            shown.push_str(&format!("{path}?{}", names.collect::<Vec<_>>().join("&")));
        }
    }
    Cow::Owned(shown.into())
}

/// Returns a path's URL without its secrets, or else the path in quotes, as messages have it.
pub fn shown_place(path: &Path) -> String {
    match url_scheme(path) {
        Some(_) => crate::escaped(without_secrets(path).as_os_str().as_bytes()).to_string(),
        None => format!("{path:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_no_urls() {
        for path in ["a", "/a://b", "./http://a", "://a", "1a://b", "a b://c", "http:/a", ""] {
            assert_eq!(url_scheme(Path::new(path)), None, "{path}");
            assert_eq!(without_secrets(Path::new(path)), Path::new(path));
        }
        assert_eq!(url_scheme(Path::new("HTTPS://a")), Some("HTTPS"));
        assert_eq!(url_scheme(Path::new("oci-layout://a")), Some("oci-layout"));
    }

    #[test]
    fn oci_images_are_told_by_their_scheme() {
        let scheme = |path: &str| oci_scheme(Path::new(path));
        assert_eq!(scheme("oci://host/a"), Some("oci"));
        assert_eq!(scheme("oci-layout:dir:tag"), Some("oci-layout"));
        assert_eq!(scheme("docker-archive:a.tar"), Some("docker-archive"));
        for path in ["oci:a", "./oci-layout:dir", "oci-layout", "https://host/a", "oci-layouts:a"] {
            assert_eq!(scheme(path), None, "{path}");
        }
        assert!(is_reference(Path::new("s3://b/k")) && !is_reference(Path::new("./oci://a")));
    }

    #[test]
    fn secrets_are_left_out() {
        for (url, shown) in [
            ("http://user:pass@host:80/a/b", "http://host:80/a/b"),
            ("http://u:p@ss@host", "http://host"),
            (
                "https://host/a?X-Amz-Signature=abc&v=1&flag#frag",
                "https://host/a?X-Amz-Signature=...&v=...&...",
            ),
            ("https://host?token=abc", "https://host?token=..."),
            ("https://host/a@b", "https://host/a@b"),
            ("https://user@host#u:p@x", "https://host"),
            ("s3://bucket/a?b#c@d", "s3://bucket/a?b#c@d"),
            ("s3://key:secret@bucket/a", "s3://bucket/a"),
        ] {
            assert_eq!(without_secrets(Path::new(url)), Path::new(shown));
            assert_eq!(shown_place(Path::new(url)), shown);
        }
        assert_eq!(shown_place(Path::new("a b")), "\"a b\"");
    }
}
