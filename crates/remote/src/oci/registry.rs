//! Requests to a registry (OCI distribution specification 1.1).

use super::auth::{Authorization, Challenge, TokenRequest, basic, login_hint};
use super::digest::Digest;
use super::docker_config::{self, Login};
use super::manifest::{ACCEPT, Descriptor, JSON_LEN_MAX};
use super::place::{Pin, RegistryPlace};
use crate::answer::Answer;
use crate::failure::{Failure, of_status};
use crate::image::RemoteImage;
use crate::object::{Counts, Object};
use crate::options::RemoteOptions;
use crate::origin::{Guarded, Origin};
use crate::store::Entry;
use crate::transport::{Headers, Method, Transport};
use crate::version::Validator;
use packfs_core::schemes::{HTTP, HTTPS, OCI};
use packfs_core::{Error, Image, Result, printable};
use rustix::io::Errno;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use url::Url;

/// Host that serves the images of `docker.io`.
const HUB_HOST: &str = "registry-1.docker.io";

/// A repository of a registry.
pub(crate) struct Registry {
    base: Url,
    place: RegistryPlace,
    /// Reference in messages.
    shown: String,
    /// Actions that tokens are for, such as `pull`.
    actions: &'static str,
    options: RemoteOptions,
    transport: Transport,
    counts: Arc<Counts>,
    access: Mutex<Access>,
}

/// Access so far.
#[derive(Default)]
struct Access {
    challenge: Option<Challenge>,
    /// Login of the user; the outer level is `None` until it was looked up.
    login: Option<Option<Login>>,
    authorization: Option<Authorization>,
}

/// Address in a repository, for requests of an object.
struct RegistryOrigin {
    registry: Arc<Registry>,
    url: Url,
}

impl Guarded for RegistryOrigin {
    fn request(&self) -> Result<(Url, Headers)> {
        Ok((self.url.clone(), self.registry.authorization()?))
    }

    fn identity(&self) -> String {
        self.url.as_str().to_owned()
    }

    fn access_hint(&self) -> String {
        self.registry.access_hint().into()
    }

    fn renew(&self, answer: &Answer) -> Result<bool> {
        self.registry.authenticate(answer)
    }
}

impl Registry {
    /// Prepares requests to a repository; none is sent.
    ///
    /// Errors: `Usage`.
    pub(crate) fn new(place: &RegistryPlace, options: &RemoteOptions, actions: &'static str) -> Result<Self> {
        let RegistryPlace { registry, repository, pin, .. } = place;
        let separator = if matches!(pin, Pin::Tag(_)) { ':' } else { '@' };
        let shown = format!("{OCI}://{registry}/{repository}{separator}{pin}");
        let host = if registry == "docker.io" { HUB_HOST } else { registry };
        let wrong = |_| Error::usage(format!("cannot open {shown}: the registry is no HOST[:PORT]"));
        let mut base = Url::parse(&format!("https://{host}/v2/")).map_err(wrong)?;
        if options.oci.plain_http || is_loopback(&base) {
            base = Url::parse(&format!("http://{host}/v2/")).map_err(wrong)?;
        }
        Ok(Registry {
            base,
            place: place.clone(),
            shown,
            actions,
            transport: Transport::new(&options.limits, &options.environment)?,
            options: options.clone(),
            counts: Arc::default(),
            access: Mutex::default(),
        })
    }

    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    fn access(&self) -> MutexGuard<'_, Access> {
        self.access.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the address of a path in the repository, such as `manifests/latest`.
    ///
    /// Errors: `Usage`; names were checked before.
    pub(crate) fn url(&self, path: &str) -> Result<Url> {
        let joined = self.base.join(&format!("{}/{path}", self.place.repository));
        joined.map_err(|_| Error::usage(format!("cannot open {}: the name makes no URL", self.shown)))
    }

