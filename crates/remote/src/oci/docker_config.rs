//! Names and passwords of registries: `config.json` of docker, `auth.json` of podman, and the
//! helpers that they name.

use crate::environment::Environment;
use ct_codecs::{Base64, Decoder};
use packfs_core::{Error, Result, ResultExt};
use serde_json::Value;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Longest file or answer of a helper that is read.
const LEN_MAX: u64 = 1 << 20;
/// Name of Docker Hub in these files.
const HUB: &str = "https://index.docker.io/v1/";

/// Login of a user at a registry.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Login {
    /// Name and password.
    Password { user: String, password: String },
    /// An identity token, which the place of tokens exchanges for others (OAuth2 refresh token).
    IdentityToken(String),
}

/// Finds the login of a registry, in the order of podman and skopeo; `None` if there is none.
///
/// Errors: `Io` for a file that cannot be read; `Failed` for a helper that fails or an entry that
/// is none.
pub(crate) fn login(environment: &Environment, registry: &str) -> Result<Option<Login>> {
    let home = environment.home();
    let files = [
        environment.get("REGISTRY_AUTH_FILE").map(PathBuf::from),
        environment.get("XDG_RUNTIME_DIR").map(|dir| PathBuf::from(dir).join("containers/auth.json")),
        environment
            .get("DOCKER_CONFIG")
            .map(PathBuf::from)
            .or_else(|| Some(home?.join(".docker")))
            .map(|dir| dir.join("config.json")),
    ];
    for path in files.into_iter().flatten() {
        let Some(text) = read(&path)? else { continue };
        let json: Value = serde_json::from_slice(&text).map_err(|error| {
            // The text holds secrets.
            Error::failed(format!("cannot read {path:?}: line {} is no JSON", error.line()))
        })?;
        if let Some(login) = in_file(&json, registry, environment)? {
            return Ok(Some(login));
        }
    }
    Ok(None)
}

fn read(path: &std::path::Path) -> Result<Option<Vec<u8>>> {
    let mut text = Vec::new();
    match std::fs::File::open(path) {
        Ok(file) => file.take(LEN_MAX).read_to_end(&mut text).or_io(|| format!("cannot read {path:?}"))?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io(format!("cannot read {path:?}"), error)),
    };
    Ok(Some(text))
}

/// Finds a registry in a file: its own helper, its entry, the helper of all.
fn in_file(json: &Value, registry: &str, environment: &Environment) -> Result<Option<Login>> {
    let key = if registry == "docker.io" { HUB } else { registry };
    let helper = json.get("credHelpers").and_then(|all| all.get(key).or_else(|| all.get(registry)));
    if let Some(helper) = helper.and_then(Value::as_str) {
        return of_helper(helper, key, environment);
    }
    let auths = json.get("auths").and_then(Value::as_object);
    let names =
        [key.to_owned(), registry.to_owned(), format!("https://{registry}"), format!("http://{registry}")];
    let entry = auths.and_then(|auths| names.iter().find_map(|name| auths.get(name)));
    if let Some(login) = entry.map(of_entry).transpose()?.flatten() {
        return Ok(Some(login));
    }
    match json.get("credsStore").and_then(Value::as_str) {
        Some(helper) => of_helper(helper, key, environment),
        None => Ok(None),
    }
}

/// Reads `auth`, which is `USER:PASSWORD` in Base64, or else `username` and `password`.
fn of_entry(entry: &Value) -> Result<Option<Login>> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    if let Some(token) = text("identitytoken") {
        return Ok(Some(Login::IdentityToken(token.into())));
    }
    if let Some(auth) = text("auth") {
        let wrong = || Error::failed("cannot read a login: its field auth is not USER:PASSWORD in Base64");
        let decoded = Base64::decode_to_vec(auth.trim(), None).map_err(|_| wrong())?;
        let decoded = String::from_utf8(decoded).map_err(|_| wrong())?;
        let (user, password) = decoded.trim_end_matches('\0').split_once(':').ok_or_else(wrong)?;
        return Ok(Some(Login::Password { user: user.into(), password: password.into() }));
    }
    Ok(text("username")
        .zip(text("password"))
        .map(|(user, password)| Login::Password { user: user.into(), password: password.into() }))
}

