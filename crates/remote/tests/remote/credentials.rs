//! S3: addresses, signatures, and the places of credentials that are servers.

use crate::{MIB, noise, options_with, read};
use packfs_remote::RemoteImage;
use packfs_testkit::{RangeServer, Reply, Request};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Returns a part of the signature of a request, which is in a header and never in its address.
fn part<'a>(request: &'a Request, name: &str) -> Option<&'a str> {
    assert!(!request.path.contains('?'), "{}", request.path);
    let parts = request.header("authorization")?.strip_prefix("AWS4-HMAC-SHA256 ")?.split(',');
    parts.filter_map(|pair| pair.split_once('=')).find(|(found, _)| *found == name).map(|(_, value)| value)
}

/// Refuses requests that are not signed by this key.
fn signed(key: &'static str) -> impl Fn(&Request) -> Reply + Send + Sync {
    move |request| {
        let is_signed = part(request, "Signature").is_some_and(|it| it.len() == 64)
            && part(request, "Credential").is_some_and(|it| it.starts_with(&format!("{key}/")));
        if is_signed && request.path == "/bucket/dir/my%20image" {
            Reply::Right
        } else {
            Reply::Status(403, vec![], "<Error/>".into())
        }
    }
}

const URL: &str = "s3://bucket/dir/my image";

#[test]
fn requests_are_signed_with_the_keys_of_the_environment() {
    let bytes = noise(4 * MIB);
    let server = RangeServer::with(bytes.clone(), signed("KEY"));
    let endpoint = server.url("");
    let variables = [
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:1"),
        ("AWS_ENDPOINT_URL_S3", &endpoint),
        ("AWS_ACCESS_KEY_ID", "KEY"),
        ("AWS_SECRET_ACCESS_KEY", "SECRET"),
        ("AWS_SESSION_TOKEN", "TOKEN"),
        ("AWS_REGION", "eu-west-1"),
        ("AWS_REQUEST_PAYER", "requester"),
    ];
    let image = RemoteImage::open(URL, options_with(&variables)).unwrap();
    assert_eq!(read(&image, 2 * MIB, 9).unwrap(), bytes[2 * MIB..2 * MIB + 9]);
    let requests = server.requests();
    assert!(requests.iter().all(|it| it.header("x-amz-security-token") == Some("TOKEN")));
    assert!(requests.iter().all(|it| part(it, "Credential").unwrap().contains("/eu-west-1/s3/")));
    assert!(requests.iter().all(|it| it.header("x-amz-request-payer") == Some("requester")));
    let are_signed = |it: &Request| {
        ["host", "x-amz-date", "x-amz-request-payer", "x-amz-security-token"]
            .iter()
            .all(|name| part(it, "SignedHeaders").unwrap().split(';').any(|found| found == *name))
    };
    assert!(requests.iter().all(are_signed));
    assert_eq!(packfs_core::Image::name(&image), URL);
}

#[test]
fn without_credentials_requests_are_not_signed() {
    let bytes = noise(MIB);
    let server = RangeServer::new(bytes.clone());
    let endpoint = server.url("");
    let image = RemoteImage::open(URL, options_with(&[("AWS_ENDPOINT_URL", &endpoint)])).unwrap();
    assert_eq!(read(&image, 0, MIB).unwrap(), bytes);
    assert!(server.requests().iter().all(|it| it.path == "/bucket/dir/my%20image"));
    let server = RangeServer::with(bytes, signed("KEY"));
    let endpoint = server.url("");
    let error = RemoteImage::open(URL, options_with(&[("AWS_ENDPOINT_URL", &endpoint)])).err().unwrap();
    assert!(error.hints()[0].contains("no credentials were found"), "{:?}", error.hints());
}

#[test]
fn the_region_of_the_bucket_is_named() {
    let server = RangeServer::with(Vec::new(), |_| {
        Reply::Status(301, vec![("x-amz-bucket-region", "ap-south-1".into())], "<Error/>".into())
    });
    let endpoint = server.url("");
    let error = RemoteImage::open(URL, options_with(&[("AWS_ENDPOINT_URL", &endpoint)])).err().unwrap();
    assert!(error.hints()[0].contains("AWS_REGION=ap-south-1"), "{error} {:?}", error.hints());
}