    /// Returns an address that the registry gives for the next request; `None` if it is none.
    pub(crate) fn next_url(&self, from: &Url, answer: &Answer) -> Option<Url> {
        let mut next = from.join(answer.header("location")?).ok()?;
        crate::origin::without_user(&mut next);
        let is_safe = next.scheme() == HTTPS || next.scheme() == self.base.scheme();
        is_safe.then_some(next)
    }

    /// Returns the object at an address, which shares connections, access, and counts.
    pub(crate) fn object(self: &Arc<Self>, url: Url) -> Object {
        let origin = RegistryOrigin { registry: Arc::clone(self), url };
        let (transport, counts) = (self.transport.clone(), Arc::clone(&self.counts));
        Object::of(
            Origin::Registry(Box::new(origin)),
            self.shown.clone(),
            self.options.clone(),
            transport,
            counts,
        )
    }

    /// Returns a manifest or index. One that is named by its digest is compared with it, and taken
    /// from the disk cache if that has it. Offline, a tag leads to the manifest that it led to
    /// last.
    ///
    /// Errors: `Failed` if there is none or access is refused; `Corrupt`, `Io`, `Limit`.
    pub(crate) fn manifest(self: &Arc<Self>, pin: &Pin) -> Result<Vec<u8>> {
        let object = self.object(self.url(&format!("manifests/{pin}"))?);
        let options = &self.options;
        if options.is_offline || matches!(pin, Pin::Digest(_)) {
            let cached = self.cached_manifest(&object.origin.identity(), pin);
            if cached.is_some() || options.is_offline {
                return cached.ok_or_else(|| self.not_cached(&format!("the manifest {pin}")));
            }
        }
        let bytes = self.fetched_manifest(&object, pin)?;
        if let Some(dir) = options.cache() {
            let (identity, tag) = (object.origin.identity(), validator(&bytes));
            Entry::put(dir, &identity, &self.shown, tag, &bytes, options.cache_len);
        }
        Ok(bytes)
    }

    /// Returns a page of the list of tags, those behind `last`, and true if there are more.
    ///
    /// Errors: `Failed` if access is refused; `Io`, `Limit`.
    pub(super) fn tags(self: &Arc<Self>, last: &str) -> Result<(Vec<u8>, bool)> {
        if self.options.is_offline {
            return Err(self.not_cached("the list of tags"));
        }
        let mut url = self.url("tags/list")?;
        url.query_pairs_mut().append_pair("n", "1000");
        if !last.is_empty() {
            url.query_pairs_mut().append_pair("last", last);
        }
        let object = self.object(url);
        let action = || format!("cannot list the tags of {}", self.shown);
        object.persist(action, |deadline| {
            let answer = object.get(&Headers::new(), deadline)?;
            match answer.status {
                200 => {}
                404 => {
                    let error = Error::failed(format!("{}: the registry has no such name", action()));
                    return Err(error.with_errno(Errno::NOENT).into());
                }
                _ => return Err(object.failure(&answer)),
            }
            let has_more = answer.header("link").is_some();
            Ok((answer.small_body(JSON_LEN_MAX).map_err(Failure::temporary)?, has_more))
        })
    }

    fn cached_manifest(&self, identity: &str, pin: &Pin) -> Option<Vec<u8>> {
        let limit = self.options.cache_len;
        let dir = self.options.cache()?;
        let (version, entry) = Entry::newest(dir, identity, limit)?;
        let bytes = entry.all(JSON_LEN_MAX)?;
        // A digest vouches for more than the checksums of blocks.
        let is_whole = version.validator == Validator::ETag(validator(&bytes));
        let is_named = match pin {
            Pin::Digest(digest) => digest.found_in(&bytes) == *digest,
            Pin::Tag(_) => true,
        };
        Some(bytes).filter(|_| is_whole && is_named)
    }