/// Asks a helper, by the protocol of docker-credential-helpers.
fn of_helper(helper: &str, key: &str, environment: &Environment) -> Result<Option<Login>> {
    let cannot =
        |why: &str| Error::failed(format!("cannot get a login from docker-credential-{helper}: {why}"));
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    if helper.is_empty() || !helper.bytes().all(is_word) {
        return Err(Error::failed("cannot get a login: the name of the credential helper is wrong"));
    }
    let mut command = Command::new(format!("docker-credential-{helper}"));
    if let Some(path) = environment.get("PATH") {
        command.env("PATH", path);
    }
    let command = command.arg("get").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| cannot(&error.kind().to_string()))?;
    if let Some(mut input) = child.stdin.take() {
        // A helper that does not read says so by its status.
        let _ = input.write_all(key.as_bytes());
    }
    let mut answer = Vec::new();
    if let Some(output) = child.stdout.take() {
        output.take(LEN_MAX).read_to_end(&mut answer).map_err(|error| cannot(&error.kind().to_string()))?;
    }
    let status = child.wait().map_err(|error| cannot(&error.kind().to_string()))?;
    if !status.success() {
        // Helpers have no other way to say that they know none.
        let is_unknown = String::from_utf8_lossy(&answer).contains("credentials not found");
        return if is_unknown { Ok(None) } else { Err(cannot(&status.to_string())) };
    }
    let json: Value = serde_json::from_slice(&answer).map_err(|_| cannot("its answer is no JSON"))?;
    let text = |name: &str| json.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (user, secret) = (text("Username"), text("Secret"));
    let login = match &*user {
        "<token>" => Login::IdentityToken(secret.clone()),
        _ => Login::Password { user, password: secret.clone() },
    };
    Ok(Some(login).filter(|_| !secret.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn found(config: &str, registry: &str) -> Result<Option<(String, String)>> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("config.json"), config).unwrap();
        for (name, script) in [
            ("good", "read key; echo \"{\\\"Username\\\":\\\"u-$key\\\",\\\"Secret\\\":\\\"p\\\"}\""),
            ("token", "echo '{\"Username\":\"<token>\",\"Secret\":\"t\"}'"),
            ("none", "echo 'credentials not found in native keychain'; exit 1"),
            ("bad", "echo secret; exit 1"),
        ] {
            let path = dir.path().join(format!("docker-credential-{name}"));
            std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let path = format!("{}:/usr/bin:/bin", dir.path().display());
        let environment = Environment::of([("DOCKER_CONFIG", dir.path().to_str().unwrap()), ("PATH", &path)]);
        Ok(login(&environment, registry)?.map(|login| match login {
            Login::Password { user, password } => (user, password),
            Login::IdentityToken(token) => ("(token)".into(), token),
        }))
    }

    #[test]
    fn entries_and_helpers_are_found() {
        let is = |user: &str, password: &str| Some((user.to_owned(), password.to_owned()));
        let config = r#"{"auths":{"a:5000":{"auth":"dTpwOnE="},"https://index.docker.io/v1/":{"username":"h","password":"i"},
            "empty":{},"i":{"auth":"dTpwOnE=","identitytoken":"j"}},
            "credHelpers":{"b":"good","c":"none","t":"token"},"credsStore":"good"}"#;
        assert_eq!(found(config, "a:5000").unwrap(), is("u", "p:q"));
        assert_eq!(found(config, "docker.io").unwrap(), is("h", "i"));
        assert_eq!(found(config, "b").unwrap(), is("u-b", "p"));
        assert_eq!(found(config, "c").unwrap(), None);
        assert_eq!(found(config, "i").unwrap(), is("(token)", "j"));
        assert_eq!(found(config, "t").unwrap(), is("(token)", "t"));
        assert_eq!(found(config, "empty").unwrap(), is("u-empty", "p"));
        assert_eq!(found("{}", "a").unwrap(), None);
    }

    #[test]
    fn errors_hold_no_secrets() {
        for config in [
            "{\"auths\": secret",
            r#"{"auths":{"a":{"auth":"secret!"}}}"#,
            r#"{"auths":{"a":{"auth":"c2VjcmV0"}}}"#,
            r#"{"credHelpers":{"a":"bad"}}"#,
            r#"{"credHelpers":{"a":"../secret"}}"#,
        ] {
            let error = found(config, "a").unwrap_err();
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}
