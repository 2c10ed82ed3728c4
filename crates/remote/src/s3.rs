//! Objects in S3 and in stores with its interface.

use crate::credentials::{Chain, Keys};
use crate::environment::Environment;
use crate::transport::{Headers, Transport};
use packfs_core::{Error, Result};
use rusty_s3::{Bucket, Credentials, S3Action, UrlStyle};
use std::time::Duration;
use url::Url;

/// Time in which a signed address is valid. It is used at once, and clocks differ.
const VALID_FOR: Duration = Duration::from_secs(900);

/// Header by which the requester pays.
const PAYER: &str = "x-amz-request-payer";
/// Header that marks an object as that of one upload.
pub(crate) const MARK: &str = "x-amz-meta-packfs-upload";

/// A request about an object.
#[derive(Clone, Copy, Debug)]
pub(crate) enum S3Request<'a> {
    /// Its bytes.
    Get,
    /// Its headers.
    Head,
    /// A new upload, whose object gets this mark.
    Create { mark: &'a str },
    /// A part of an upload.
    Part { id: &'a str, number: u16 },
    /// The end of an upload.
    Complete { id: &'a str },
    /// The removal of an upload.
    Abort { id: &'a str },
}

/// Signs a request with its headers.
fn signed<'a>(mut action: impl S3Action<'a>, headers: &'a Headers) -> Url {
    for (name, value) in headers {
        action.headers_mut().insert(*name, value.as_str());
    }
    action.sign(VALID_FOR)
}

/// Object in a bucket.
pub(crate) struct S3Object {
    bucket: Bucket,
    key: String,
    /// Value of the header by which the requester pays, if the user wants to.
    payer: Option<String>,
    chain: Chain,
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
        let chain = Chain::new(environment, transport);
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

    /// Returns a signed address, or one without a signature if there are no credentials, and the
    /// headers that it was signed with.
    ///
    /// Errors: those of finding credentials.
    pub(crate) fn request(&self, request: &S3Request<'_>) -> Result<(Url, Headers)> {
        let credentials = self.chain.keys()?.map(|keys: Keys| match keys.token {
            Some(token) => Credentials::new_with_token(keys.key, keys.secret, token),
            None => Credentials::new(keys.key, keys.secret),
        });
        let (bucket, credentials, key) = (&self.bucket, credentials.as_ref(), self.key.as_str());
        let mut headers: Headers = self.payer.iter().map(|payer| (PAYER, payer.clone())).collect();
        let url = match *request {
            S3Request::Get => signed(bucket.get_object(credentials, key), &headers),
            S3Request::Head => signed(bucket.head_object(credentials, key), &headers),
            S3Request::Create { mark } => {
                headers.push((MARK, mark.to_owned()));
                signed(bucket.create_multipart_upload(credentials, key), &headers)
            }
            S3Request::Part { id, number } => {
                signed(bucket.upload_part(credentials, key, number, id), &headers)
            }
            S3Request::Complete { id } => signed(
                bucket.complete_multipart_upload(credentials, key, id, std::iter::empty::<&str>()),
                &headers,
            ),
            S3Request::Abort { id } => signed(bucket.abort_multipart_upload(credentials, key, id), &headers),
        };
        Ok((url, headers))
    }

    /// Returns the body that completes an upload of these parts.
    pub(crate) fn completion<'a>(&'a self, id: &'a str, parts: impl Iterator<Item = &'a str>) -> String {
        self.bucket.complete_multipart_upload(None, &self.key, id, parts).body()
    }

    pub(crate) fn identity(&self) -> String {
        self.bucket.object_url(&self.key).as_str().to_owned()
    }

    pub(crate) fn region(&self) -> &str {
        self.bucket.region()
    }

    pub(crate) fn access_hint(&self) -> String {
        match self.chain.keys() {
            Ok(Some(_)) => "the store refuses the credentials for this object".into(),
            _ => "no credentials were found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
                .into(),
        }
    }
}
