//! EROFS layers over each other, read where they are.

use crate::fixture::Fixture;
use crate::mounting::{AS_MOUNTED, Place, can_mount};
use crate::oci_made::{Layer, layers, manifest, write};
use packfs::FileType;
use packfs::oci::{Descriptor, Digest};
use packfs_testkit::{Random, RangeServer, Reply, Served, snapshot_dir};
use serde_json::json;
use std::collections::HashMap;
use std::sync::Arc;

/// Returns paths, modes, and contents of all entries that an image shows, in order.
fn rows(image: &packfs::Opened) -> Vec<String> {
    let rows = image.walk().map(|entry| {
        let entry = entry.unwrap();
        let (path, id) = (&entry.path, entry.id);
        assert_eq!(image.find(path).unwrap(), id);
        let text = match entry.inode.kind.file_type() {
            FileType::File => String::from_utf8(image.read(path).unwrap()).unwrap(),
            other => other.word().to_owned(),
        };
        format!("{path} {:o} {text} {:?}", entry.inode.meta.mode, image.volume().xattrs(id).unwrap())
    });
    let mut rows: Vec<String> = rows.collect();
    rows.sort();
    rows
}

/// A folder with a layout of tar layers, and `merged`, one of EROFS layers.
fn converted(layers: &[Layer]) -> Fixture {
    let fixture = Fixture::new();
    write(&fixture.path("layout"), layers);
    fixture.run(["oci", "convert", "oci-layout:layout", "oci-layout:merged", "-q"]).done();
    fixture
}

fn merged(fixture: &Fixture) -> packfs::Opened {
    packfs::open(fixture.path("merged")).unwrap()
}

#[test]
fn layers_are_read_as_one_tree() {
    let fixture = converted(&layers());
    fixture.run(["pack", "oci-layout:merged", "packed.erofs", "-q"]).done();
    let packed = packfs::open(fixture.path("packed.erofs")).unwrap();
    assert_eq!(rows(&merged(&fixture)), rows(&packed));
    let listed = |image: &str| fixture.run(["ls", "-R", image]).done().text().to_owned();
    assert_eq!(listed("oci-layout:merged"), listed("packed.erofs"));
    assert_eq!(fixture.run(["cat", "oci-layout:merged", "etc/a"]).done().text(), "2");
    fixture.run(["cat", "oci-layout:merged", "etc/b"]).failed(1, &["etc/b"]);
    fixture.run(["unpack", "oci-layout:merged", "out", "-q"]).done();
    fixture.run(["diff", "out", "packed.erofs", "-q"]).done();
    fixture.run(["check", "--data", "oci-layout:merged", "-q"]).done();
    let facts = fixture.run(["info", "--json", "oci-layout:merged"]).json();
    assert_eq!((&facts["format"], &facts["facts"]["layers"]), (&"erofs".into(), &3.into()));
    assert!(fixture.run(["tar", "oci-layout:merged"]).done().stdout.len() > 9 * 512);
    let root = ["ls", "oci-layout:merged", "--root-hash", &"0".repeat(64)];
    fixture.run(root).failed(2, &["3 layers"]);
}

/// Adds what a layer has in a directory: files, directories, whiteouts, opaque directories.
fn add_random(random: &mut Random, dir: &str, depth: u32, members: &mut Vec<(String, String)>) {
    if depth > 0 && random.below(4) == 0 {
        members.push((format!("{dir}.wh..wh..opq"), String::new()));
    }
    for name in ["a", "b", "c"] {
        match random.below(6) {
            0 | 1 => members.push((format!("{dir}{name}"), random.next().to_string())),
            2 | 3 if depth < 3 => {
                members.push((format!("{dir}{name}/"), String::new()));
                add_random(random, &format!("{dir}{name}/"), depth + 1, members);
            }
            4 => members.push((format!("{dir}.wh.{name}"), String::new())),
            _ => {}
        }
    }
}

fn random_layers(seed: u64) -> Vec<Layer> {
    let mut random = Random::new(seed);
    let layers = (0..2 + random.below(5)).map(|_| {
        let mut members = Vec::new();
        add_random(&mut random, "", 0, &mut members);
        let members: Vec<_> = members.iter().map(|(name, text)| (&**name, &**text)).collect();
        Layer::tar("", &members)
    });
    layers.collect()
}

