//! Tests of the places of credentials that need no server.

use super::*;
use crate::options::TimeLimits;

fn chain(variables: &[(&str, &str)]) -> Chain {
    let all = variables.iter().copied().chain([("AWS_EC2_METADATA_DISABLED", "true")]);
    let environment = Environment::of(all);
    let transport = Transport::new(&TimeLimits::default(), &environment).unwrap();
    Chain::new(&environment, &transport)
}

const CONFIG: &str = "\
[default]
region = eu-west-1 # Ireland
[profile work]
region=eu-central-1
aws_access_key_id = config
aws_secret_access_key = config
s3 =
    region = nested
";

const CREDENTIALS: &str = "\
; a comment
[default]
aws_access_key_id = D
aws_secret_access_key = d
[ work ]
aws_access_key_id=W
aws_secret_access_key=w
aws_session_token=t
[empty]
";

#[test]
fn places_are_tried_in_their_order() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    };
    file(".aws/config", CONFIG);
    file(".aws/credentials", CREDENTIALS);
    let home = ("HOME", dir.path().to_str().unwrap());
    let found = |variables: &[(&str, &str)]| {
        let all: Vec<_> = variables.iter().copied().chain([home]).collect();
        let chain = chain(&all);
        let region = chain.region();
        chain.keys().map(|keys| (keys.map(|keys| (keys.key, keys.secret, keys.token)), region))
    };
    let keys = |key: &str, secret: &str, token: Option<&str>| {
        Some((key.into(), secret.into(), token.map(Into::into)))
    };
    let own = [("AWS_ACCESS_KEY_ID", "E"), ("AWS_SECRET_ACCESS_KEY", "e")];
    assert_eq!(found(&own).unwrap(), (keys("E", "e", None), Some("eu-west-1".into())));
    assert_eq!(found(&[]).unwrap().0, keys("D", "d", None));
    let work = found(&[("AWS_PROFILE", "work")]).unwrap();
    assert_eq!(work, (keys("W", "w", Some("t")), Some("eu-central-1".into())));
    assert_eq!(found(&[("AWS_REGION", "x")]).unwrap().1, Some("x".into()));
    assert_eq!(found(&[("AWS_SKIP_SIGNATURE", "true")]).unwrap().0, None);
    let error = found(&[("AWS_PROFILE", "empty")]).unwrap_err();
    assert!(error.to_string().contains("empty"), "{error}");
}

#[test]
fn without_any_place_requests_are_not_signed() {
    assert_eq!(chain(&[("HOME", "/nonexistent")]).keys().unwrap(), None);
}

#[test]
fn credentials_of_containers_are_asked_from_this_machine_alone() {
    for host in ["127.0.0.1", "localhost", "[::1]", "169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"] {
        assert!(is_local(host), "{host}");
    }
    for host in ["example.com", "10.0.0.1", "169.254.169.254"] {
        assert!(!is_local(host), "{host}");
    }
    let outside = chain(&[("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://example.com/keys")]);
    assert!(outside.keys().unwrap_err().to_string().contains("this machine"));
}

#[test]
fn json_of_machines_is_read() {
    let keys = keys_of(
        r#"{"AccessKeyId":"A","SecretAccessKey":"S","Token":"T","Expiration":"2031-01-01T00:00:00Z","Code":"Success"}"#,
    );
    let keys = keys.unwrap();
    assert_eq!((keys.key.as_str(), keys.secret.as_str(), keys.token.as_deref()), ("A", "S", Some("T")));
    assert!(keys.expires.is_some());
    assert_eq!(keys_of("{}"), None);
    assert!(!format!("{keys:?}").contains('S'));
}
