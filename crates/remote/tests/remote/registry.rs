//! Images in a registry: access, manifests, blobs by ranges, and faults.

use crate::{noise, options_with};
use packfs_core::{Error, ErrorKind, Image, Result};
use packfs_remote::RemoteOptions;
use packfs_remote::oci::{Descriptor, Digest, OciImage, OciLayer, OciPlace, Pin};
use packfs_testkit::{RangeServer, Reply, Request};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const EROFS: &str = "application/vnd.erofs";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// Returns the manifest of an image with this blob as its only layer.
fn manifest_of(blob: &[u8]) -> String {
    let (config, layer) = (Descriptor::of(CONFIG, b"{}"), Descriptor::of(EROFS, blob));
    serde_json::json!({ "schemaVersion": 2, "config": config, "layers": [layer] }).to_string()
}

fn json(text: impl Into<String>) -> Reply {
    Reply::Status(200, vec![("Content-Type", MANIFEST.into())], text.into())
}

/// Serves an image of one layer; `behavior` may answer first.
fn registry(
    blob: Vec<u8>,
    behavior: impl Fn(&Request) -> Option<Reply> + Send + Sync + 'static,
) -> RangeServer {
    let manifest = manifest_of(&blob);
    RangeServer::with(blob, move |request| {
        let is_manifest = request.path.contains("/manifests/");
        behavior(request).unwrap_or_else(|| if is_manifest { json(manifest.clone()) } else { Reply::Right })
    })
}

fn place(server: &RangeServer) -> OciPlace {
    let url = server.url("/a/b:v1").replace("http://", "oci://");
    OciPlace::parse(Path::new(&url)).unwrap()
}

fn open_with(server: &RangeServer, options: &RemoteOptions) -> Result<OciImage> {
    OciImage::open(&place(server), options, true)
}

fn open(server: &RangeServer) -> Result<OciImage> {
    open_with(server, &options_with(&[]))
}

fn layer(server: &RangeServer) -> Result<Arc<dyn Image>> {
    open(server)?.layers[0].open()
}

fn fault(result: Result<impl Sized>) -> Error {
    result.err().expect("an error")
}

#[test]
fn the_first_byte_takes_three_rounds() {
    let blob = noise(5 << 20);
    let server = registry(blob.clone(), |_| None);
    let image = layer(&server).unwrap();
    let mut byte = [0];
    image.read_exact_at(2_500_000, &mut byte).unwrap();
    assert_eq!(byte[0], blob[2_500_000]);
    let fetched = image.fetched().unwrap();
    assert_eq!((fetched.rounds, fetched.requests), (3, 4));
    let paths: Vec<String> = server.requests().into_iter().map(|request| request.path).collect();
    assert_eq!(paths[0], "/v2/a/b/manifests/v1");
    assert!(paths[1..].iter().all(|path| *path == format!("/v2/a/b/blobs/{}", Digest::of(&blob))));
}

