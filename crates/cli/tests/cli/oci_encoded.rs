//! Layers that are written with a chunk index, compressed or not.

use crate::fixture::Fixture;
use crate::mounting::{Place, can_mount};
use crate::oci_made::{layers, manifest, write};
use packfs::oci::Digest;
use packfs_testkit::{Random, RangeServer, Reply, peer};
use serde_json::Value;

/// A folder with a tree that has a long file, and its image `root.erofs`.
fn image() -> Fixture {
    let fixture = Fixture::with_tree();
    let mut random = Random::new(3);
    fixture.write("rootfs/big", random.noise(8 << 20));
    fixture.write("rootfs/a/b/c/d/deep", random.noise(300_000));
    fixture.run(["pack", "rootfs", "root.erofs", "-q"]).done();
    fixture
}

/// Returns the only layer of a layout, and its blob.
fn layer(fixture: &Fixture, dir: &str) -> (Value, Vec<u8>) {
    let layer = manifest(&fixture.path(dir))["layers"][0].clone();
    let digest: Digest = layer["digest"].as_str().unwrap().parse().unwrap();
    (layer, fixture.bytes(&format!("{dir}/{}", digest.blob_path())))
}

fn diff_id(fixture: &Fixture, dir: &str) -> Value {
    let digest: Digest = manifest(&fixture.path(dir))["config"]["digest"].as_str().unwrap().parse().unwrap();
    let config = fixture.bytes(&format!("{dir}/{}", digest.blob_path()));
    serde_json::from_slice::<Value>(&config).unwrap()["rootfs"]["diff_ids"][0].clone()
}

/// Compares the annotations of a chunk index with the bytes at the end of a blob; returns the
/// length of what it indexes.
fn indexed_len(layer: &Value, blob: &[u8], frame_len: usize) -> usize {
    let annotation = |name: &str| layer["annotations"][format!("org.erofs.chunk-index.{name}")].as_str();
    let (start, end) = annotation("range").unwrap().split_once(':').unwrap();
    assert_eq!(end, blob.len().to_string());
    let start: usize = start.parse().unwrap();
    let index = &blob[start + frame_len..];
    assert_eq!(annotation("digest"), Some(&*Digest::of(index).to_string()));
    assert_eq!(annotation("mediaType"), Some("application/vnd.erofs.chunk-index.v1"));
    assert_eq!(index[..4], [0xcd, 0xe4, 0xec, 0x67]);
    start
}

#[test]
fn compressed_layers_are_those_of_any_decoder() {
    let fixture = image();
    fixture.run(["verity", "root.erofs", "-q"]).done();
    let bytes = fixture.bytes("root.erofs");
    let id = Digest::of(&bytes).to_string();
    for (dir, options) in [("a", &["--zstd"][..]), ("b", &["--zstd=19", "--draft-media-type"])] {
        let place = format!("oci-layout:{dir}:v1");
        let push = [&["oci", "push", "root.erofs", &place][..], options].concat();
        fixture.run(&push[..]).done();
        assert!(fixture.run(&push[..]).text().contains("1 layer already there"), "not the same bytes");
        let (layer, blob) = layer(&fixture, dir);
        let media =
            if dir == "a" { "application/vnd.erofs.layer.v1+zstd" } else { "application/vnd.erofs+zstd" };
        assert_eq!(layer["mediaType"], media);
        assert_eq!(
            (&layer["annotations"]["org.erofs.uncompressed-digest"], &diff_id(&fixture, dir)),
            (&id.as_str().into(), &id.as_str().into())
        );
        indexed_len(&layer, &blob, 8);
        assert!(zstd::decode_all(&*blob).unwrap() == bytes);
        if let Some(zstd) = peer("zstd") {
            fixture.write("blob.zst", &blob);
            zstd.run(&[&"-dqf", &fixture.path("blob.zst"), &"-o", &fixture.path("blob")]);
            assert!(fixture.bytes("blob") == bytes);
        }
        let out = format!("{dir}.out");
        fixture.run(["unpack", &place, &out, "-q"]).done();
        fixture.run(["diff", &out, "rootfs", "-q"]).done();
        fixture.run(["check", "--data", &place, "-q"]).done();
        // As a whole, with digests compared.
        fixture.run(["diff", &place, "rootfs", "-q"]).done();
        // The hash tree lies in the decoded layer.
        let root = layer["annotations"]["org.erofs.dmverity.root_digest"].as_str().unwrap();
        let root = root.strip_prefix("sha256:").unwrap();
        fixture.run(["cat", "--root-hash", root, &place, "etc/os-release"]).done();
        fixture.run(["cat", "--root-hash", &"0".repeat(64), &place, "etc/os-release"]).failed(3, &[]);
    }
    for wrong in [&["--zstd=0"][..], &["--zstd=23"], &["--zstd", "--chunk-index"]] {
        let push = [&["oci", "push", "root.erofs", "oci-layout:c"][..], wrong].concat();
        assert_eq!(fixture.run(&push[..]).code, Some(2), "{wrong:?}");
    }
}