#[test]
fn layers_are_mounted_as_one_tree() {
    if !can_mount() {
        return;
    }
    for layers in [layers(), random_layers(3), random_layers(7)] {
        let fixture = converted(&layers);
        fixture.run(["oci", "convert", "--zstd", "oci-layout:layout", "oci-layout:zstd", "-q"]).done();
        fixture.run(["pack", "oci-layout:merged", "packed.erofs", "-q"]).done();
        let packed = Place::new(&fixture, "packed");
        fixture.run(["mount", "--fuse", "packed.erofs", "packed"]).done();
        for image in ["oci-layout:merged", "oci-layout:zstd"] {
            let place = Place::new(&fixture, "layers");
            fixture.run(["mount", image, "layers"]).done();
            assert!(place.table()[0].contains(" - fuse.packfs "), "{:?}", place.table());
            let wanted = snapshot_dir(packed.path());
            // Several at once, as programs read a mount.
            let found = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| snapshot_dir(place.path()))).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
            });
            found.iter().for_each(|found| found.assert_same(&wanted, AS_MOUNTED, image));
            fixture.run(["umount", place.path().to_str().unwrap()]).done();
            assert!(!place.is_mounted());
        }
    }
}

#[test]
fn any_layers_show_what_packing_makes_of_them() {
    for seed in 0..12 {
        let layers = random_layers(seed);
        let fixture = converted(&layers);
        fixture.run(["pack", "oci-layout:layout", "packed.sqfs", "-q"]).done();
        let packed = packfs::open(fixture.path("packed.sqfs")).unwrap();
        assert_eq!(rows(&merged(&fixture)), rows(&packed), "{seed}");
    }
}

#[test]
fn listings_go_on_after_a_cursor() {
    let text = |name: u32| (format!("d/{name:03}"), "x".to_owned());
    let names: Vec<_> = (0..200).map(text).collect();
    let layer = |start: usize| {
        let members = names.iter().skip(start).step_by(2).map(|(name, text)| (&**name, &**text));
        Layer::tar("", &[("d/", "")].into_iter().chain(members).collect::<Vec<_>>())
    };
    let image = merged(&converted(&[layer(0), layer(1)]));
    let dir = image.find("d").unwrap();
    let (mut found, mut cursor) = (Vec::new(), packfs::DirCursor::default());
    loop {
        let before = found.len();
        let mut some = 0;
        image
            .volume()
            .read_dir(dir, cursor, &mut |entry, next| {
                found.push(format!("d/{}", String::from_utf8(entry.name).unwrap()));
                (cursor, some) = (next, some + 1);
                if some == 7 { std::ops::ControlFlow::Break(()) } else { std::ops::ControlFlow::Continue(()) }
            })
            .unwrap();
        if found.len() == before {
            break;
        }
    }
    assert_eq!(found, names.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>());
}

#[test]
fn no_more_is_fetched_than_what_is_read() {
    let noise = |seed| -> String {
        let mut random = Random::new(seed);
        (0..600_000).map(|_| char::from(b'!' + random.below(90) as u8)).collect()
    };
    let texts: Vec<String> = (0..25).map(noise).collect();
    let names: Vec<String> = (0..25).map(|number| format!("d/f{number}")).collect();
    let layer = |numbers: std::ops::Range<usize>| {
        let files = numbers.map(|number| (&*names[number], &*texts[number]));
        Layer::tar("", &[("d/", "")].into_iter().chain(files).collect::<Vec<_>>())
    };
    let fixture = converted(&[layer(0..24), Layer::tar("", &[("d/.wh.f0", "")]), layer(24..25)]);
    let manifest = manifest(&fixture.path("merged"));
    let blob = |descriptor: &serde_json::Value| {
        let digest: Digest = descriptor["digest"].as_str().unwrap().parse().unwrap();
        (digest.to_string(), Arc::new(fixture.bytes(&format!("merged/{}", digest.blob_path()))))
    };
    let blobs: HashMap<_, _> = manifest["layers"].as_array().unwrap().iter().map(blob).collect();
    let all: usize = blobs.values().map(|blob| blob.len()).sum();
    let manifest = manifest.to_string();
    let server = RangeServer::with(vec![], move |request| {
        let (_, last) = request.path.rsplit_once('/').unwrap();
        match blobs.get(last) {
            Some(bytes) => {
                let etag = Some(format!("\"{last}\""));
                Reply::Of(Served { bytes: Arc::clone(bytes), etag, modified: None })
            }
            None => Reply::Status(200, vec![], manifest.clone()),
        }
    });
    let image = server.url("/box:v1").replace("http://", "oci://");
    let run = fixture.run(["cat", "--stats", &image, "d/f12"]);
    assert!(run.code == Some(0) && run.text() == texts[12], "{}", run.stderr);
    let stats: serde_json::Value = serde_json::from_str(run.stderr.lines().last().unwrap()).unwrap();
    let fetched = stats["remote_bytes"].as_u64().unwrap();
    assert!(all > 12 << 20 && fetched < all as u64 / 2, "{stats} of {all}");
    // The manifest, head and tail of each layer, and the data of one.
    let requests = server.requests().len();
    assert!((8..=12).contains(&requests), "{requests}: {stats}");
    fixture.run(["cat", &image, "d/f0"]).failed(1, &["d/f0"]);
    // All of it comes from the cache.
    let before = server.requests().len();
    assert!(fixture.run(["cat", "--offline", &image, "d/f12"]).done().text() == texts[12]);
    assert_eq!(server.requests().len(), before);
}