    /// Returns the error for a part that offline reading lacks.
    fn not_cached(&self, what: &str) -> Error {
        let words = format!("cannot read {}: {what} is not in the cache, and --offline is given", self.shown);
        Error::failed(words).hint("packfs cache ls lists what is there")
    }

    fn fetched_manifest(&self, object: &Object, pin: &Pin) -> Result<Vec<u8>> {
        self.counts.round();
        let headers: Headers = vec![("accept", ACCEPT.to_owned())];
        let action = || format!("cannot read the manifest of {}", self.shown);
        let bytes = object.persist(action, |deadline| {
            let answer = object.get(&headers, deadline)?;
            match answer.status {
                200 => {}
                404 => {
                    let error =
                        Error::failed(format!("cannot open {}: the registry has no such image", self.shown));
                    let error = error.with_errno(Errno::NOENT);
                    return Err(error.hint("names and tags of images are case-sensitive").into());
                }
                _ => return Err(object.failure(&answer)),
            }
            if answer.content_len().is_some_and(|len| len > JSON_LEN_MAX) {
                let fault = format!("more than the {JSON_LEN_MAX} bytes that are allowed");
                return Err(Error::limit(format!("manifest of {}", self.shown), fault).into());
            }
            answer.small_body(JSON_LEN_MAX).map_err(Failure::temporary)
        })?;
        self.counts.received(bytes.len());
        if let Pin::Digest(digest) = pin {
            let found = digest.found_in(&bytes);
            if found != *digest {
                let fault = format!("its digest is {found}, {digest} is expected");
                return Err(Error::corrupt(format!("manifest of {}", self.shown), fault));
            }
        }
        Ok(bytes)
    }

    /// Opens a blob by ranges. Its length is compared with the descriptor.
    ///
    /// Errors: as [`RemoteImage::open`]; `Corrupt` for another length.
    pub(crate) fn blob(self: &Arc<Self>, descriptor: &Descriptor) -> Result<Arc<dyn Image>> {
        let url = self.url(&format!("blobs/{}", descriptor.digest))?;
        let image = RemoteImage::of(self.object(url));
        let what = || format!("blob {}", descriptor.digest);
        let image = image.map_err(|error| if self.options.is_offline { error.at(what()) } else { error })?;
        if image.len() != descriptor.size {
            let fault = format!("it has {} bytes, {} are expected", image.len(), descriptor.size);
            return Err(Error::corrupt(format!("blob {} of {}", descriptor.digest, self.shown), fault));
        }
        Ok(Arc::new(image))
    }

    /// True if the repository has a blob.
    ///
    /// Errors: `Failed` if access is refused, `Io`.
    pub(crate) fn has_blob(self: &Arc<Self>, digest: &Digest) -> Result<bool> {
        let url = self.url(&format!("blobs/{digest}"))?;
        let object = self.object(url.clone());
        object.persist(
            || format!("cannot look for a blob of {}", self.shown),
            |deadline| {
                let answer = self.send(Method::Head, &url, &Headers::new(), &[], deadline)?;
                match answer.status {
                    // Registries may redirect to the store that has it.
                    200 | 307 | 302 => Ok(true),
                    404 => Ok(false),
                    _ => Err(self.refusal("look for a blob", answer)),
                }
            },
        )
    }

    /// Sends a request; answers a challenge of the registry once. Credentials go to it alone, and
    /// another host does not name the place of tokens.
    pub(crate) fn send(
        &self,
        method: Method,
        url: &Url,
        headers: &Headers,
        body: &[u8],
        deadline: Instant,
    ) -> std::result::Result<Answer, Failure> {
        let is_ours = url.origin() == self.base.origin();
        let attempt = || -> std::result::Result<Answer, Failure> {
            let mut all = if is_ours { self.authorization()? } else { Headers::new() };
            all.extend(headers.iter().cloned());
            self.counts.request();
            let left = deadline.saturating_duration_since(Instant::now());
            self.transport
                .send(method, url, &all, body, left)
                .map_err(|none| none.failure(&format!("cannot reach {}", self.shown)))
        };
        let answer = attempt()?;
        if is_ours && answer.status == 401 && self.authenticate(&answer)? { attempt() } else { Ok(answer) }
    }

