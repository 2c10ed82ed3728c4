//! Uploads to a registry that loses connections.

use crate::registry::with_login;
use crate::{noise, options_with};
use packfs_core::{MemoryImage, Result, Silent};
use packfs_remote::oci::{Descriptor, Digest, Manifest, OciPlace, OciTarget};
use packfs_testkit::{RangeServer, Reply, Request};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

const MIB: usize = 1 << 20;

/// A registry that takes blobs and manifests.
#[derive(Default)]
struct Registry {
    upload: Vec<u8>,
    blobs: BTreeMap<String, Vec<u8>>,
    manifests: BTreeMap<String, Vec<u8>>,
    patches: u64,
    /// Number of the chunk whose answer is lost.
    lost: Option<u64>,
    /// Set to keep nothing of that chunk.
    keeps_nothing: bool,
}

fn status(status: u16, headers: Vec<(&'static str, String)>) -> Reply {
    Reply::Status(status, headers, String::new())
}

impl Registry {
    fn answer(&mut self, request: &Request) -> Reply {
        let path = request.path.as_str();
        let place = || vec![("Location", "/v2/a/blobs/uploads/1?state=x".to_owned())];
        match (request.method.as_str(), path.rsplit_once('/').unwrap()) {
            ("HEAD", (_, digest)) => status(if self.blobs.contains_key(digest) { 200 } else { 404 }, vec![]),
            ("POST", _) => {
                self.upload.clear();
                status(202, place())
            }
            ("PATCH", _) => self.patch(request, place()),
            ("GET", _) => {
                let mut headers = place();
                headers.push(("Range", format!("0-{}", self.upload.len().saturating_sub(1))));
                status(204, headers)
            }
            ("PUT", ("/v2/a/manifests", name)) => {
                self.manifests.insert(name.into(), request.body.clone());
                status(201, vec![])
            }
            ("PUT", _) => {
                self.upload.extend(&request.body);
                let digest = Digest::of(&self.upload).to_string();
                let (_, named) = path.rsplit_once("digest=").unwrap();
                if named.replace("%3A", ":") != digest {
                    return status(400, vec![]);
                }
                self.blobs.insert(digest, std::mem::take(&mut self.upload));
                status(201, vec![])
            }
            other => panic!("{other:?}"),
        }
    }

    fn patch(&mut self, request: &Request, place: Vec<(&'static str, String)>) -> Reply {
        let range = request.header("content-range").unwrap();
        if range != format!("{}-{}", self.upload.len(), self.upload.len() + request.body.len() - 1) {
            return status(416, vec![]);
        }
        self.patches += 1;
        let is_lost = self.lost == Some(self.patches);
        if !(is_lost && self.keeps_nothing) {
            self.upload.extend(&request.body);
        }
        if is_lost { Reply::Drop } else { status(202, place) }
    }
}

fn serve(registry: Registry) -> (RangeServer, Arc<Mutex<Registry>>) {
    let registry = Arc::new(Mutex::new(registry));
    let ours = Arc::clone(&registry);
    (RangeServer::with(vec![], move |request| ours.lock().unwrap().answer(request)), registry)
}

fn target(server: &RangeServer) -> OciTarget {
    let url = server.url("/a:v1").replace("http://", "oci://");
    OciTarget::open(&OciPlace::parse(Path::new(&url)).unwrap(), &options_with(&[])).unwrap()
}

fn put(target: &OciTarget, bytes: &[u8]) -> Result<bool> {
    let image = MemoryImage::from(bytes.to_vec());
    target.put_blob(&Descriptor::of("x", bytes), &image, &Silent)
}

#[test]
fn short_blobs_are_sent_at_once_and_only_if_they_are_missing() {
    let (server, registry) = serve(Registry::default());
    let target = target(&server);
    let blob = noise(MIB);
    assert!(put(&target, &blob).unwrap());
    assert!(!put(&target, &blob).unwrap());
    let methods: Vec<String> = server.requests().into_iter().map(|request| request.method).collect();
    assert_eq!(methods, ["HEAD", "POST", "PUT", "HEAD"]);
    assert!(registry.lock().unwrap().blobs[&Digest::of(&blob).to_string()] == blob);
}

#[test]
fn long_blobs_are_sent_in_chunks_that_are_resumed() {
    for keeps_nothing in [false, true] {
        let (server, registry) = serve(Registry { lost: Some(2), keeps_nothing, ..Registry::default() });
        let blob = noise(40 * MIB);
        assert!(put(&target(&server), &blob).unwrap());
        let registry = registry.lock().unwrap();
        assert!(registry.blobs[&Digest::of(&blob).to_string()] == blob);
        assert_eq!(registry.patches, if keeps_nothing { 4 } else { 3 });
    }
}

#[test]
fn configuration_and_manifest_follow_the_layers() {
    let (server, registry) = serve(Registry::default());
    let layer = Descriptor::of("application/vnd.erofs", b"layer");
    let target = target(&server);
    let manifest = |config| Manifest::new(config, vec![layer.clone()], BTreeMap::new());
    let image = target.put_manifest(b"{}", manifest).unwrap();
    let digest = target.put_named(image).unwrap();
    let registry = registry.lock().unwrap();
    let manifest = &registry.manifests["v1"];
    assert_eq!(Digest::of(manifest), digest);
    let manifest: serde_json::Value = serde_json::from_slice(manifest).unwrap();
    assert_eq!(manifest["layers"][0]["digest"], layer.digest.to_string());
    assert!(registry.blobs.contains_key(manifest["config"]["digest"].as_str().unwrap()));
}

#[test]
fn a_host_of_uploads_names_no_place_for_passwords() {
    let store = RangeServer::with(vec![], |request| {
        let realm = format!("Bearer realm=\"http://{}/token\"", request.header("host").unwrap());
        status(401, vec![("WWW-Authenticate", realm)])
    });
    let to = store.url("/upload");
    let server = RangeServer::with(vec![], move |request| match request.method.as_str() {
        "HEAD" => status(404, vec![]),
        _ => status(202, vec![("Location", to.clone())]),
    });
    let (_dir, options) = with_login(&server);
    let url = server.url("/a:v1").replace("http://", "oci://");
    let target = OciTarget::open(&OciPlace::parse(Path::new(&url)).unwrap(), &options).unwrap();
    assert!(put(&target, b"x").is_err());
    let asked = store.requests();
    assert!(!asked.is_empty() && asked.iter().all(|request| request.path.starts_with("/upload")));
    assert!(asked.iter().all(|request| request.header("authorization").is_none()));
}

#[test]
fn a_refusal_is_told_in_the_words_of_the_registry() {
    let body = r#"{"errors":[{"code":"DENIED","message":"no\u001b pushes"}]}"#;
    let server = RangeServer::with(vec![], move |request| match request.method.as_str() {
        "HEAD" => status(404, vec![]),
        _ => Reply::Status(403, vec![], body.into()),
    });
    let error = put(&target(&server), b"x").unwrap_err();
    assert!(error.to_string().contains("status 403: DENIED no\\x1b pushes"), "{error}");
    assert!(error.hints()[0].contains("docker login"), "{:?}", error.hints());
}
