//! Access to a registry: challenges, and tokens for them.

use super::docker_config::Login;
use crate::answer::Answer;
use crate::failure::of_status;
use crate::transport::{Method, Transport};
use ct_codecs::{Base64, Encoder};
use packfs_core::schemes::{HTTP, HTTPS};
use packfs_core::{Error, Result};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use url::{Url, form_urlencoded};

/// Longest answer with a token.
const LEN_MAX: u64 = 1 << 20;
/// Life of a token whose answer does not tell it.
const TOKEN_LIFE: u64 = 60;
/// Limit on a request for a token.
const LIMIT: Duration = Duration::from_secs(30);

/// Demand of a registry (`WWW-Authenticate`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Challenge {
    /// Name and password with each request.
    Basic,
    /// A token of this place, for this service.
    Bearer { realm: String, service: Option<String> },
}

impl Challenge {
    /// Parses the challenge of an answer; `None` for one of another kind.
    pub(crate) fn of(answer: &Answer) -> Option<Self> {
        let headers = answer.headers.get_all("www-authenticate");
        headers.iter().filter_map(|value| value.to_str().ok()).find_map(Challenge::parse)
    }

    fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
        if scheme.eq_ignore_ascii_case("basic") {
            return Some(Challenge::Basic);
        }
        let mut values = parameters(rest);
        let realm = values.remove("realm").filter(|_| scheme.eq_ignore_ascii_case("bearer"))?;
        Some(Challenge::Bearer { realm, service: values.remove("service") })
    }
}

/// Parses `name="value",name=value`; quotes may contain commas.
fn parameters(text: &str) -> BTreeMap<String, String> {
    let mut values = BTreeMap::new();
    let mut rest = text.trim_start();
    while let Some((name, tail)) = rest.split_once('=') {
        let (value, tail) = match tail.strip_prefix('"') {
            Some(quoted) => match quoted.split_once('"') {
                Some((value, tail)) => (value, tail.trim_start().strip_prefix(',').unwrap_or_default()),
                None => break,
            },
            None => tail.split_once(',').unwrap_or((tail, "")),
        };
        values.insert(name.trim().to_ascii_lowercase(), value.trim().to_owned());
        rest = tail.trim_start();
    }
    values
}

/// Value of the header `Authorization`.
#[derive(Clone)]
pub(crate) struct Authorization {
    pub(crate) value: String,
    /// Time at which a token is renewed; `None` for a password.
    pub(crate) renewed_at: Option<Instant>,
}

/// Returns the header for a name and password.
///
/// Errors: `Failed` if they cannot be encoded, and for an identity token.
pub(crate) fn basic(login: &Login) -> Result<String> {
    let Login::Password { user, password } = login else {
        let error = Error::failed(
            "cannot log in: the registry demands a name and password (Basic), the login is an identity token",
        );
        return Err(error.hint("log in again with a name and a password or access token"));
    };
    let encoded = Base64::encode_to_string(format!("{user}:{password}"));
    encoded
        .map(|encoded| format!("Basic {encoded}"))
        .map_err(|_| Error::failed("cannot encode the name and password of the registry"))
}

/// Request for a token.
pub(crate) struct TokenRequest<'a> {
    pub(crate) transport: &'a Transport,
    pub(crate) realm: &'a str,
    pub(crate) service: Option<&'a str>,
    /// Rights, such as `repository:NAME:pull`.
    pub(crate) scope: &'a str,
    pub(crate) login: Option<&'a Login>,
    /// Set if the registry itself is asked without TLS.
    pub(crate) is_plain: bool,
    /// Registry in messages.
    pub(crate) shown: &'a str,
}

impl TokenRequest<'_> {
    /// Asks for the token.
    ///
    /// Errors: `Failed` if the place is unsafe or refuses; the words of its answer are not shown.
    pub(crate) fn send(&self) -> Result<Authorization> {
        let cannot = |why: &str| Error::failed(format!("cannot get a token for {}: {why}", self.shown));
        let mut url = Url::parse(self.realm).map_err(|_| cannot("its place (realm) is no URL"))?;
        let is_safe = url.scheme() == HTTPS || self.is_plain && url.scheme() == HTTP;
        if !is_safe {
            return Err(cannot("its place (realm) has no TLS, although the registry has"));
        }
        crate::origin::without_user(&mut url);
        let fields =
            self.service.map(|service| ("service", service)).into_iter().chain([("scope", self.scope)]);
        let answer = match self.login {
            Some(Login::IdentityToken(token)) => {
                let body = form_urlencoded::Serializer::new(String::new())
                    .extend_pairs(fields)
                    .extend_pairs([("client_id", "packfs"), ("grant_type", "refresh_token")])
                    .append_pair("refresh_token", token)
                    .finish();
                let headers = vec![("content-type", "application/x-www-form-urlencoded".to_owned())];
                self.transport.send(Method::Post, &url, &headers, body.as_bytes(), LIMIT)
            }
            login => {
                url.query_pairs_mut().extend_pairs(fields);
                let login = login.map(basic).transpose()?;
                let headers = login.into_iter().map(|value| ("authorization", value)).collect();
                self.transport.get(&url, &headers, LIMIT)
            }
        };
        let answer = answer.map_err(|none| cannot(&none.words))?;
        if answer.status != 200 {
            let error = of_status(cannot(&format!("status {}", answer.status)), answer.status);
            let is_refused = matches!(answer.status, 401 | 403);
            return Err(if is_refused { error.hint(login_hint(self.login.is_some())) } else { error });
        }
        let text = answer.small_body(LEN_MAX).map_err(|words| cannot(&words))?;
        let json: Value = serde_json::from_slice(&text).map_err(|_| cannot("the answer is no JSON"))?;
        let token = ["token", "access_token"].iter().find_map(|name| json.get(name)?.as_str());
        let is_header = |token: &&str| !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
        let token = token.filter(is_header).ok_or_else(|| cannot("the answer holds no token"))?;
        let life = json.get("expires_in").and_then(Value::as_u64).unwrap_or(TOKEN_LIFE).clamp(10, 86_400);
        // Clocks and transfers take some of it.
        let renewed_at = Instant::now().checked_add(Duration::from_secs(life).mul_f32(0.75));
        Ok(Authorization { value: format!("Bearer {token}"), renewed_at })
    }
}

/// Returns advice for a registry that refuses access.
pub(crate) fn login_hint(has_login: bool) -> &'static str {
    if has_login {
        "the registry refuses the login, or it lacks the right; docker login renews it"
    } else {
        "no login was found; docker login, podman login, or skopeo login stores one"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_parsed() {
        let bearer = |realm: &str, service: Option<&str>| {
            Some(Challenge::Bearer { realm: realm.into(), service: service.map(str::to_owned) })
        };
        let parse = Challenge::parse;
        assert_eq!(
            parse(r#"Bearer realm="https://a/t",service="s",scope="repository:a,b:pull,push""#),
            bearer("https://a/t", Some("s"))
        );
        assert_eq!(parse("bearer Realm=https://a/t , scope=x"), bearer("https://a/t", None));
        assert_eq!(parse(r#"Basic realm="x""#), Some(Challenge::Basic));
        for none in ["", "Bearer", "Bearer realm", "Bearer realm=\"x", "Digest realm=\"x\""] {
            assert_eq!(parse(none), None, "{none}");
        }
    }
}
