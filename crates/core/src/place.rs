//! Places as users write them: paths, URLs, OCI images; and URLs without their secrets.

use std::borrow::Cow;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Returns the scheme of a path that is a URL, such as `https` of `https://host/image`.
///
/// A file with such a name has to be written differently, such as `./https:/host`.
pub fn url_scheme(path: &Path) -> Option<&str> {
    let (scheme, _) = path.to_str()?.split_once("://")?;
    let is_scheme = scheme.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    is_scheme.then_some(scheme)
}

/// Schemes of places. A store whose URLs need no rule of their own names its scheme itself.
pub mod schemes {
    /// Objects of web servers.
    pub const HTTP: &str = "http";
    /// Objects of web servers, through TLS.
    pub const HTTPS: &str = "https";
    /// Objects of S3, and of stores with its interface.
    pub const S3: &str = "s3";
    /// OCI images in registries.
    pub const OCI: &str = "oci";
    /// OCI images in folders.
    pub const OCI_LAYOUT: &str = "oci-layout";
    /// OCI images in archives.
    pub const OCI_ARCHIVE: &str = "oci-archive";
    /// Images in archives of `docker save`.
    pub const DOCKER_ARCHIVE: &str = "docker-archive";
}

/// Place that a path names, read once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    path: &'a Path,
    kind: PlaceKind<'a>,
}

/// Kind of place that a path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlaceKind<'a> {
    /// `-`: standard input or output, where there may be one; a file of this name elsewhere.
    Standard,
    /// A file or folder of this machine.
    Local,
    /// Another URL than those of images in registries.
    Url {
        /// Scheme as it is written.
        scheme: &'a str,
        /// Text behind `://`.
        rest: &'a str,
    },
    /// `HOST/NAME` of `oci://HOST/NAME`: an image in a registry.
    Registry(&'a str),
    /// `FOLDER[:TAG]` of `oci-layout:FOLDER[:TAG]`.
    Layout(&'a str),
    /// `FILE[:NAME]` of `oci-archive:` or `docker-archive:FILE[:NAME]`.
    Archive(&'a str),
}

impl<'a> PlaceKind<'a> {
    fn of(path: &'a Path) -> Self {
        let Some(text) = path.to_str() else { return PlaceKind::Local };
        let Some((scheme, rest)) = text.split_once(':') else {
            return if text == "-" { PlaceKind::Standard } else { PlaceKind::Local };
        };
        match (scheme, rest.strip_prefix("//").filter(|_| url_scheme(path).is_some())) {
            (schemes::OCI_LAYOUT, _) => PlaceKind::Layout(rest),
            (schemes::OCI_ARCHIVE | schemes::DOCKER_ARCHIVE, _) => PlaceKind::Archive(rest),
            (_, None) => PlaceKind::Local,
            (_, Some(rest)) if scheme.eq_ignore_ascii_case(schemes::OCI) => PlaceKind::Registry(rest),
            (_, Some(rest)) => PlaceKind::Url { scheme, rest },
        }
    }
}

impl<'a, P: AsRef<Path> + ?Sized> From<&'a P> for Place<'a> {
    fn from(path: &'a P) -> Self {
        Place::of(path.as_ref())
    }
}

impl<'a> Place<'a> {
    /// Reads a path.
    pub fn of(path: &'a Path) -> Self {
        Place { path, kind: PlaceKind::of(path) }
    }

    /// Returns the path as it was written.
    pub fn path(self) -> &'a Path {
        self.path
    }

    /// Returns the text of a URL.
    pub fn text(self) -> &'a str {
        self.path.to_str().unwrap_or_default()
    }

    /// Returns the kind.
    pub fn kind(self) -> PlaceKind<'a> {
        self.kind
    }

    /// Returns true for an OCI image with its scheme.
    pub fn is_oci(self) -> bool {
        matches!(self.kind, PlaceKind::Registry(_) | PlaceKind::Layout(_) | PlaceKind::Archive(_))
    }

    /// Returns true for a file or folder whose path has no scheme.
    pub fn is_local(self) -> bool {
        matches!(self.kind, PlaceKind::Standard | PlaceKind::Local)
    }

    /// Returns the text behind `://` of a URL of this scheme, in whatever case; `None` for another.
    pub fn rest_of(self, name: &str) -> Option<&'a str> {
        match self.kind {
            PlaceKind::Url { scheme, rest } if scheme.eq_ignore_ascii_case(name) => Some(rest),
            _ => None,
        }
    }

    /// True if a question mark begins a query, and `#` a fragment: keys of object stores may
    /// contain these letters.
    pub fn has_query(self) -> bool {
        !self.is_local() && self.rest_of(schemes::S3).is_none()
    }

    /// Returns the place for messages, as [`shown_place`].
    pub fn shown(self) -> String {
        shown_place(self.path)
    }
}

/// Returns true for a path that is not a plain file: a URL, or an OCI image with its scheme.
pub fn is_reference(path: &Path) -> bool {
    !Place::of(path).is_local()
}

/// Returns a path for messages and documents: a URL without user, password, fragment, and the
/// values of its query, which may be signatures. Any other path is unchanged.
pub fn without_secrets(path: &Path) -> Cow<'_, Path> {
    let Some(text) = url_scheme(path).and_then(|_| path.to_str()) else { return Cow::Borrowed(path) };
    let (scheme, rest) = text.split_once("://").unwrap_or_default();
    let (host, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    if !Place::of(path).has_query() {
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

/// Returns a URL without its secrets, or any other path in quotes, for messages.
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
    fn places_are_told_by_their_scheme() {
        let url = |scheme, rest| PlaceKind::Url { scheme, rest };
        for (path, kind) in [
            ("oci://host/a", PlaceKind::Registry("host/a")),
            ("OCI://host/a", PlaceKind::Registry("host/a")),
            ("oci-layout:dir:tag", PlaceKind::Layout("dir:tag")),
            ("docker-archive:a.tar", PlaceKind::Archive("a.tar")),
            ("oci-archive:a.tar", PlaceKind::Archive("a.tar")),
            ("S3://b/k?x", url("S3", "b/k?x")),
            ("HTTPS://host/a", url("HTTPS", "host/a")),
            ("ftp://host/a", url("ftp", "host/a")),
            ("oci-layouts://a", url("oci-layouts", "a")),
        ] {
            assert_eq!(Place::of(Path::new(path)).kind(), kind, "{path}");
            assert!(is_reference(Path::new(path)), "{path}");
        }
        for path in ["oci:a", "./oci-layout:dir", "oci-layout", "oci-layouts:a", "./oci://a", "s3:/b", "./-"]
        {
            assert_eq!(Place::of(Path::new(path)).kind(), PlaceKind::Local, "{path}");
        }
        assert_eq!(Place::of(Path::new("-")).kind(), PlaceKind::Standard);
        let has_query = |path| Place::of(Path::new(path)).has_query();
        assert!(has_query("HTTP://a") && has_query("oci://a") && !has_query("S3://a") && !has_query("a"));
        assert_eq!(Place::from("S3://b/k").rest_of(schemes::S3), Some("b/k"));
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
