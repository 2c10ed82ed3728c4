//! Requests over connections that are kept open.

use crate::answer::Answer;
use crate::environment::Environment;
use crate::no_answer::NoAnswer;
use crate::options::TimeLimits;
use crate::proxies::Proxies;
use packfs_core::{Error, Result, ResultExt};
use std::io::Read;
use std::time::Duration;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig};
use ureq::typestate::WithBody;
use ureq::{Agent, Proxy, RequestBuilder, SendBody};
use url::Url;

/// Connections kept open for the next requests.
const IDLE_CONNECTIONS: usize = 16;

/// Client of all requests of an image.
#[derive(Clone)]
pub(crate) struct Transport {
    agent: Agent,
    proxies: Proxies,
}

/// Method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Head,
    Post,
    Put,
    Patch,
    Delete,
}

impl From<rusty_s3::Method> for Method {
    fn from(method: rusty_s3::Method) -> Self {
        match method {
            rusty_s3::Method::Head => Method::Head,
            rusty_s3::Method::Get => Method::Get,
            rusty_s3::Method::Post => Method::Post,
            rusty_s3::Method::Put => Method::Put,
            rusty_s3::Method::Delete => Method::Delete,
        }
    }
}

/// Headers of a request.
pub(crate) type Headers = Vec<(&'static str, String)>;

impl Transport {
    /// Creates a client.
    ///
    /// Errors: `Io` and `Usage` for the file of certificates that `SSL_CERT_FILE` names; `Usage`
    /// for a proxy that is none.
    pub(crate) fn new(limits: &TimeLimits, environment: &Environment) -> Result<Self> {
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            // Redirects are followed by `Object`, which knows to whom credentials may be sent.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(concat!("packfs/", env!("CARGO_PKG_VERSION")))
            // Ranges are those of the object, never of a compressed form of it.
            .accept_encoding("identity")
            // Each request has its own: the client would take one for all schemes.
            .proxy(None)
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
        Ok(Transport { agent: config.build().into(), proxies: Proxies::new(environment)? })
    }

    /// Sends a request without a body; it takes at most `limit`, with the reading of its answer.
    ///
    /// Errors: the cause in words, without the URL.
    pub(crate) fn get(
        &self,
        url: &Url,
        headers: &Headers,
        limit: Duration,
    ) -> std::result::Result<Answer, NoAnswer> {
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
    ) -> std::result::Result<Answer, NoAnswer> {
        self.send_from(method, url, headers, &mut &*body, body.len() as u64, limit)
    }

    /// Sends a request as [`Transport::send`], with `len` bytes of a reader as its body.
    ///
    /// Errors: as [`Transport::get`], and those of the reader.
    pub(crate) fn send_from(
        &self,
        method: Method,
        url: &Url,
        headers: &Headers,
        body: &mut dyn Read,
        len: u64,
        limit: Duration,
    ) -> std::result::Result<Answer, NoAnswer> {
        let proxy = self.proxies.of(url);
        let with = Conditions { headers, limit, proxy };
        let url = url.as_str();
        // Without its length, a body would be sent in chunks, which stores refuse.
        let mut body = |request: RequestBuilder<WithBody>| {
            with.of(request).header("content-length", len).send(SendBody::from_reader(body))
        };
        let sent = match method {
            Method::Get => with.of(self.agent.get(url)).call(),
            Method::Head => with.of(self.agent.head(url)).call(),
            Method::Post => body(self.agent.post(url)),
            Method::Put => body(self.agent.put(url)),
            Method::Patch => body(self.agent.patch(url)),
            Method::Delete => with.of(self.agent.delete(url)).call(),
        };
        sent.map(answer).map_err(|error| {
            let NoAnswer { mut words, cause, errno } = NoAnswer::of(&error);
            if let Some(proxy) = proxy {
                words.push_str(&format!(", through the proxy {}:{}", proxy.host(), proxy.port()));
            }
            NoAnswer { words, cause, errno }
        })
    }
}

/// Headers of a request, its time limit, and its proxy.
struct Conditions<'a> {
    headers: &'a Headers,
    limit: Duration,
    proxy: Option<&'a Proxy>,
}

impl Conditions<'_> {
    fn of<B>(&self, request: RequestBuilder<B>) -> RequestBuilder<B> {
        let add =
            |request: RequestBuilder<B>, (name, value): &(&'static str, String)| request.header(*name, value);
        let request = self.headers.iter().fold(request, add);
        request.config().timeout_global(Some(self.limit)).proxy(self.proxy.cloned()).build()
    }
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