/// Length of the chunks of a layer.
const CHUNK_LEN: usize = 128 << 10;

/// Returns an image as frames of Zstandard, and the index of them.
fn chunked(image: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let chunks: Vec<&[u8]> = image.chunks(CHUNK_LEN).collect();
    let mut index = vec![0xcd, 0xe4, 0xec, 0x67, 1, 1, 0, 0];
    index.extend((image.len() as u64).to_le_bytes());
    index.extend((chunks.len() as u32).to_le_bytes());
    index.extend([1, 32]);
    index.extend([0; 10]);
    let mut blob: Vec<u8> = Vec::new();
    for (number, chunk) in chunks.iter().enumerate() {
        let frame = zstd::encode_all(*chunk, 1).unwrap();
        index.extend((blob.len() as u64).to_le_bytes());
        index.extend((number * CHUNK_LEN).to_le_bytes());
        index.extend(packfs::from_hex(Digest::of(&frame).parts().1).unwrap());
        blob.extend(frame);
    }
    (blob, index)
}

/// Writes a layout of one image with these layers.
fn write_layers(dir: &std::path::Path, layers: &[(Descriptor, &[u8])], ids: &[Digest]) {
    let config = json!({"os": "linux", "rootfs": {"type": "layers", "diff_ids": ids}}).to_string();
    let config_media = "application/vnd.oci.image.config.v1+json";
    let described = Descriptor::of(config_media, config.as_bytes());
    let rows: Vec<&Descriptor> = layers.iter().map(|layer| &layer.0).collect();
    let manifest = json!({"schemaVersion": 2, "config": described, "layers": rows}).to_string();
    let manifest_media = "application/vnd.oci.image.manifest.v1+json";
    let index =
        json!({"schemaVersion": 2, "manifests": [Descriptor::of(manifest_media, manifest.as_bytes())]});
    let index = index.to_string();
    let blobs = layers.iter().map(|layer| layer.1).chain([config.as_bytes(), manifest.as_bytes()]);
    let mut files: Vec<(String, &[u8])> = blobs.map(|blob| (Digest::of(blob).blob_path(), blob)).collect();
    files.push(("index.json".into(), index.as_bytes()));
    files.push(("oci-layout".into(), br#"{"imageLayoutVersion":"1.0.0"}"#));
    for (name, bytes) in files {
        std::fs::create_dir_all(dir.join(&name).parent().unwrap()).unwrap();
        std::fs::write(dir.join(name), bytes).unwrap();
    }
}

#[test]
fn compressed_layers_are_read_by_their_chunks() {
    let fixture = Fixture::with_tree();
    fixture.write("rootfs/big", Random::new(3).noise(4 << 20));
    fixture.run(["pack", "rootfs", "root.erofs", "-q"]).done();
    let image = fixture.bytes("root.erofs");
    let (frames, index) = chunked(&image);
    let media = "application/vnd.erofs+zstd";
    let embedded = |index: &[u8]| {
        let frame = [&0x184d_2a50_u32.to_le_bytes()[..], &(index.len() as u32).to_le_bytes(), index].concat();
        let blob = [&frames[..], &frame].concat();
        let mut layer = Descriptor::of(media, &blob);
        let name = |name: &str| format!("org.erofs.chunk-index.{name}");
        layer.annotations.insert(name("range"), format!("{}:{}", frames.len(), blob.len()));
        layer.annotations.insert(name("digest"), Digest::of(index).to_string());
        (layer, blob)
    };
    let (layer, blob) = embedded(&index);
    let id = Digest::of(&image);
    write_layers(&fixture.path("embedded"), &[(layer.clone(), &blob)], std::slice::from_ref(&id));
    let apart = Descriptor::of("application/vnd.erofs.chunk-index.v1", &index);
    let layers = [(Descriptor::of(media, &frames), &frames[..]), (apart.clone(), &index[..])];
    write_layers(&fixture.path("apart"), &layers, &[id.clone(), apart.digest.clone()]);
    // The digest of the decoded layer is only an annotation, and an index follows a plain image.
    let mut annotated = Descriptor::of(media, &frames);
    annotated.annotations.insert("org.erofs.uncompressed-digest".into(), id.to_string());
    let plain = [&image[..], &index].concat();
    let mut indexed = Descriptor::of("application/vnd.erofs", &plain);
    indexed.annotations.insert("org.erofs.chunk-index.range".into(), image.len().to_string());
    write_layers(&fixture.path("annotated"), &[(annotated, &frames)], &[]);
    // Its index is of compressed chunks.
    write_layers(&fixture.path("plain"), &[(indexed, &plain)], std::slice::from_ref(&id));
    fixture.run(["ls", "oci-layout:plain"]).failed(3, &["chunk index", "compression 1"]);
    fixture.run(["diff", "oci-layout:plain", "rootfs", "-q"]).done();
    for dir in ["embedded", "apart", "annotated"] {
        let place = format!("oci-layout:{dir}");
        fixture.run(["unpack", &place, &format!("{dir}.out"), "-q"]).done();
        fixture.run(["diff", &format!("{dir}.out"), "rootfs", "-q"]).done();
        // As a whole, it is the same.
        fixture.run(["diff", &place, "rootfs", "-q"]).done();
    }
    write_layers(&fixture.path("false"), &[(layer.clone(), &blob)], std::slice::from_ref(&layer.digest));
    fixture.run(["pack", "oci-layout:false", "false.erofs"]).failed(3, &["decoded layer", "digest"]);
    // Chunks are compared with their checksums, the index with its digest.
    let path = fixture.path(&format!("embedded/{}", layer.digest.blob_path()));
    let mut damaged = blob.clone();
    damaged[2 << 20] ^= 1;
    std::fs::write(&path, &damaged).unwrap();
    fixture.run(["cat", "oci-layout:embedded", "etc/os-release"]).done();
    fixture.run(["cat", "oci-layout:embedded", "big"]).failed(3, &["chunk 1", "checksum"]);
    damaged[2 << 20] ^= 1;
    damaged[frames.len() + 50] ^= 1;
    std::fs::write(&path, &damaged).unwrap();
    fixture.run(["ls", "oci-layout:embedded"]).failed(3, &["chunk index", "its digest is"]);
    let mut other = apart;
    other.annotations.insert("org.erofs.chunk-index.target".into(), id.to_string());
    let layers = [(Descriptor::of(media, &frames), &frames[..]), (other, &index[..])];
    write_layers(&fixture.path("other"), &layers, &[]);
    fixture.run(["ls", "oci-layout:other"]).failed(3, &["chunk index", "the layer before it"]);
    // Of a registry, no more is fetched than the chunks that are read.
    let manifest = manifest(&fixture.path("embedded")).to_string();
    let server = RangeServer::with(blob.clone(), move |request| {
        let answer = || Reply::Status(200, vec![], manifest.clone());
        request.path.contains("/manifests/").then(answer).unwrap_or(Reply::Right)
    });
    let url = server.url("/box:v1").replace("http://", "oci://");
    let run = fixture.run(["cat", "--stats", &url, "etc/os-release"]);
    assert_eq!((run.code, run.text()), (Some(0), "NAME=example\n"), "{}", run.stderr);
    let stats: serde_json::Value = serde_json::from_str(run.stderr.lines().last().unwrap()).unwrap();
    assert!(stats["remote_bytes"].as_u64().unwrap() < 3 << 20, "{stats} of {}", blob.len());
}

#[test]
fn equal_inode_numbers_of_layers_are_told_apart() {
    let layer =
        |first, second| Layer::tar("", &[(first, "x"), (second, if first == "a" { "=a" } else { "=c" })]);
    let image = merged(&converted(&[layer("a", "b"), layer("c", "d")]));
    let number = |path: &str| {
        let inode = image.volume().inode(image.find(path).unwrap()).unwrap();
        assert_eq!(inode.links, 2, "{path}");
        inode.number
    };
    assert_eq!((number("a"), number("c")), (number("b"), number("d")));
    assert_ne!(number("a"), number("c"));
}
