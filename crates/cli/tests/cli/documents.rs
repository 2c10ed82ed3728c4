//! Documents of `--json`: the output of every verb has exactly the keys and types of
//! docs/guide/json-schema.json.

use crate::fixture::Fixture;
use packfs_testkit::is_root;
use serde_json::Value;
use std::collections::BTreeSet;

/// Schema of all documents, and the keys that were seen.
struct Schema {
    documents: Value,
    seen: BTreeSet<String>,
}

impl Schema {
    fn read() -> Self {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/json-schema.json");
        let mut schema: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        Schema { documents: schema["$defs"].take(), seen: BTreeSet::new() }
    }

    /// Compares a document with the schema of this name.
    #[track_caller]
    fn check(&mut self, name: &str, document: &Value) {
        let faults = self.faults(document, &self.documents[name].clone(), name);
        assert_eq!(faults, [""; 0], "{document:#}");
    }

    fn faults(&mut self, value: &Value, schema: &Value, place: &str) -> Vec<String> {
        let mut faults = Vec::new();
        if !has_type(value, &schema["type"]) {
            faults.push(format!("{place} is {value}, not {}", schema["type"]));
        }
        if schema.get("const").is_some_and(|wanted| wanted != value) {
            faults.push(format!("{place} is {value}, not {}", schema["const"]));
        }
        for element in value.as_array().into_iter().flatten() {
            faults.extend(self.faults(element, &schema["items"], &format!("{place}[]")));
        }
        if value.is_object() && schema["additionalProperties"] != true {
            faults.extend(self.faults_of_keys(value, schema, place));
        }
        faults
    }

    fn faults_of_keys(&mut self, value: &Value, schema: &Value, place: &str) -> Vec<String> {
        let (mut faults, mut properties) = (Vec::new(), schema["properties"].clone());
        let mut required = schema["required"].as_array().cloned().unwrap_or_default();
        let variants = schema["oneOf"].as_array().into_iter().flatten();
        let is_it = |variant: &&Value| variant["properties"]["what"]["const"] == value["what"];
        if let Some(variant) = variants.clone().find(is_it) {
            let further = variant["properties"].as_object().unwrap().clone();
            self.seen.insert(format!("{place}.what={}", value["what"].as_str().unwrap()));
            properties.as_object_mut().unwrap().extend(further);
            required.extend(variant["required"].as_array().unwrap().iter().cloned());
        } else if variants.count() > 0 {
            faults.push(format!("{place} is none of the variants"));
        }
        for key in required.iter().map(|key| key.as_str().unwrap()) {
            if value.get(key).is_none() {
                faults.push(format!("{place}.{key} is missing"));
            }
        }
        for (key, found) in value.as_object().unwrap() {
            let place = format!("{place}.{key}");
            match properties.get(key) {
                Some(property) => faults.extend(self.faults(found, property, &place)),
                None => faults.push(format!("{place} is not in the schema")),
            }
            self.seen.insert(place);
        }
        faults
    }

    /// Returns the keys and variants of all objects that were not seen, but for keys of variants
    /// and of names that are not UTF-8.
    fn unseen(&self) -> Vec<String> {
        fn keys(schema: &Value, place: &str, found: &mut Vec<String>) {
            for (key, property) in schema["properties"].as_object().into_iter().flatten() {
                let is_bytes = property["description"].as_str().is_some_and(|it| it.contains("not UTF-8"));
                if !is_bytes {
                    found.push(format!("{place}.{key}"));
                }
                keys(property, &format!("{place}.{key}"), found);
            }
            for variant in schema["oneOf"].as_array().into_iter().flatten() {
                found.push(format!(
                    "{place}.what={}",
                    variant["properties"]["what"]["const"].as_str().unwrap()
                ));
            }
            if let Some(items) = schema.get("items") {
                keys(items, &format!("{place}[]"), found);
            }
        }
        let mut found = Vec::new();
        for (name, schema) in self.documents.as_object().unwrap() {
            keys(schema, name, &mut found);
        }
        found.retain(|place| !self.seen.contains(place));
        found
    }
}