    /// Returns the failure for an answer to a request that changes something.
    pub(crate) fn refusal(&self, action: &str, answer: Answer) -> Failure {
        let status = answer.status;
        let wait = answer.retry_after();
        if crate::retry::is_temporary(status) {
            let words = format!("the registry answers with status {status}");
            return Failure::answered(words, status, wait);
        }
        let said = answer.small_body(64 << 10).ok().and_then(|text| said(&text)).unwrap_or_default();
        let error = Error::failed(format!(
            "cannot {action} of {}: the registry answers with status {status}{said}",
            self.shown
        ));
        let error = of_status(error, status);
        Failure::Final(if matches!(status, 401 | 403) { error.hint(self.access_hint()) } else { error })
    }

    fn access_hint(&self) -> &'static str {
        login_hint(matches!(self.access().login, Some(Some(_))))
    }

    /// Returns the header of the access so far; a token is renewed before it expires.
    ///
    /// Errors: those of getting a token.
    fn authorization(&self) -> Result<Headers> {
        let mut access = self.access();
        let expires = access.authorization.as_ref().and_then(|it| it.renewed_at);
        if expires.is_some_and(|end| end <= Instant::now()) {
            self.look_up(&mut access)?;
        }
        Ok(access.authorization.iter().map(|it| ("authorization", it.value.clone())).collect())
    }

    /// Answers the challenge of an answer; returns false if it has none that can be answered.
    ///
    /// Errors: as [`Registry::authorization`].
    fn authenticate(&self, answer: &Answer) -> Result<bool> {
        let Some(challenge) = Challenge::of(answer) else { return Ok(false) };
        let mut access = self.access();
        access.challenge = Some(challenge);
        self.look_up(&mut access)
    }

    fn look_up(&self, access: &mut Access) -> Result<bool> {
        let Some(challenge) = access.challenge.clone() else { return Ok(false) };
        if access.login.is_none() {
            access.login = Some(docker_config::login(&self.options.environment, &self.place.registry)?);
        }
        let login = access.login.as_ref().and_then(Option::as_ref);
        let found = match (&challenge, login) {
            (Challenge::Basic, None) => None,
            (Challenge::Basic, Some(login)) => Some(Authorization { value: basic(login)?, renewed_at: None }),
            (Challenge::Bearer { realm, service }, login) => {
                let scope = format!("repository:{}:{}", self.place.repository, self.actions);
                let request = TokenRequest {
                    transport: &self.transport,
                    realm,
                    service: service.as_deref(),
                    scope: &scope,
                    login,
                    is_plain: self.base.scheme() == HTTP,
                    shown: &self.shown,
                };
                self.counts.request();
                self.counts.round();
                Some(request.send()?)
            }
        };
        // The same password again cannot help.
        let is_new = match (&access.authorization, &found) {
            (Some(old), Some(new)) => old.value != new.value,
            (_, found) => found.is_some(),
        };
        access.authorization = found;
        Ok(is_new)
    }
}

/// Returns the version of a manifest in the disk cache.
fn validator(bytes: &[u8]) -> String {
    format!("\"{}\"", Digest::of(bytes))
}

/// True for addresses of this machine, whose registries rarely have TLS.
fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// Returns the first error of an answer in the form of the specification, for messages.
fn said(text: &[u8]) -> Option<String> {
    let json: serde_json::Value = serde_json::from_slice(text).ok()?;
    let error = json.get("errors")?.get(0)?;
    let word = |name: &str| error.get(name).and_then(serde_json::Value::as_str).unwrap_or_default();
    let said: String = format!("{} {}", word("code"), word("message")).chars().take(200).collect();
    Some(format!(": {}", printable(said.trim())))
}
