//! URLs as users write them: the object that they name, and what a request for it needs.

use crate::answer::Answer;
use crate::netrc;
use crate::options::RemoteOptions;
use crate::s3::S3Object;
use crate::transport::{Headers, Transport};
use ct_codecs::{Base64, Encoder};
use packfs_core::schemes::{HTTP, HTTPS, S3};
use packfs_core::{Error, Place, Result};
use percent_encoding::percent_decode_str;
use url::Url;

/// Object that a URL names.
pub(crate) enum Origin {
    Http { url: Url, authorization: Option<String> },
    S3(Box<S3Object>),
    Registry(Box<dyn Guarded>),
}

/// Object to which access is given by answers to challenges.
pub(crate) trait Guarded: Send + Sync {
    /// Returns the address of a request, and headers for its host alone.
    ///
    /// Errors: those of getting access.
    fn request(&self) -> Result<(Url, Headers)>;

    /// Returns the name of the object in the cache.
    fn identity(&self) -> String;

    /// Returns advice for an answer that refuses access.
    fn access_hint(&self) -> String;

    /// Answers the challenge of an answer; returns false if there is nothing to answer with.
    ///
    /// Errors: those of getting access.
    fn renew(&self, answer: &Answer) -> Result<bool>;
}

impl Origin {
    /// Returns the object at a place; `shown` is its URL without secrets.
    ///
    /// Errors: `Usage` for a URL that is none or is of no web server or bucket.
    pub(crate) fn parse(
        place: Place<'_>,
        shown: &str,
        options: &RemoteOptions,
        transport: &Transport,
    ) -> Result<Self> {
        if let Some(rest) = place.rest_of(S3) {
            return Ok(Origin::S3(Box::new(S3Object::parse(rest, shown, &options.environment, transport)?)));
        }
        match place.rest_of(HTTP).or(place.rest_of(HTTPS)) {
            Some(_) => Origin::http(place.text(), shown, options),
            None => Err(Error::usage(format!("cannot open {shown}: it is no URL of a web server or bucket"))),
        }
    }

    fn http(text: &str, shown: &str, options: &RemoteOptions) -> Result<Self> {
        let wrong = |why: &str| Error::usage(format!("cannot open {shown}: {why}"));
        let mut url = Url::parse(text).map_err(|error| wrong(&error.to_string()))?;
        let host = url.host_str().ok_or_else(|| wrong("the URL has no host"))?.to_owned();
        url.set_fragment(None);
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let own = (decoded(url.username()), url.password().map(decoded).unwrap_or_default());
        without_user(&mut url);
        let has_own = !own.0.is_empty() || !own.1.is_empty();
        let login = if has_own { Some(own) } else { netrc::login(&options.environment, &host) };
        let basic = |(name, password): (String, String)| {
            let encoded = Base64::encode_to_string(format!("{name}:{password}"));
            encoded.ok().map(|encoded| format!("Basic {encoded}"))
        };
        Ok(Origin::Http { url, authorization: login.and_then(basic) })
    }

    /// Returns the address of a request, signed if it has to be, and headers for this host alone.
    ///
    /// Errors: those of finding credentials.
    pub(crate) fn request(&self) -> Result<(Url, Headers)> {
        match self {
            Origin::Http { url, authorization } => {
                let authorization = authorization.iter().map(|it| ("authorization", it.clone()));
                Ok((url.clone(), authorization.collect()))
            }
            Origin::S3(object) => object.request(),
            Origin::Registry(origin) => origin.request(),
        }
    }

    /// Returns the name of the object in the cache: without credentials.
    pub(crate) fn identity(&self) -> String {
        match self {
            Origin::Http { url, .. } => url.as_str().to_owned(),
            Origin::S3(object) => object.identity(),
            Origin::Registry(origin) => origin.identity(),
        }
    }

    /// Returns advice for an object that does not exist.
    pub(crate) fn missing_hint(&self) -> &'static str {
        match self {
            Origin::Http { .. } => "upper and lower case letters of a URL differ, and a space in it is %20",
            Origin::S3(_) => "upper and lower case letters of buckets and keys differ; keys have no %20",
            Origin::Registry(_) => "the manifest names a blob that the registry has not",
        }
    }

    /// Returns advice for an answer that refuses access.
    pub(crate) fn access_hint(&self) -> String {
        match self {
            Origin::Http { authorization: Some(_), .. } => {
                "the server refuses the name and password given".into()
            }
            Origin::Http { .. } => "put a name and password for the host into ~/.netrc".into(),
            Origin::S3(object) => object.access_hint(),
            Origin::Registry(origin) => origin.access_hint(),
        }
    }
}

/// Removes the name and password of a URL, which only ever go into a header.
pub(crate) fn without_user(url: &mut Url) {
    // Both fail only for URLs that cannot have them.
    let _ = url.set_username("");
    let _ = url.set_password(None);
}
