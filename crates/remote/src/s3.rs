//! Objects in S3 and in stores with its interface.

use crate::credentials::Chain;
use crate::environment::Environment;
use crate::s3_signature::{set_query, signing_headers};
use crate::transport::{Headers, Transport};
use jiff::Timestamp;
use packfs_core::{Error, Result};
use rusty_s3::{Bucket, Method, UrlStyle};
use std::sync::Arc;
use url::Url;

/// Header by which the requester pays.
const PAYER: &str = "x-amz-request-payer";

/// Object in a bucket.
#[derive(Clone)]
pub(crate) struct S3Object {
    bucket: Bucket,
    key: String,
    /// Value of the header by which the requester pays, if the user wants to.
    payer: Option<String>,
    chain: Arc<Chain>,
}

impl S3Object {
    /// Parses `BUCKET/KEY`, with the endpoint and region of the environment.
    ///
    /// Errors: `Usage`.
    pub(crate) fn parse(
        rest: &str,
        shown: &str,
        environment: &Environment,
        transport: &Transport,
    ) -> Result<Self> {
        let wrong = |why: String| Error::usage(format!("cannot open {shown}: {why}"));
        let form = || wrong("a bucket and a key are needed".into()).hint("form: s3://BUCKET/KEY");
        let (name, key) = rest.split_once('/').ok_or_else(form)?;
        if name.is_empty() || key.is_empty() || name.contains(['@', ':', '?', '#']) {
            return Err(form());
        }
        let chain = Arc::new(Chain::new(environment, transport));
        let region = chain.region().unwrap_or_else(|| "us-east-1".into());
        let custom = environment.first(&["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"]);
        let default = || format!("https://s3.{region}.amazonaws.com");
        let endpoint = custom.clone().unwrap_or_else(default);
        let endpoint = Url::parse(&endpoint)
            .map_err(|error| wrong(format!("the endpoint (AWS_ENDPOINT_URL) is no URL: {error}")))?;
        // TLS certificates are for one label before the domain; other stores rarely have them.
        let is_path = custom.is_some() || name.contains('.');
        let style = if is_path { UrlStyle::Path } else { UrlStyle::VirtualHost };
        let bucket = Bucket::new(endpoint, style, name.to_owned(), region)
            .map_err(|error| wrong(format!("wrong bucket or endpoint: {error}")))?;
        Ok(S3Object { bucket, key: key.into(), payer: environment.get("AWS_REQUEST_PAYER"), chain })
    }

    /// Returns an object of the same bucket.
    pub(crate) fn beside(&self, key: String) -> Self {
        S3Object { key, ..self.clone() }
    }

    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// True if the same store has both objects, and can copy one to the other.
    pub(crate) fn is_near(&self, other: &S3Object) -> bool {
        let store = |object: &S3Object| match object.bucket.base_url() {
            // The name of the bucket is that of the host.
            url if url.path() == "/" => {
                url.host_str().and_then(|host| host.split_once('.')).map(|it| it.1.to_owned())
            }
            url => url.host_str().map(str::to_owned),
        };
        let port = |object: &S3Object| object.bucket.base_url().port_or_known_default();
        store(self) == store(other) && port(self) == port(other)
    }

    /// Returns the path by which a copy names the object: bucket and key, escaped.
    pub(crate) fn copy_source(&self) -> String {
        let (url, base) = (self.bucket.object_url(&self.key), self.bucket.base_url().path());
        let key = url.path().strip_prefix(base).unwrap_or_default().trim_start_matches('/');
        format!("/{}/{key}", self.bucket.name())
    }

    /// Returns the request for reading, as [`S3Object::signed`].
    ///
    /// Errors: those of finding credentials.
    pub(crate) fn request(&self) -> Result<(Url, Headers)> {
        self.signed(Method::Get, &[], &[])
    }

    /// Returns the address and the headers of a request, which sign it if there are credentials.
    /// Parameters are sorted by name.
    ///
    /// Errors: those of finding credentials.
    pub(crate) fn signed(
        &self,
        method: Method,
        query: &[(&str, &str)],
        headers: &[(&'static str, &str)],
    ) -> Result<(Url, Headers)> {
        let payer = self.payer.iter().map(|payer| (PAYER, payer.as_str()));
        let headers: Vec<(&'static str, &str)> = headers.iter().copied().chain(payer).collect();
        let mut url = self.bucket.object_url(&self.key);
        set_query(&mut url, query);
        let mut all: Headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        if let Some(keys) = self.chain.keys()? {
            let (now, region) = (Timestamp::now(), self.bucket.region());
            all.extend(signing_headers(&now, method.to_str(), &url, &headers, &keys, region));
        }
        Ok((url, all))
    }

    pub(crate) fn identity(&self) -> String {
        self.bucket.object_url(&self.key).as_str().to_owned()
    }

    /// Adds advice to an error if the store answers with another region of the bucket.
    pub(crate) fn with_region(&self, error: Error, answered: Option<&str>) -> Error {
        match answered {
            Some(region) if region != self.bucket.region() => {
                let region = packfs_core::printable(region);
                error.hint(format!("the bucket is in region {region}: AWS_REGION={region} selects it"))
            }
            _ => error,
        }
    }

    pub(crate) fn access_hint(&self) -> String {
        match self.chain.keys() {
            Ok(Some(_)) => "the store refuses the credentials for this object".into(),
            _ => "no credentials were found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
                .into(),
        }
    }
}
