//! OCI image layouts made by hand.

use packfs::oci::{Descriptor, Digest};
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;

pub const TAR: &str = "application/vnd.oci.image.layer.v1.tar";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// A layer: media type, blob, and the digest of the decoded blob.
pub struct Layer {
    pub media: String,
    pub blob: Vec<u8>,
    pub diff_id: Digest,
}

impl Layer {
    /// A tar archive, compressed as the end of its media type says.
    pub fn tar(compression: &str, members: &[(&str, &str)]) -> Self {
        let tar = tar(members);
        let diff_id = Digest::of(&tar);
        let blob = match compression {
            "+gzip" => {
                let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                writer.write_all(&tar).unwrap();
                writer.finish().unwrap()
            }
            "+zstd" => zstd::encode_all(&*tar, 1).unwrap(),
            _ => tar,
        };
        Layer { media: format!("{TAR}{compression}"), blob, diff_id }
    }
}

/// Returns an archive: a name with a slash at its end is a directory, contents that begin with `=`
/// are the target of a hard link, with `->` that of a symbolic link.
pub fn tar(members: &[(&str, &str)]) -> Vec<u8> {
    let mut tar = Vec::new();
    for (name, text) in members {
        let (kind, link, body) = match text.strip_prefix('=') {
            Some(target) => (b'1', target, ""),
            None if text.starts_with("->") => (b'2', &text[2..], ""),
            None if name.ends_with('/') => (b'5', "", ""),
            None => (b'0', "", *text),
        };
        let mut header = [0; 512];
        let mut put = |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
        put(0, name);
        put(100, if kind == b'5' { "0000750" } else { "0000640" });
        put(108, "0000001");
        put(116, "0000002");
        put(124, &format!("{:011o}", body.len()));
        put(136, "00000001750");
        put(148, "        ");
        put(157, link);
        put(257, "ustar\u{0}00");
        header[156] = kind;
        let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        tar.extend(header);
        tar.extend(body.as_bytes());
        tar.resize(tar.len().next_multiple_of(512), 0);
    }
    tar.resize(tar.len() + 1024, 0);
    tar
}

/// The layers of an image with whiteouts, an opaque directory, and a directory that the upper layer
/// does not describe.
pub fn layers() -> Vec<Layer> {
    let lower = [
        ("bin/", ""),
        ("bin/tool", "tool"),
        ("bin/same", "=bin/tool"),
        ("d/", ""),
        ("d/x", "x"),
        ("etc/", ""),
        ("etc/a", "1"),
        ("etc/b", "b"),
        ("gone/", ""),
        ("gone/x", "x"),
    ];
    let upper = [
        ("d/", ""),
        ("d/.wh..wh..opq", ""),
        ("d/z", "z"),
        ("etc/a", "2"),
        ("etc/.wh.b", ""),
        (".wh.gone", ""),
    ];
    vec![
        Layer::tar("+gzip", &lower),
        Layer::tar("+zstd", &upper),
        Layer::tar("", &[("etc/", ""), ("etc/c", "c")]),
    ]
}

/// Tree of the layers: paths with modes, and contents of files.
pub const MERGED: [&str; 9] = [
    "bin 750",
    "bin/same 640 tool",
    "bin/tool 640 tool",
    "d 750",
    "d/z 640 z",
    "etc 750",
    "etc/a 640 2",
    "etc/c 640 c",
    "/ 755",
];

/// Returns the files of a layout with one image.
pub fn files(layers: &[Layer]) -> Vec<(String, Vec<u8>)> {
    let ids: Vec<&Digest> = layers.iter().map(|layer| &layer.diff_id).collect();
    let config = json!({"os": "linux", "architecture": "amd64", "config": {"Cmd": ["sh"]},
        "rootfs": {"type": "layers", "diff_ids": ids}});
    let config = config.to_string().into_bytes();
    let described: Vec<Descriptor> =
        layers.iter().map(|layer| Descriptor::of(&layer.media, &layer.blob)).collect();
    let manifest = json!({"schemaVersion": 2, "mediaType": MANIFEST,
        "config": Descriptor::of(CONFIG, &config), "layers": described});
    let manifest = manifest.to_string().into_bytes();
    let index = json!({"schemaVersion": 2, "manifests": [Descriptor::of(MANIFEST, &manifest)]});
    let blobs = layers.iter().map(|layer| layer.blob.clone()).chain([config, manifest]);
    let mut files: Vec<(String, Vec<u8>)> = blobs.map(|blob| (Digest::of(&blob).blob_path(), blob)).collect();
    files.push(("index.json".into(), index.to_string().into_bytes()));
    files.push(("oci-layout".into(), br#"{"imageLayoutVersion":"1.0.0"}"#.to_vec()));
    files
}

/// Writes a layout with one image.
pub fn write(dir: &Path, layers: &[Layer]) {
    for (name, bytes) in files(layers) {
        let path = dir.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
}

/// Returns the manifest of the image in a layout.
pub fn manifest(dir: &Path) -> Value {
    let read =
        |name: &str| -> Value { serde_json::from_slice(&std::fs::read(dir.join(name)).unwrap()).unwrap() };
    let digest = read("index.json")["manifests"][0]["digest"].as_str().unwrap().to_owned();
    read(&digest.parse::<Digest>().unwrap().blob_path())
}