/// Demands a token, which is given for a login if there is one.
fn guarded(request: &Request) -> Option<Reply> {
    let host = request.header("host").unwrap();
    if request.path.starts_with("/token?") {
        assert_eq!(request.path, "/token?service=s&scope=repository%3Aa%2Fb%3Apull");
        let user = request.header("authorization").map_or("none", |_| "user");
        return Some(json(format!(r#"{{"token":"{user}","expires_in":300}}"#)));
    }
    let authorization = request.header("authorization").unwrap_or_default();
    if matches!(authorization, "Bearer none" | "Bearer user") {
        return None;
    }
    let challenge = format!("Bearer realm=\"http://{host}/token\",service=\"s\",scope=\"x\"");
    Some(Reply::Status(401, vec![("WWW-Authenticate", challenge)], String::new()))
}

#[test]
fn a_token_is_fetched_once_and_kept() {
    let blob = noise(100_000);
    let server = registry(blob.clone(), guarded);
    let image = layer(&server).unwrap();
    let mut found = vec![0; blob.len()];
    image.read_exact_at(0, &mut found).unwrap();
    assert!(found == blob);
    let requests = server.requests();
    assert_eq!(requests.iter().filter(|request| request.path.starts_with("/token")).count(), 1);
    assert_eq!(requests[2].header("authorization"), Some("Bearer none"));
}

/// Returns options with a login for the registry, and the folder that it is in.
pub fn with_login(server: &RangeServer) -> (tempfile::TempDir, RemoteOptions) {
    let host = server.url("").replace("http://", "");
    let dir = tempfile::tempdir().unwrap();
    let config = format!(r#"{{"auths":{{"{host}":{{"auth":"dXNlcjpzZWNyZXQ="}}}}}}"#);
    std::fs::write(dir.path().join("config.json"), config).unwrap();
    let options = options_with(&[("DOCKER_CONFIG", dir.path().to_str().unwrap())]);
    (dir, options)
}

#[test]
fn logins_are_those_of_docker() {
    let server = registry(noise(1000), guarded);
    let (_dir, options) = with_login(&server);
    open_with(&server, &options).unwrap();
    let requests = server.requests();
    assert_eq!(requests[1].header("authorization"), Some("Basic dXNlcjpzZWNyZXQ="));
    assert_eq!(requests[2].header("authorization"), Some("Bearer user"));
}

#[test]
fn an_identity_token_is_exchanged_and_not_shown() {
    let exchange = |request: &Request| {
        if request.path != "/token" {
            return guarded(request);
        }
        let body = String::from_utf8(request.body.clone()).unwrap();
        let wanted = "service=s&scope=repository%3Aa%2Fb%3Apull&client_id=packfs\
                      &grant_type=refresh_token&refresh_token=se%2Fcret";
        Some(match (&*request.method, body == wanted, request.header("authorization")) {
            ("POST", true, None) => json(r#"{"access_token":"user","refresh_token":"x","expires_in":300}"#),
            _ => Reply::Status(400, vec![], body),
        })
    };
    let server = registry(noise(1000), exchange);
    let host = server.url("").replace("http://", "");
    let dir = tempfile::tempdir().unwrap();
    let login = |token: &str| {
        // As az acr login writes it: a name that means nothing, and the token.
        let entry = format!(r#"{{"auth":"MDAwOg==","identitytoken":"{token}"}}"#);
        std::fs::write(dir.path().join("config.json"), format!(r#"{{"auths":{{"{host}":{entry}}}}}"#))
            .unwrap();
    };
    let options = options_with(&[("DOCKER_CONFIG", dir.path().to_str().unwrap())]);
    login("se/cret");
    open_with(&server, &options).unwrap();
    assert_eq!(server.requests().last().unwrap().header("authorization"), Some("Bearer user"));
    login("se/cret2");
    let error = fault(open_with(&server, &options));
    assert!(error.to_string().contains("status 400") && !format!("{error:?}").contains("cret2"), "{error}");
    let basic = || vec![("WWW-Authenticate", "Basic realm=\"x\"".to_owned())];
    let server = registry(noise(1000), move |_| Some(Reply::Status(401, basic(), String::new())));
    let host = server.url("").replace("http://", "");
    let config = format!(r#"{{"auths":{{"{host}":{{"identitytoken":"secret"}}}}}}"#);
    std::fs::write(dir.path().join("config.json"), config).unwrap();
    let error = fault(open_with(&server, &options));
    assert!(error.to_string().contains("is an identity token"), "{error}");
    assert!(!format!("{error:?}").contains("secret"), "{error:?}");
}

#[test]
fn a_registry_that_refuses_is_asked_no_further() {
    let challenge = || vec![("WWW-Authenticate", "Basic realm=\"x\"".to_owned())];
    let server = registry(noise(1000), move |_| Some(Reply::Status(401, challenge(), String::new())));
    let error = fault(open(&server));
    assert!(error.hints().iter().any(|hint| hint.contains("docker login")), "{:?}", error.hints());
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_host_behind_a_redirect_names_no_place_for_passwords() {
    let blob = noise(50_000);
    for scheme in ["Basic realm=\"x\"", "Bearer realm=\"http://HOST/token\",service=\"s\""] {
        let store = RangeServer::with(blob.clone(), move |request| {
            let challenge = scheme.replace("HOST", request.header("host").unwrap());
            Reply::Status(401, vec![("WWW-Authenticate", challenge)], String::new())
        });
        let to = store.url("/store");
        let server = registry(blob.clone(), move |request| {
            let is_blob = request.path.contains("/blobs/");
            is_blob.then(|| Reply::Status(307, vec![("Location", to.clone())], String::new()))
        });
        let (_dir, options) = with_login(&server);
        let image = open_with(&server, &options).unwrap();
        assert_eq!(fault(image.layers[0].open()).kind(), ErrorKind::Failed);
        let asked = store.requests();
        assert!(!asked.is_empty() && asked.iter().all(|request| request.path == "/store"), "{scheme}");
        assert!(asked.iter().all(|request| request.header("authorization").is_none()), "{scheme}");
    }
}

#[test]
fn passwords_do_not_follow_a_redirect() {
    let blob = noise(50_000);
    let store = RangeServer::new(blob.clone());
    let to = store.url("/store");
    let server = registry(blob.clone(), move |request| {
        let is_blob = request.path.contains("/blobs/");
        guarded(request)
            .or_else(|| is_blob.then(|| Reply::Status(307, vec![("Location", to.clone())], String::new())))
    });
    let image = layer(&server).unwrap();
    let mut found = vec![0; blob.len()];
    image.read_exact_at(0, &mut found).unwrap();
    assert!(found == blob);
    assert!(store.requests().iter().all(|request| request.header("authorization").is_none()));
}

#[test]
fn overloaded_registries_are_asked_again() {
    let server = registry(noise(1000), |request| {
        let headers = vec![("Retry-After", "0".to_owned())];
        (request.number < 2).then(|| Reply::Status(429, headers, String::new()))
    });
    assert!(open(&server).is_ok());
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn blobs_of_another_length_and_digest_are_refused() {
    let blob = noise(70_000);
    let manifest = manifest_of(&blob[1..]);
    let server = registry(blob.clone(), move |request| {
        request.path.contains("/manifests/").then(|| json(manifest.clone()))
    });
    let error = fault(layer(&server));
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains("70000 bytes, 69999 are expected"), "{error}");
    let mut other = blob.clone();
    other[30_000] ^= 1;
    let manifest = manifest_of(&other);
    let server =
        registry(blob, move |request| request.path.contains("/manifests/").then(|| json(manifest.clone())));
    let mut reader = open(&server).unwrap().layers[0].reader().unwrap();
    let error = std::io::copy(&mut reader, &mut std::io::sink()).unwrap_err();
    assert!(error.to_string().contains("its digest is"), "{error}");
}

fn manifest_fault(manifest: impl Into<String>) -> Error {
    let manifest = manifest.into();
    let server = registry(noise(10), move |_| Some(json(manifest.clone())));
    fault(open(&server))
}

#[test]
fn hostile_manifests_are_refused() {
    assert_eq!(manifest_fault("{").kind(), ErrorKind::Corrupt);
    assert_eq!(manifest_fault(" ".repeat(5 << 20)).kind(), ErrorKind::Limit);
    let platform = |architecture: &str| serde_json::json!({"os": "linux", "architecture": architecture});
    let mut one = serde_json::to_value(Descriptor::of(MANIFEST, b"x")).unwrap();
    one["platform"] = platform("pdp11\u{1b}[2J");
    let index = serde_json::json!({"schemaVersion": 2, "manifests": [one]}).to_string();
    let error = manifest_fault(&*index);
    assert_eq!(error.kind(), ErrorKind::Failed);
    assert!(
        error.hints()[0].contains("--platform") && !error.hints()[0].contains('\u{1b}'),
        "{:?}",
        error.hints()
    );
    // The manifest that the index names has another digest.
    let index = index.replace("pdp11\\u001b[2J", &packfs_remote::oci::Platform::of_machine().architecture);
    assert_eq!(manifest_fault(index).kind(), ErrorKind::Corrupt);
}

#[test]
fn indexes_within_indexes_end() {
    let mut text = manifest_of(b"");
    let mut all = vec![text.clone()];
    for _ in 0..6 {
        let inner = Descriptor::of(MANIFEST, text.as_bytes());
        text = serde_json::json!({"schemaVersion": 2, "manifests": [inner]}).to_string();
        all.push(text.clone());
    }
    let server = registry(noise(10), move |request| {
        let (_, name) = request.path.rsplit_once('/').unwrap();
        let found = all.iter().find(|text| Digest::of(text.as_bytes()).to_string() == name);
        Some(json(found.or(all.last()).unwrap().clone()))
    });
    assert_eq!(fault(open(&server)).kind(), ErrorKind::Limit);
}

#[test]
fn a_platform_is_chosen_from_an_index() {
    let blob = noise(3000);
    let annotated = |architecture: &str| {
        let annotations = format!("\"schemaVersion\":2,\"annotations\":{{\"for\":\"{architecture}\"}}");
        manifest_of(&blob).replace("\"schemaVersion\":2", &annotations)
    };
    let manifests = ["amd64", "arm64"].map(|architecture| (annotated(architecture), architecture));
    let described: Vec<_> = manifests
        .iter()
        .map(|(text, architecture)| {
            let mut it = serde_json::to_value(Descriptor::of(MANIFEST, text.as_bytes())).unwrap();
            it["platform"] = serde_json::json!({"os": "linux", "architecture": architecture});
            it
        })
        .collect();
    let index = serde_json::json!({"schemaVersion": 2, "manifests": described}).to_string();
    let server = registry(blob, move |request| {
        let named = manifests
            .iter()
            .find(|(text, _)| request.path.ends_with(&Digest::of(text.as_bytes()).to_string()));
        let is_tag = request.path.ends_with("/v1");
        if is_tag { Some(json(index.clone())) } else { named.map(|(text, _)| json(text.clone())) }
    });
    let mut options = options_with(&[]);
    options.oci.platform = Some("linux/arm64".parse().unwrap());
    let image = open_with(&server, &options).unwrap();
    assert_eq!((image.layers.len(), image.choice), (1, None));
    assert_eq!(image.annotations["for"], "arm64");
    options.oci.platform = Some("linux/s390x".parse().unwrap());
    let error = fault(open_with(&server, &options));
    assert!(error.hints()[0].contains("linux/amd64, linux/arm64"), "{:?}", error.hints());
}

/// Returns options with a cache in a folder, and the same offline.
fn cached(dir: &Path) -> (RemoteOptions, RemoteOptions) {
    let online = RemoteOptions { cache_dir: Some(dir.join("cache")), ..options_with(&[]) };
    (online.clone(), RemoteOptions { is_offline: true, ..online })
}

#[test]
fn offline_reading_takes_manifests_and_blobs_from_the_cache() {
    let dir = tempfile::tempdir().unwrap();
    let (online, offline) = cached(dir.path());
    let (blob, newer) = (noise(5 << 20), noise(70_000));
    let manifests = [manifest_of(&blob), manifest_of(&newer)];
    let described: Vec<_> = manifests.iter().map(|text| Descriptor::of(MANIFEST, text.as_bytes())).collect();
    let index = |at: usize| serde_json::json!({"schemaVersion": 2, "manifests": [described[at]]}).to_string();
    let (first, second) = (index(0), index(1));
    let moved = Arc::new(AtomicBool::new(false));
    let is_moved = Arc::clone(&moved);
    let bytes = newer.clone();
    let server = RangeServer::with(blob.clone(), move |request| {
        let named =
            manifests.iter().find(|text| request.path.ends_with(&Digest::of(text.as_bytes()).to_string()));
        match (&*request.path, is_moved.load(Ordering::Relaxed)) {
            (path, false) if path.ends_with("/v1") => json(first.clone()),
            (path, true) if path.ends_with("/v1") => json(second.clone()),
            _ => named.map_or(Reply::Right, |text| json(text.clone())),
        }
    });
    let error = fault(open_with(&server, &offline));
    assert!(error.to_string().contains("the manifest v1 is not in the cache"), "{error}");
    assert_eq!((error.kind(), server.requests().len()), (ErrorKind::Failed, 0));
    let mut byte = [0];
    let image = open_with(&server, &online).unwrap();
    let layer = image.layers[0].open().unwrap();
    layer.read_exact_at(2_500_000, &mut byte).unwrap();
    // A manifest named by its digest is not requested again, a tag is.
    server.forget();
    open_with(&server, &online).unwrap();
    assert_eq!(server.requests().iter().map(|it| &*it.path).collect::<Vec<_>>(), ["/v2/a/b/manifests/v1"]);
    server.forget();
    let image = open_with(&server, &offline).unwrap();
    let layer = image.layers[0].open().unwrap();
    layer.read_exact_at(2_500_000, &mut byte).unwrap();
    assert_eq!(byte[0], blob[2_500_000]);
    let error = layer.read_exact_at(1_500_000, &mut byte).unwrap_err();
    assert!(error.to_string().contains("--offline"), "{error}");
    let digest = image.digest.unwrap();
    let pinned = |digest: &Digest| {
        let OciPlace::Registry(mut place) = place(&server) else { panic!() };
        place.pin = Pin::Digest(digest.clone());
        OciImage::open(&OciPlace::Registry(place), &offline, true)
    };
    assert_eq!(pinned(&digest).unwrap().digest, Some(digest));
    assert!(fault(pinned(&Digest::of(b""))).to_string().contains(&Digest::of(b"").to_string()));
    assert_eq!(server.requests().len(), 0);
    // A tag leads to what it led to last; the blob of that was not read.
    moved.store(true, Ordering::Relaxed);
    open_with(&server, &online).unwrap();
    server.forget();
    let image = open_with(&server, &offline).unwrap();
    let error = fault(image.layers[0].open());
    let blob = format!("blob {}", Digest::of(&bytes));
    assert!(error.to_string().contains(&blob) && error.to_string().contains("cache"), "{error}");
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn a_damaged_manifest_in_the_cache_is_not_used() {
    let dir = tempfile::tempdir().unwrap();
    let (online, offline) = cached(dir.path());
    let server = registry(noise(1000), |_| None);
    open_with(&server, &online).unwrap();
    open_with(&server, &offline).unwrap();
    for entry in std::fs::read_dir(dir.path().join("cache")).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        // The lock is empty.
        let Some(last) = bytes.last_mut() else { continue };
        *last ^= 1;
        std::fs::write(&path, bytes).unwrap();
    }
    assert!(fault(open_with(&server, &offline)).to_string().contains("not in the cache"));
    open_with(&server, &online).unwrap();
    open_with(&server, &offline).unwrap();
}

#[test]
fn layers_are_named_by_their_digest() {
    let blob = noise(10);
    let server = registry(blob.clone(), |_| None);
    let names: Vec<String> = open(&server).unwrap().layers.iter().map(OciLayer::name).collect();
    assert_eq!(names, [Digest::of(&blob).to_string()]);
}