#[test]
fn uncompressed_layers_are_verified_by_their_index() {
    let fixture = image();
    fixture.run(["oci", "push", "--chunk-index", "root.erofs", "oci-layout:plain", "-q"]).done();
    let (layer, blob) = layer(&fixture, "plain");
    assert_eq!(layer["mediaType"], "application/vnd.erofs.layer.v1");
    assert_eq!(layer["digest"], diff_id(&fixture, "plain"));
    let len = indexed_len(&layer, &blob, 0);
    assert!(blob[..len] == fixture.bytes("root.erofs"));
    fixture.run(["unpack", "oci-layout:plain", "out", "-q"]).done();
    fixture.run(["diff", "out", "rootfs", "-q"]).done();
    fixture.run(["diff", "oci-layout:plain", "rootfs", "-q"]).done();
    // Programs that know no index mount the blob.
    fixture.write("blob.erofs", &blob);
    fixture.run(["diff", "blob.erofs", "rootfs", "-q"]).done();
    if can_mount() {
        let place = Place::new(&fixture, "mnt");
        fixture.run(["mount", "--kernel", "blob.erofs", "mnt"]).done();
        fixture.run(["diff", "mnt", "rootfs", "-q"]).done();
        fixture.run(["umount", place.path().to_str().unwrap()]).done();
    }
    let digest: Digest = layer["digest"].as_str().unwrap().parse().unwrap();
    let mut damaged = blob;
    damaged[len / 2] ^= 1;
    fixture.write(&format!("plain/{}", digest.blob_path()), damaged);
    fixture.run(["cat", "oci-layout:plain", "big"]).failed(3, &["checksum"]);
}

#[test]
fn converted_layers_are_compressed_as_a_whole() {
    let fixture = Fixture::new();
    write(&fixture.path("layout"), &layers());
    fixture.run(["oci", "convert", "--zstd", "oci-layout:layout", "oci-layout:out", "-q"]).done();
    let all = manifest(&fixture.path("out"))["layers"].clone();
    for layer in all.as_array().unwrap() {
        let digest: Digest = layer["digest"].as_str().unwrap().parse().unwrap();
        let blob = fixture.bytes(&format!("out/{}", digest.blob_path()));
        indexed_len(layer, &blob, 8);
        fixture.write("layer.erofs", zstd::decode_all(&*blob).unwrap());
        let facts = fixture.run(["info", "--json", "layer.erofs"]).json();
        assert_eq!(facts["facts"]["codec"], serde_json::json!([]), "{facts}");
    }
    let listed = |image: &str| fixture.run(["ls", "-lR", image]).done().text().to_owned();
    fixture.run(["oci", "convert", "oci-layout:layout", "oci-layout:plain", "-q"]).done();
    assert_eq!(listed("oci-layout:out").replace(":out", ":plain"), listed("oci-layout:plain"));
    fixture.run(["diff", "oci-layout:out", "oci-layout:layout", "-q"]).done();
    // Layers that are images stay.
    fixture.run(["oci", "convert", "oci-layout:out", "oci-layout:again", "-q"]).done();
    assert_eq!(manifest(&fixture.path("again")), manifest(&fixture.path("out")));
}

#[test]
fn one_file_of_a_compressed_layer_takes_few_requests() {
    let fixture = image();
    fixture.run(["oci", "push", "--zstd", "root.erofs", "oci-layout:layout", "-q"]).done();
    let (_, blob) = layer(&fixture, "layout");
    let manifest = manifest(&fixture.path("layout")).to_string();
    let len = blob.len() as u64;
    let server = RangeServer::with(blob, move |request| {
        if request.path.contains("/manifests/") {
            Reply::Status(200, vec![], manifest.clone())
        } else {
            Reply::Right
        }
    });
    let url = server.url("/box:v1").replace("http://", "oci://");
    let run = fixture.run(["cat", "--stats", &url, "a/b/c/d/deep"]);
    assert!(run.code == Some(0) && run.stdout == fixture.bytes("rootfs/a/b/c/d/deep"), "{}", run.stderr);
    let stats: Value = serde_json::from_str(run.stderr.lines().last().unwrap()).unwrap();
    // The manifest, head and tail, and what the file lies in.
    let requests = server.requests().len();
    assert!(requests <= 5 && stats["remote_rounds"].as_u64().unwrap() <= 3, "{requests}: {stats}");
    assert!(stats["remote_bytes"].as_u64().unwrap() < len / 2, "{stats} of {len}");
}
