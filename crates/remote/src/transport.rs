//! Requests over connections that are kept open.

use crate::answer::Answer;
use crate::environment::Environment;
use crate::options::TimeLimits;
use packfs_core::{Error, Result, ResultExt};
use std::time::Duration;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig};
use ureq::{Agent, RequestBuilder};
use url::Url;

/// Connections kept open for the next requests.
const IDLE_CONNECTIONS: usize = 16;

/// Client of all requests of an image.
#[derive(Clone)]
pub(crate) struct Transport {
    agent: Agent,
}

/// Method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Head,
    Post,
    Put,
    Patch,
}

/// Headers of a request.
pub(crate) type Headers = Vec<(&'static str, String)>;

impl Transport {
    /// Creates a client.
    ///
    /// Errors: `Io` and `Usage` for the file of certificates that `SSL_CERT_FILE` names.
    pub(crate) fn new(limits: &TimeLimits, environment: &Environment) -> Result<Self> {
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            // Redirects are followed by `Object`, which knows to whom credentials may be sent.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(concat!("packfs/", env!("CARGO_PKG_VERSION")))
            // Ranges are those of the object, never of a compressed form of it.
            .accept_encoding("identity")
            .max_idle_connections(IDLE_CONNECTIONS)
            .max_idle_connections_per_host(IDLE_CONNECTIONS)
            .timeout_resolve(Some(limits.connect))
            .timeout_connect(Some(limits.connect))
            .timeout_send_request(Some(limits.read))
            .timeout_recv_response(Some(limits.read))
            .timeout_per_read(Some(limits.read));
        if let Some(roots) = own_roots(environment)? {
            config = config.tls_config(TlsConfig::builder().root_certs(roots).build());
        }
        Ok(Transport { agent: config.build().into() })
    }

    /// Sends a request without a body; it takes at most `limit`, with the reading of its answer.
    ///
    /// Errors: the cause in words, without the URL.
    pub(crate) fn get(
        &self,
        url: &Url,
        headers: &Headers,
        limit: Duration,
    ) -> std::result::Result<Answer, String> {
        self.send(Method::Get, url, headers, &[], limit)
    }

    /// Sends a request, with `body` if its method has one.
    ///
    /// Errors: as [`Transport::get`].
    pub(crate) fn send(
        &self,
        method: Method,
        url: &Url,
        headers: &Headers,
        body: &[u8],
        limit: Duration,
    ) -> std::result::Result<Answer, String> {
        let url = url.as_str();
        let sent = match method {
            Method::Get => with(self.agent.get(url), headers, limit).call(),
            Method::Head => with(self.agent.head(url), headers, limit).call(),
            Method::Post => with(self.agent.post(url), headers, limit).send(body),
            Method::Put => with(self.agent.put(url), headers, limit).send(body),
            Method::Patch => with(self.agent.patch(url), headers, limit).send(body),
        };
        sent.map(answer).map_err(|error| words(&error))
    }
}

/// Adds headers and a time limit to a request.
fn with<B>(request: RequestBuilder<B>, headers: &Headers, limit: Duration) -> RequestBuilder<B> {
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, value));
    request.config().timeout_global(Some(limit)).build()
}

fn answer(response: ureq::http::Response<ureq::Body>) -> Answer {
    let (parts, body) = response.into_parts();
    Answer { status: parts.status.as_u16(), headers: parts.headers, body }
}

/// Certificates of authorities that the user names instead of the built-in ones.
fn own_roots(environment: &Environment) -> Result<Option<RootCerts>> {
    let Some(path) = environment.get("SSL_CERT_FILE") else { return Ok(None) };
    let pem = std::fs::read(&path).or_io(|| format!("cannot read {path:?} (SSL_CERT_FILE)"))?;
    let items = ureq::tls::parse_pem(&pem);
    let certificates: Vec<Certificate<'static>> = items
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    if certificates.is_empty() {
        return Err(Error::usage(format!("{path:?} (SSL_CERT_FILE) holds no certificate")));
    }
    Ok(Some(RootCerts::new_with_certs(&certificates)))
}

/// Puts an error in words. Its own words may contain the URL, and so a secret.
fn words(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Io(error) => error.to_string(),
        ureq::Error::Timeout(limit) => format!("no answer in time ({limit:?})"),
        ureq::Error::HostNotFound => "the host is not known".into(),
        ureq::Error::ConnectionFailed => "no connection".into(),
        ureq::Error::Rustls(error) => format!("TLS: {error}"),
        ureq::Error::Tls(what) => format!("TLS: {what}"),
        ureq::Error::InvalidProxyUrl => "the URL of the proxy is wrong".into(),
        ureq::Error::BadUri(_) => "the URL is wrong".into(),
        _ => "the answer is no HTTP".into(),
    }
}