fn has_type(value: &Value, types: &Value) -> bool {
    let is = |name: &Value| match name.as_str() {
        Some("null") => value.is_null(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_u64() || value.is_i64(),
        Some("number") => value.is_number(),
        Some("string") => value.is_string(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        // Values of facts may have any type.
        _ => true,
    };
    types.as_array().map_or_else(|| is(types), |types| types.iter().any(is))
}

#[test]
fn output_of_every_verb_has_the_keys_and_types_of_the_schema() {
    let (fixture, mut schema) = (Fixture::with_image(), Schema::read());
    std::os::unix::fs::symlink("x", fixture.path("rootfs/odd")).unwrap();
    let sparse = std::fs::File::create(fixture.path("rootfs/sparse")).unwrap();
    sparse.set_len(1 << 20).unwrap();
    let add = ["--add", "c /dev/console 0600 0 0 5 1", "--add", "file /x xattr.user.a=b data=\"\""];
    let pack = ["pack", "rootfs", "r.erofs", "--json", "--lossy", "-O", "device=blob"];
    schema.check("pack", &fixture.run([&pack[..], &add].concat()).json());
    // Holds neither times nor the owners of links.
    let losses = ["pack", "rootfs", "l.cramfs", "--lossy", "--json"];
    schema.check("pack", &serde_json::from_slice(&fixture.run(losses).stdout).unwrap());
    for image in ["root.sqfs", "r.erofs"] {
        let device: &[&str] = if image == "r.erofs" { &["--device", "blob"] } else { &[] };
        let mut check = |name, verb: &[&str]| {
            schema.check(name, &fixture.run([verb, &[image, "--json"], device].concat()).json());
        };
        check("ls", &["ls", "-R"]);
        check("info", &["info", "--space"]);
        check("check", &["check", "--repair-hints"]);
        check("digest", &["digest", "--depth", "1"]);
    }
    let paths = ["/", "x", "dev/console", "sparse", "usr/bin/tool", "odd"];
    let stat = ["stat", "r.erofs", "--device", "blob", "--json", "--extents"];
    schema.check("stat", &fixture.run([&stat[..], &paths].concat()).json());
    schema.check("info-scan", &fixture.run(["info", "--scan", "--json", "root.sqfs"]).json());
    let compression = ["info", "--compression", "--json", "root.sqfs", "rootfs"];
    schema.check("info-compression", &fixture.run(compression).json());
    schema.check("unpack", &fixture.run(["unpack", "root.sqfs", "out", "--json"]).json());
    schema.check("merge", &fixture.run(["merge", "root.sqfs", "-o", "m.sqfs", "--json"]).json());
    let differences = fixture.run(["diff", "root.sqfs", "rootfs", "--json"]);
    schema.check("diff", &serde_json::from_slice(&differences.stdout).unwrap());
    every_difference(&fixture, &mut schema);
    let digest = fixture.run(["digest", "root.sqfs", "-q"]).text().split("  ").next().unwrap().to_owned();
    schema.check("digest", &fixture.run(["digest", "--json", "--check", &digest, "root.sqfs"]).json());
    schema.check("bug-report", &fixture.run(["bug-report", "--json"]).json());
    integrity(&fixture, &mut schema);
    shards(&fixture, &mut schema);
    if is_root() {
        mounts(&fixture, &mut schema);
    }
    // These need failures, or an image in another.
    let rare = [
        "stat[].extents[].stored_bytes",
        "info.within[]",
        "pack.skipped",
        "unpack.skipped",
        "unpack.not_restored[]",
        "check.recovery.error",
    ];
    let mut unseen = schema.unseen();
    unseen.retain(|place| !rare.iter().any(|rare| place.starts_with(rare)));
    unseen.retain(|place| is_root() || !place.starts_with("mount-list"));
    assert_eq!(unseen, [""; 0]);
}

/// Compares two images that differ in every way.
fn every_difference(fixture: &Fixture, schema: &mut Schema) {
    let pack = |image: &str, entries: &[&str]| {
        let add = entries.iter().flat_map(|entry| ["--add", entry]);
        let args = ["pack", "rootfs", image, "-q", "--mtime", "0", "--lossy"];
        fixture.run(args.into_iter().chain(add).collect::<Vec<_>>()).done();
    };
    let both = ["file /one data=x", "file /two data=x"];
    let a = [
        "file /only data=x",
        "d /type 0755 0 0",
        "file /size data=x",
        "file /contents data=x",
        "file /mode mode=0600 data=x",
        "file /owner uid=1 data=x",
        "file /mtime mtime=1 data=x",
        "c /device 0600 0 0 5 1",
        "l /target 0777 0 0 x",
        "h /link /one",
        "file /xattr xattr.user.a=b data=x",
    ];
    let b = [
        "file /other data=x",
        "file /type data=x",
        "file /size data=xy",
        "file /contents data=y",
        "file /mode mode=0644 data=x",
        "file /owner uid=2 data=x",
        "file /mtime mtime=2 data=x",
        "c /device 0600 0 0 5 2",
        "l /target 0777 0 0 y",
        "h /link /two",
        "file /xattr xattr.user.a=c data=x",
    ];
    pack("a.erofs", &[&both[..], &a].concat());
    pack("b.erofs", &[&both[..], &b].concat());
    schema.check("merge", &fixture.run(["merge", "root.sqfs", "-o", "m.sqfs", "--json"]).json());
    let differences = fixture.run(["diff", "a.erofs", "b.erofs", "--json"]);
    schema.check("diff", &serde_json::from_slice(&differences.stdout).unwrap());
}

fn integrity(fixture: &Fixture, schema: &mut Schema) {
    schema.check("protect", &fixture.run(["protect", "root.sqfs", "--json"]).json());
    schema.check("check", &fixture.run(["check", "--repair-hints", "root.sqfs", "--json"]).json());
    schema.check("repair", &fixture.run(["repair", "--dry-run", "root.sqfs", "--json"]).json());
    schema.check("verity", &fixture.run(["verity", "root.sqfs", "--hash-file", "tree", "--json"]).json());
    let verify = ["verity", "--verify", "root.sqfs", "--hash-file", "tree", "--json"];
    schema.check("verity-verify", &fixture.run(verify).json());
    schema.check("verity-fs", &fixture.run(["verity", "--fs", "root.sqfs", "--json"]).json());
    fixture.run(["sign", "--new-key", "key", "--no-password", "-q"]).done();
    fixture.run(["sign", "-s", "key", "root.sqfs", "-q"]).done();
    schema.check("verify", &fixture.run(["verify", "-p", "key.pub", "root.sqfs", "--json"]).json());
    let server = packfs_testkit::RangeServer::new(fixture.bytes("root.sqfs"));
    fixture.run(["ls", &server.url("/image")]).done();
    schema.check("cache", &fixture.run(["cache", "ls", "--json"]).json());
    schema.check("cache", &fixture.run(["cache", "verify", "--json"]).json());
    fixture.run(["pack", "root.sqfs", "root.erofs", "-q"]).done();
    schema.check("composefs-pack", &fixture.run(["composefs", "pack", "rootfs", "a.cfs", "--json"]).json());
    schema.check("oci", &fixture.run(["oci", "push", "root.erofs", "oci-layout:layout:v1", "--json"]).json());
    std::fs::create_dir(fixture.path("index")).unwrap();
    crate::oci::index_of(fixture, "index", &[("layout", "linux/amd64")]);
    for layout in ["layout", "index"] {
        schema.check("oci-ls", &fixture.run(["oci", "ls", layout, "--json"]).json());
    }
    // A finding that is no failure: a hash tree at the end of the image.
    fixture.run(["verity", "root.sqfs", "-q"]).done();
    schema.check("check", &fixture.run(["check", "root.sqfs", "--json"]).json());
}

fn shards(fixture: &Fixture, schema: &mut Schema) {
    let plan = ["plan", "rootfs", "--shards", "2", "--out", "plan", "--emit", "slurm", "--json"];
    schema.check("plan", &fixture.run(plan).json());
    let pack = |index: &str| fixture.run(["pack-shard", "plan", index, "--to", "store", "--json"]);
    schema.check("pack-shard", &pack("0").json());
    schema.check("pack-shard", &pack("1").json());
    fixture.run(["merge", "plan", "--from", "store", "-o", "m.sqfs", "-q"]).done();
    let verify = ["verify", "plan", "--from", "store", "--image", "m.sqfs", "--json"];
    schema.check("verify-plan", &fixture.run(verify).json());
    fixture.write("rootfs/etc/os-release", "another");
    std::fs::remove_dir_all(fixture.path("store")).unwrap();
    schema.check("pack-shard", &serde_json::from_slice(&pack("0").stdout).unwrap());
}

fn mounts(fixture: &Fixture, schema: &mut Schema) {
    std::fs::create_dir(fixture.path("mnt")).unwrap();
    fixture.run(["mount", "--fuse", "root.sqfs", "mnt"]).done();
    let list = fixture.run(["mount", "--list", "--json"]);
    fixture.run(["umount", "mnt"]).done();
    schema.check("mount-list", &list.json());
}
