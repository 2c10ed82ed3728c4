//! Credentials for S3, from the places of the standard environment, in its order.

use crate::answer::Answer;
use crate::environment::Environment;
use crate::no_answer::NoAnswer;
use crate::transport::{Headers, Method, Transport};
use jiff::{SignedDuration, Timestamp};
use packfs_core::schemes::HTTPS;
use packfs_core::{Error, Result, ResultExt};
use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use url::Url;

/// Limit on a request for credentials.
const LIMIT: Duration = Duration::from_secs(10);
/// Limit on a request to the metadata service, which only virtual machines have.
const METADATA_LIMIT: Duration = Duration::from_secs(1);
/// Longest file or answer with credentials.
const LEN_MAX: u64 = 1 << 20;
/// Credentials are renewed so long before they expire.
const RENEWED_BEFORE: SignedDuration = SignedDuration::from_mins(5);
/// Credentials without an expiry are looked up once.
const METADATA_ENDPOINT: &str = "http://169.254.169.254";
/// Address of the credentials of a container with a relative URI.
const CONTAINER_ENDPOINT: &str = "http://169.254.170.2";

/// An access key.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Keys {
    pub(crate) key: String,
    pub(crate) secret: String,
    pub(crate) token: Option<String>,
    pub(crate) expires: Option<Timestamp>,
}

/// Secrets are not shown.
impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys(...)")
    }
}

/// Places of credentials, and those found last.
pub(crate) struct Chain {
    environment: Environment,
    transport: Transport,
    found: Mutex<Option<Option<Keys>>>,
}

impl Chain {
    pub(crate) fn new(environment: &Environment, transport: &Transport) -> Self {
        Chain { environment: environment.clone(), transport: transport.clone(), found: Mutex::default() }
    }

    /// Returns the credentials, looked up again before they expire; `None` for access without a
    /// signature.
    ///
    /// Errors: `Failed` if a place that the environment names has none.
    pub(crate) fn keys(&self) -> Result<Option<Keys>> {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(keys) = &*found {
            let renews = |keys: &Keys| {
                keys.expires.is_some_and(|end| end.duration_since(Timestamp::now()) < RENEWED_BEFORE)
            };
            if !keys.as_ref().is_some_and(renews) {
                return Ok(keys.clone());
            }
        }
        let keys = self.look_up()?;
        *found = Some(keys.clone());
        Ok(keys)
    }

    fn look_up(&self) -> Result<Option<Keys>> {
        let environment = &self.environment;
        if environment.is_true("AWS_SKIP_SIGNATURE") || environment.is_true("AWS_NO_SIGN_REQUEST") {
            return Ok(None);
        }
        if let (Some(key), Some(secret)) =
            (environment.get("AWS_ACCESS_KEY_ID"), environment.get("AWS_SECRET_ACCESS_KEY"))
        {
            return Ok(Some(Keys {
                key,
                secret,
                token: environment.get("AWS_SESSION_TOKEN"),
                expires: None,
            }));
        }
        if let Some(keys) = self.of_profile()? {
            return Ok(Some(keys));
        }
        if let (Some(file), Some(role)) =
            (environment.get("AWS_WEB_IDENTITY_TOKEN_FILE"), environment.get("AWS_ROLE_ARN"))
        {
            return self.by_web_identity(&file, &role).map(Some);
        }
        if environment
            .first(&["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI"])
            .is_some()
        {
            return self.of_container().map(Some);
        }
        // Most machines have no metadata service; objects may be public.
        Ok(if environment.is_true("AWS_EC2_METADATA_DISABLED") { None } else { self.of_machine() })
    }

    /// Returns the region of the environment or the profile.
    pub(crate) fn region(&self) -> Option<String> {
        let named = self.environment.first(&["AWS_REGION", "AWS_DEFAULT_REGION"]);
        named.or_else(|| self.profile_values().remove("region"))
    }

