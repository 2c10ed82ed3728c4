//! Entries that independent readers found in an image.

use packfs_core::{DeviceNumber, FileType};
use packfs_testkit::{Row, Snapshot};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Returns the folder of the images.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/legacy")
}

/// One image and what is known of it.
pub struct Manifest {
    /// Its name without extensions.
    pub name: String,
    /// The file it is in.
    pub file: String,
    /// Length and SHA-256 of the disk in it, if it is a container.
    pub disk: Option<(u64, Vec<u8>)>,
    entries: Vec<Value>,
}

/// All of them, by name.
pub fn manifests() -> Vec<Manifest> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder()).unwrap().map(|it| it.unwrap().path()).collect();
    paths.sort();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.iter().filter_map(|path| Manifest::read(path)).collect()
}

impl Manifest {
    /// `None` for what describes no image of its own: a tree, or the inside of another image.
    fn read(path: &Path) -> Option<Manifest> {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let value: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let file = value["file"].as_str().unwrap().to_owned();
        if name.starts_with("tree-") || !folder().join(&file).exists() {
            assert!(name.starts_with("tree-") || name.contains("-inner-"), "{name} has no image");
            return None;
        }
        let disk = value["device_size"].as_u64().map(|len| (len, unhex(&value["device_sha256"])));
        let entries = value["entries"].as_array().cloned().unwrap_or_default();
        Some(Manifest { name, file, disk, entries })
    }

    /// True if it lists the files of the image.
    pub fn has_entries(&self) -> bool {
        !self.entries.is_empty()
    }

    /// True if its writer damaged it.
    pub fn is_damaged(&self) -> bool {
        self.entries.iter().any(|entry| !entry["damaged"].is_null())
    }

    /// The image itself, unpacked into `folder` if it is kept compressed.
    pub fn unpacked_image(&self, folder: &Path) -> PathBuf {
        let path = self::folder().join(&self.file);
        if path.extension().is_none_or(|extension| extension != "zst") {
            return path;
        }
        let unpacked = folder.join(path.file_stem().unwrap());
        let bytes = zstd::decode_all(std::fs::File::open(path).unwrap()).unwrap();
        std::fs::write(&unpacked, bytes).unwrap();
        unpacked
    }

    /// Panics unless the same names are in both, and all that the manifest says of them is so.
    #[track_caller]
    pub fn assert_holds(&self, found: &Snapshot, how: &str) {
        let expected: BTreeMap<Vec<u8>, &Value> =
            self.entries.iter().map(|entry| (bytes_of(entry, "path"), entry)).collect();
        let mut faults: Vec<String> = Vec::new();
        for path in found.0.keys().filter(|path| !expected.contains_key(*path)) {
            faults.push(format!("{:?} is not in the manifest", String::from_utf8_lossy(path)));
        }
        for (path, entry) in expected {
            let fault = match found.0.get(&path) {
                Some(row) => self.fault(row, entry, found),
                None => "is missing".into(),
            };
            if !fault.is_empty() {
                faults.push(format!("{:?} {fault}", String::from_utf8_lossy(&path)));
            }
        }
        faults.truncate(20);
        assert!(faults.is_empty(), "{}, {how}:\n{}", self.name, faults.join("\n"));
    }

    /// Returns the differences from `entry`; empty if there are none.
    fn fault(&self, row: &Row, entry: &Value, all: &Snapshot) -> String {
        let mut fault = String::new();
        let mut expect = |what: &str, holds: bool| {
            if !holds {
                fault += &format!("{what} is not {}; ", entry[what]);
            }
        };
        let number = |what: &str| entry[what].as_u64();
        let file_type = match entry["type"].as_str().unwrap() {
            "file" => FileType::File,
            "dir" => FileType::Directory,
            "symlink" => FileType::Symlink,
            "char" => FileType::CharDevice,
            "block" => FileType::BlockDevice,
            "fifo" => FileType::Fifo,
            "socket" => FileType::Socket,
            other => panic!("type {other:?} in {}", self.name),
        };
        expect("type", row.file_type == file_type);
        if let Some(mode) = entry["mode"].as_str().filter(|_| file_type != FileType::Symlink) {
            expect("mode", row.mode == u32::from_str_radix(mode, 8).unwrap());
        }
        expect("uid", number("uid").is_none_or(|uid| u64::from(row.owner.0) == uid));
        expect("gid", number("gid").is_none_or(|gid| u64::from(row.owner.1) == gid));
        expect("mtime", entry["mtime"].as_i64().is_none_or(|mtime| row.mtime.seconds == mtime));
        if file_type != FileType::Directory {
            expect("nlink", number("nlink").is_none_or(|nlink| row.links == nlink));
            expect("size", number("size").is_none_or(|size| row.len == size));
        }
        if entry["sha256"].is_string() {
            expect("sha256", row.content == unhex(&entry["sha256"]));
        }
        if entry["target"].is_string() {
            expect("target", row.content == bytes_of(entry, "target"));
        }
        if let Some(prefix) = entry["target_prefix"].as_str() {
            expect("target_prefix", row.content.starts_with(prefix.as_bytes()));
        }
        if let Some([major, minor]) = entry["rdev"].as_array().map(Vec::as_slice) {
            let number = |value: &Value| value.as_u64().unwrap() as u32;
            let device = DeviceNumber { major: number(major), minor: number(minor) };
            expect("rdev", row.device == Some(device));
        }
        if let Some(xattrs) = entry["xattrs_hex"].as_object() {
            let expected: BTreeMap<Vec<u8>, Vec<u8>> =
                xattrs.iter().map(|(name, value)| (name.clone().into_bytes(), unhex(value))).collect();
            let found: BTreeMap<Vec<u8>, Vec<u8>> =
                row.xattrs.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
            expect("xattrs_hex", found == expected);
        }
        if let Some(other) = entry["same_inode_as"].as_str() {
            let same = all.0.get(other.as_bytes()).is_some_and(|other| other.first_name == row.first_name);
            expect("same_inode_as", same);
        }
        fault
    }
}

/// A name or a target, which need not be UTF-8.
fn bytes_of(entry: &Value, key: &str) -> Vec<u8> {
    match &entry[format!("{key}_hex")] {
        hex @ Value::String(_) => unhex(hex),
        _ => entry[key].as_str().unwrap().as_bytes().to_vec(),
    }
}

fn unhex(value: &Value) -> Vec<u8> {
    let digits = value.as_str().unwrap().as_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}