#[test]
fn a_bucket_and_a_key_are_needed() {
    for wrong in ["s3://bucket", "s3://bucket/", "s3:///key", "s3://"] {
        let error = RemoteImage::open(wrong, options_with(&[])).err().unwrap();
        assert_eq!(error.kind(), packfs_core::ErrorKind::Usage, "{wrong}");
        assert!(error.hints()[0].contains("s3://BUCKET/KEY"));
    }
}

/// JSON of a server of credentials, which expire at once or never.
fn keys(expires: &str) -> String {
    format!(r#"{{"AccessKeyId":"ROLE","SecretAccessKey":"S","Token":"T","Expiration":"{expires}"}}"#)
}

#[test]
fn web_identity_is_exchanged_for_keys() {
    let token = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(token.path(), "jwt\n").unwrap();
    let sts = RangeServer::with(Vec::new(), |_| {
        let body = "<R><Credentials><AccessKeyId>ROLE</AccessKeyId><SecretAccessKey>S</SecretAccessKey>\
                    <SessionToken>T</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></R>";
        Reply::Status(200, vec![], body.into())
    });
    let store = RangeServer::with(noise(MIB), signed("ROLE"));
    let (sts_url, endpoint) = (sts.url("/"), store.url(""));
    let variables = [
        ("AWS_WEB_IDENTITY_TOKEN_FILE", token.path().to_str().unwrap()),
        ("AWS_ROLE_ARN", "arn:aws:iam::1:role/r"),
        ("AWS_ENDPOINT_URL_STS", &sts_url),
        ("AWS_ENDPOINT_URL_S3", &endpoint),
    ];
    RemoteImage::open(URL, options_with(&variables)).unwrap();
    assert_eq!((sts.requests().len(), sts.requests()[0].method.as_str()), (1, "POST"));
}

#[test]
fn credentials_of_a_container_are_renewed_before_they_expire() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let agent = RangeServer::with(Vec::new(), move |request| {
        assert_eq!(request.header("authorization"), Some("pod-token"));
        let first = counted.fetch_add(1, Ordering::Relaxed) == 0;
        let expires = if first { "2001-01-01T00:00:00Z" } else { "2099-01-01T00:00:00Z" };
        Reply::Status(200, vec![], keys(expires))
    });
    let store = RangeServer::with(noise(8 * MIB), signed("ROLE"));
    let (agent_url, endpoint) = (agent.url("/keys"), store.url(""));
    let variables = [
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", agent_url.as_str()),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "pod-token"),
        ("AWS_ENDPOINT_URL_S3", &endpoint),
    ];
    let image = RemoteImage::open(URL, options_with(&variables)).unwrap();
    for place in [2, 4, 6] {
        read(&image, place * MIB, 1).unwrap();
    }
    assert_eq!(calls.load(Ordering::Relaxed), 2);
}

#[test]
fn a_machine_gives_keys_for_a_token() {
    let metadata = RangeServer::with(Vec::new(), |request| {
        let has_token = request.header("x-aws-ec2-metadata-token") == Some("imds");
        let body = match (request.method.as_str(), request.path.as_str()) {
            ("PUT", "/latest/api/token") => "imds".into(),
            ("GET", "/latest/meta-data/iam/security-credentials/") if has_token => "my-role\n".into(),
            ("GET", "/latest/meta-data/iam/security-credentials/my-role") if has_token => {
                keys("2099-01-01T00:00:00Z")
            }
            _ => return Reply::Status(401, vec![], String::new()),
        };
        Reply::Status(200, vec![], body)
    });
    let store = RangeServer::with(noise(MIB), signed("ROLE"));
    let (metadata_url, endpoint) = (metadata.url("/"), store.url(""));
    let variables =
        [("AWS_EC2_METADATA_SERVICE_ENDPOINT", metadata_url.as_str()), ("AWS_ENDPOINT_URL_S3", &endpoint)];
    let mut options = options_with(&variables);
    options.environment = packfs_remote::Environment::of(variables);
    RemoteImage::open(URL, options).unwrap();
    assert_eq!(metadata.requests().len(), 3);
}

#[test]
fn a_missing_object_gets_advice_about_keys() {
    let server = RangeServer::with(Vec::new(), |_| Reply::Status(404, vec![], String::new()));
    let endpoint = server.url("");
    let error = RemoteImage::open(URL, options_with(&[("AWS_ENDPOINT_URL", &endpoint)])).err().unwrap();
    assert!(error.to_string().contains("no such object") && error.hints()[0].contains("keys have no %20"));
}