    /// Values of the profile in both files; those of `credentials` win.
    fn profile_values(&self) -> BTreeMap<String, String> {
        let environment = &self.environment;
        let profile = self.profile_name().unwrap_or_else(|| "default".into());
        let file = |variable: &str, name: &str| {
            environment
                .get(variable)
                .map(PathBuf::from)
                .or_else(|| Some(environment.home()?.join(".aws").join(name)))
        };
        let mut values = BTreeMap::new();
        for (path, is_config) in [
            (file("AWS_CONFIG_FILE", "config"), true),
            (file("AWS_SHARED_CREDENTIALS_FILE", "credentials"), false),
        ] {
            let text = path.and_then(|path| read_file(&path).ok()).unwrap_or_default();
            let section = if is_config && profile != "default" {
                format!("profile {profile}")
            } else {
                profile.clone()
            };
            values.extend(section_of(&text, &section));
        }
        values
    }

    fn profile_name(&self) -> Option<String> {
        self.environment.first(&["AWS_PROFILE", "AWS_DEFAULT_PROFILE"])
    }

    fn of_profile(&self) -> Result<Option<Keys>> {
        let mut values = self.profile_values();
        if let (Some(key), Some(secret)) =
            (values.remove("aws_access_key_id"), values.remove("aws_secret_access_key"))
        {
            return Ok(Some(Keys { key, secret, token: values.remove("aws_session_token"), expires: None }));
        }
        if let (Some(file), Some(role)) = (values.get("web_identity_token_file"), values.get("role_arn")) {
            return self.by_web_identity(file, role).map(Some);
        }
        match self.profile_name() {
            Some(name) => {
                let error = Error::failed(format!(
                    "cannot find credentials: profile {name:?} (AWS_PROFILE) has no keys"
                ));
                Err(error.hint(
                    "profiles with aws_access_key_id and with web_identity_token_file are read; \
                    aws configure export-credentials --format env gives those of others",
                ))
            }
            None => Ok(None),
        }
    }

    /// Exchanges a token for credentials, at the security token service.
    fn by_web_identity(&self, file: &str, role: &str) -> Result<Keys> {
        let token = read_file(file.as_ref())
            .or_io(|| format!("cannot read {file:?} (AWS_WEB_IDENTITY_TOKEN_FILE)"))?;
        let session = self.environment.get("AWS_ROLE_SESSION_NAME").unwrap_or_else(|| "packfs".into());
        let endpoint = self.environment.first(&["AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT_URL"]).unwrap_or_else(
            || match self.region() {
                Some(region) => format!("https://sts.{region}.amazonaws.com"),
                None => "https://sts.amazonaws.com".into(),
            },
        );
        let body = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("Action", "AssumeRoleWithWebIdentity")
            .append_pair("Version", "2011-06-15")
            .append_pair("RoleArn", role)
            .append_pair("RoleSessionName", &session)
            .append_pair("WebIdentityToken", token.trim())
            .finish();
        let what = "the security token service";
        let headers = vec![("content-type", "application/x-www-form-urlencoded".to_owned())];
        let url = parsed(&endpoint, what)?;
        let sent = self.transport.send(Method::Post, &url, &headers, body.as_bytes(), LIMIT);
        let text = text_of(sent, what)?;
        let value = |name: &str| {
            let (_, rest) = text.split_once(&format!("<{name}>"))?;
            rest.split_once(&format!("</{name}>")).map(|(value, _)| value.trim().to_owned())
        };
        let (Some(key), Some(secret)) = (value("AccessKeyId"), value("SecretAccessKey")) else {
            return Err(no_keys(what));
        };
        let expires = value("Expiration").and_then(|time| time.parse().ok());
        Ok(Keys { key, secret, token: value("SessionToken"), expires })
    }

    /// Credentials of a container or pod.
    fn of_container(&self) -> Result<Keys> {
        let environment = &self.environment;
        let what = "the credentials of the container";
        let url = match environment.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") {
            Some(path) => format!("{CONTAINER_ENDPOINT}{path}"),
            None => environment.get("AWS_CONTAINER_CREDENTIALS_FULL_URI").unwrap_or_default(),
        };
        let url = parsed(&url, what)?;
        if url.scheme() != HTTPS && !url.host_str().is_some_and(is_local) {
            let error = Error::usage(format!(
                "cannot ask for {what}: http:// is for addresses of this machine alone"
            ));
            return Err(error.hint("AWS_CONTAINER_CREDENTIALS_FULL_URI names the address"));
        }
        let token = match environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") {
            Some(file) => {
                Some(read_file(file.as_ref()).or_io(|| format!("cannot read {file:?}"))?.trim().to_owned())
            }
            None => environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN"),
        };
        let headers: Headers = token.into_iter().map(|token| ("authorization", token)).collect();
        keys_of(&text_of(self.transport.get(&url, &headers, LIMIT), what)?).ok_or_else(|| no_keys(what))
    }

    /// Credentials of the role of a virtual machine, by instance metadata version 2.
    fn of_machine(&self) -> Option<Keys> {
        let base = self.environment.get("AWS_EC2_METADATA_SERVICE_ENDPOINT");
        let base = base.unwrap_or_else(|| METADATA_ENDPOINT.into());
        let base = Url::parse(&base).ok()?;
        let url = |path: &str| base.join(path).ok();
        let lifetime = vec![("x-aws-ec2-metadata-token-ttl-seconds", "21600".to_owned())];
        let sent =
            self.transport.send(Method::Put, &url("/latest/api/token")?, &lifetime, &[], METADATA_LIMIT);
        let token = text_of(sent, "").ok()?;
        let headers: Headers = vec![("x-aws-ec2-metadata-token", token)];
        let get = |path: &str| text_of(self.transport.get(&url(path)?, &headers, METADATA_LIMIT), "").ok();
        let roles = "/latest/meta-data/iam/security-credentials/";
        let role = get(roles)?.lines().next()?.trim().to_owned();
        keys_of(&get(&format!("{roles}{role}"))?)
    }
}

/// True for addresses that credentials may be asked from without TLS.
fn is_local(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let is_known = |address: IpAddr| {
        let known = ["169.254.170.2", "169.254.170.23", "fd00:ec2::23"];
        address.is_loopback() || known.iter().any(|it| it.parse() == Ok(address))
    };
    host == "localhost" || host.parse().is_ok_and(is_known)
}

fn parsed(url: &str, what: &str) -> Result<Url> {
    Url::parse(url)
        .map_err(|error| Error::usage(format!("cannot ask for {what}: the address is no URL: {error}")))
}

fn no_keys(what: &str) -> Error {
    Error::failed(format!("cannot find credentials: {what} gave an answer without keys"))
}

fn read_file(path: &std::path::Path) -> std::io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)?.take(LEN_MAX).read_to_string(&mut text)?;
    Ok(text)
}

/// Returns the body of an answer that is a success. Its words are not shown: it may hold secrets.
fn text_of(sent: std::result::Result<Answer, NoAnswer>, what: &str) -> Result<String> {
    let cannot = |why: &str| Error::failed(format!("cannot get credentials from {what}: {why}"));
    let mut answer = sent.map_err(|none| cannot(&none.words))?;
    if answer.status != 200 {
        return Err(cannot(&format!("status {}", answer.status)));
    }
    let text = answer.body.with_config().limit(LEN_MAX).read_to_string();
    text.map_err(|_| cannot("the answer breaks off"))
}

/// Parses the JSON of containers and machines.
fn keys_of(text: &str) -> Option<Keys> {
    let json: serde_json::Value = serde_json::from_str(text).ok()?;
    let value = |name: &str| json.get(name)?.as_str().map(str::to_owned);
    Some(Keys {
        key: value("AccessKeyId")?,
        secret: value("SecretAccessKey")?,
        token: value("Token").filter(|token| !token.is_empty()),
        expires: value("Expiration").and_then(|time| time.parse().ok()),
    })
}

/// Values of a section of an INI file, by their names in lower case. Lines that are indented belong
/// to nested values, which are not read.
fn section_of(text: &str, section: &str) -> BTreeMap<String, String> {
    let mut values = BTreeMap::new();
    let mut is_ours = false;
    for line in text.lines() {
        let start = line.trim();
        if start.is_empty() || start.starts_with(['#', ';']) || line.starts_with([' ', '\t']) {
            continue;
        }
        if let Some(name) = start.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            is_ours = name.0.split_whitespace().eq(section.split_whitespace());
        } else if let Some((name, value)) = start.split_once('=').filter(|_| is_ours) {
            let value = value.split_once(" #").map_or(value, |(value, _)| value).trim();
            if !value.is_empty() {
                values.insert(name.trim().to_ascii_lowercase(), value.to_owned());
            }
        }
    }
    values
}

#[cfg(test)]
mod tests;
