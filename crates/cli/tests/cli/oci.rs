//! OCI images: packed, read, pushed, and converted.

use crate::fixture::{Fixture, Run};
use crate::oci_made::{Layer, MERGED, TAR, files, layers, manifest, tar, write};
use packfs::oci::Digest;
use packfs_testkit::{RangeServer, Reply};
use serde_json::json;

/// Returns paths, modes, and contents of an image in the folder.
fn listed(fixture: &Fixture, image: &str) -> Vec<String> {
    let opened = packfs::open(fixture.path(image)).unwrap();
    let mut rows: Vec<String> = opened
        .walk()
        .map(|entry| {
            let entry = entry.unwrap();
            let text = match entry.inode.kind.file_type() {
                packfs::FileType::File => {
                    format!(" {}", String::from_utf8(opened.read(&entry.path).unwrap()).unwrap())
                }
                _ => String::new(),
            };
            format!("{} {:o}{text}", entry.path, entry.inode.meta.mode)
        })
        .collect();
    rows.sort_by_key(|row| (row.starts_with("/ "), row.clone()));
    rows
}

/// Returns the digests that `digest` prints for sources.
fn digests(fixture: &Fixture, sources: &[&str]) -> Vec<String> {
    let run = fixture.run([&["digest"][..], sources].concat());
    run.done().text().lines().map(|line| line.split(' ').next().unwrap().to_owned()).collect()
}

fn made(layers: &[Layer]) -> Fixture {
    let fixture = Fixture::new();
    write(&fixture.path("layout"), layers);
    fixture
}

#[test]
fn layers_become_one_image_with_whiteouts_applied() {
    let fixture = made(&layers());
    for image in ["all.sqfs", "all.erofs"] {
        fixture.run(["pack", "oci-layout:layout", image, "-q"]).done();
        assert_eq!(listed(&fixture, image), MERGED, "{image}");
    }
    let run = fixture.run(["pack", "layout", "plain.sqfs", "-q"]);
    assert!(run.stderr.contains("OCI image layout") && run.code == Some(0), "{}", run.stderr);
    assert_eq!(listed(&fixture, "plain.sqfs"), MERGED);
    fixture.run(["pack", "layout", "file.sqfs", "--as-file", "-q"]).done();
    fixture.run(["cat", "file.sqfs", "layout/oci-layout"]).done();
    fixture.run(["diff", "oci-layout:layout", "all.erofs", "-q"]).done();
}

#[test]
fn hard_links_lead_to_files_of_lower_layers() {
    let fixture = made(&[
        Layer::tar("", &[("d/", ""), ("d/a", "1"), ("b", "b")]),
        Layer::tar(
            "+gzip",
            &[("e/", ""), ("e/a", "=d/a"), ("d/", ""), ("d/.wh.a", ""), ("f", "=b"), ("g", "=f")],
        ),
    ]);
    let tree = ["b 640 b", "d 750", "e 750", "e/a 640 1", "f 640 b", "g 640 b", "/ 755"];
    fixture.run(["pack", "oci-layout:layout", "all.erofs", "-q"]).done();
    assert_eq!(listed(&fixture, "all.erofs"), tree);
    let links = fixture.run(["stat", "--json", "all.erofs", "b"]).json()[0]["links"].clone();
    assert_eq!(links, 3);
    fixture.run(["oci", "convert", "oci-layout:layout", "oci-layout:out", "-q"]).done();
    fixture.run(["pack", "oci-layout:out", "converted.erofs", "-q"]).done();
    assert_eq!(listed(&fixture, "converted.erofs"), tree);
    let fixture = made(&[Layer::tar("", &[("a", "1")]), Layer::tar("", &[("b", "=none")])]);
    let fault = ["layer 2 of 2", "hard link \"b\" to \"none\""];
    fixture.run(["pack", "oci-layout:layout", "all.erofs", "-q"]).failed(3, &fault);
    fixture.run(["oci", "convert", "oci-layout:layout", "oci-layout:out", "-q"]).failed(3, &fault);
}

#[test]
fn archives_hold_images_too() {
    let layers = layers();
    let fixture = made(&layers);
    let owned = files(&layers);
    // The archive of a layout, by the tool that users take.
    let status = std::process::Command::new("tar")
        .args(["cf", "oci.tar", "-C", "layout", "."])
        .current_dir(fixture.path(""))
        .status();
    assert!(status.unwrap().success());
    let config = &owned.iter().find(|(_, bytes)| bytes.starts_with(b"{\"os\"")).unwrap().1;
    fixture.write("saved/config.json", config);
    let names: Vec<String> = (0..layers.len()).map(|index| format!("{index}.tar")).collect();
    for (name, layer) in names.iter().zip(&layers) {
        std::fs::write(fixture.path("saved").join(name), &layer.blob).unwrap();
    }
    let list = json!([{"Config": "config.json", "RepoTags": ["local/box:v1"], "Layers": names}]);
    fixture.write("saved/manifest.json", list.to_string());
    let status = std::process::Command::new("tar")
        .args(["cf", "docker.tar", "-C", "saved", "."])
        .current_dir(fixture.path(""))
        .status();
    assert!(status.unwrap().success());
    let found = digests(
        &fixture,
        &["oci-layout:layout", "oci-archive:oci.tar", "docker-archive:docker.tar:local/box:v1"],
    );
    assert_eq!(found[0], found[1]);
    assert_eq!(found[0], found[2]);
    fixture.run(["pack", "docker-archive:docker.tar:v2", "a.sqfs"]).failed(1, &["local/box:v1"]);
    fixture.run(["pack", "oci-archive:none.tar", "a.sqfs"]).failed(1, &["none.tar"]);
}

#[test]
fn converted_layers_are_the_same_tree() {
    let fixture = made(&layers());
    let convert = ["oci", "convert", "oci-layout:layout", "oci-layout:out:v1", "-q"];
    fixture.run(convert).done();
    let first = manifest(&fixture.path("out"));
    let are_of = |manifest: &serde_json::Value, media: &str| {
        manifest["layers"].as_array().unwrap().iter().all(|layer| layer["mediaType"] == media)
    };
    assert!(are_of(&first, "application/vnd.erofs.layer.v1"));
    let found = digests(&fixture, &["oci-layout:layout", "oci-layout:out"]);
    assert_eq!(found[0], found[1]);
    let config: Digest = first["config"]["digest"].as_str().unwrap().parse().unwrap();
    let config: serde_json::Value =
        serde_json::from_slice(&fixture.bytes(&format!("out/{}", config.blob_path()))).unwrap();
    assert_eq!((&config["config"]["Cmd"][0], &config["os.features"][0]), (&json!("sh"), &json!("erofs")));
    // The same source gives the same bytes, and layers that are images stay.
    fixture
        .run(["oci", "convert", "oci-layout:layout", "oci-layout:again", "--draft-media-type", "-q"])
        .done();
    assert!(are_of(&manifest(&fixture.path("again")), "application/vnd.erofs"));
    fixture.run(["oci", "convert", "oci-layout:out", "oci-layout:third", "-q"]).done();
    let digests_of = |dir: &str| {
        let layers = manifest(&fixture.path(dir))["layers"].clone();
        layers.as_array().unwrap().iter().map(|it| it["digest"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(digests_of("out"), digests_of("again"));
    assert_eq!(manifest(&fixture.path("third")), first);
    fixture.run(["ls", "oci-layout:out"]).done();
    fixture.run(["ls", "oci-layout:layout"]).failed(4, &["tar archives", "packfs pack oci-layout:layout"]);
}

#[test]
fn a_pushed_image_has_the_configuration_of_a_file_or_of_another_image() {
    let fixture = Fixture::with_tree();
    fixture.run(["pack", "rootfs", "root.erofs", "-q"]).done();
    let config_of = |dir: &str| -> serde_json::Value {
        let digest: Digest =
            manifest(&fixture.path(dir))["config"]["digest"].as_str().unwrap().parse().unwrap();
        serde_json::from_slice(&fixture.bytes(&format!("{dir}/{}", digest.blob_path()))).unwrap()
    };
    let push = |dir: &str, more: &[&str]| {
        let place = format!("oci-layout:{dir}");
        fixture.run(
            [&["oci", "push", "root.erofs", &place, "-q", "--platform", "linux/arm64"][..], more].concat(),
        )
    };
    let options = ["--entrypoint", r#"["/bin/sh","-c"]"#, "--cmd", "true", "--env", "A=1", "--env", "B=x=y"];
    push("a", &[&options[..], &["--user", "7:8", "--workdir", "/srv", "--label", "by=me"]].concat()).done();
    let wanted = json!({"Entrypoint": ["/bin/sh", "-c"], "Cmd": ["true"], "Env": ["A=1", "B=x=y"],
        "User": "7:8", "WorkingDir": "/srv", "Labels": {"by": "me"}});
    let found = config_of("a");
    assert_eq!((&found["config"], &found["architecture"]), (&wanted, &json!("arm64")));
    fixture.run(["oci", "push", "root.erofs", "oci-layout:b", "-q", "--like", "a", "--env", "A=2"]).done();
    let like = config_of("b");
    assert_eq!(like["config"]["Env"], json!(["B=x=y", "A=2"]));
    assert_eq!((&like["config"]["Cmd"], &like["architecture"]), (&json!(["true"]), &json!("arm64")));
    let text = json!({"os": "linux", "architecture": "s390x", "history": [{}], "config": {"Cmd": ["x"]},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:none"]}});
    fixture.write("c.json", text.to_string());
    fixture.run(["oci", "push", "root.erofs", "oci-layout:c", "-q", "--config", "c.json"]).done();
    let found = config_of("c");
    assert_eq!((&found["config"]["Cmd"], &found["architecture"]), (&json!(["x"]), &json!("s390x")));
    assert_eq!((&found["history"], &found["rootfs"]), (&json!(null), &config_of("b")["rootfs"]));
    assert_eq!(push("d", &["--cmd", "two words"]).code, Some(2));
    assert_eq!(push("d", &["--env", "none"]).code, Some(2));
}

#[test]
fn images_are_listed_and_pulled_as_they_are() {
    let fixture = made(&layers());
    write(&fixture.path("arm"), &[Layer::tar("+gzip", &[("arm", "arm")])]);
    std::fs::create_dir(fixture.path("index")).unwrap();
    index_of(&fixture, "index", &[("layout", "linux/amd64"), ("arm", "linux/arm64")]);
    let rows = fixture.run(["oci", "ls", "--json", "oci-layout:index"]).json();
    let platforms: Vec<&str> =
        rows.as_array().unwrap().iter().map(|row| row["platform"].as_str().unwrap()).collect();
    assert_eq!(platforms, ["linux/amd64", "linux/arm64"]);
    // One platform, all of them, and archives that other programs read.
    fixture.run(["oci", "pull", "oci-layout:layout", "oci-layout:copy:v1", "-q"]).done();
    assert_eq!(manifest(&fixture.path("copy")), manifest(&fixture.path("layout")));
    let listed_copy = fixture.run(["oci", "ls", "copy"]);
    assert!(listed_copy.done().text().starts_with("v1  -  sha256:"), "{}", listed_copy.text());
    fixture.run(["oci", "pull", "--all-platforms", "oci-layout:index", "oci-layout:all", "-q"]).done();
    assert_eq!(manifest(&fixture.path("all")), manifest(&fixture.path("index")));
    let arm = ["oci", "pull", "oci-layout:index", "oci-layout:one", "-q", "--platform", "linux/arm64"];
    fixture.run(arm).done();
    assert_eq!(manifest(&fixture.path("one")), manifest(&fixture.path("arm")));
    for (kind, file) in [("docker-archive", "d.tar"), ("oci-archive", "o.tar")] {
        let target = format!("{kind}:{file}:local/box:v1");
        fixture.run(["oci", "pull", "oci-layout:layout", &target, "-q"]).done();
        fixture.run(["pack", &target, "all.erofs", "-q"]).done();
        assert_eq!(listed(&fixture, "all.erofs"), MERGED);
        let names = fixture.run(["oci", "ls", file]);
        assert!(names.done().text().starts_with("v1"), "{}", names.text());
        let listing =
            std::process::Command::new("tar").args(["tf", file]).current_dir(fixture.path("")).output();
        let listing = String::from_utf8(listing.unwrap().stdout).unwrap();
        assert!(listing.contains("manifest.json\n") && listing.contains("oci-layout\n"), "{listing}");
    }
    fixture.run(["oci", "ls", "oci-layout:copy:v2"]).failed(1, &["v1"]);
    fixture.run(["oci", "ls", "none"]).failed(2, &["no OCI image"]);
    // Blobs are compared with their digests.
    let blob = format!("layout/{}", Digest::of(&layers()[0].blob).blob_path());
    let mut bytes = fixture.bytes(&blob);
    bytes[9] ^= 1;
    fixture.write(&blob, bytes);
    fixture.run(["oci", "pull", "oci-layout:layout", "oci-layout:bad", "-q"]).failed(3, &["its digest is"]);
}

#[test]
fn archives_of_docker_save_are_recognized() {
    let layers = layers();
    let fixture = made(&layers);
    let config = files(&layers).into_iter().find(|(_, bytes)| bytes.starts_with(b"{\"os\"")).unwrap().1;
    fixture.write("saved/config.json", config);
    let names: Vec<String> = (0..layers.len()).map(|index| format!("{index}/layer.tar")).collect();
    for (name, layer) in names.iter().zip(&layers) {
        let path = fixture.path("saved").join(name);
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        std::fs::write(path, &layer.blob).unwrap();
    }
    let list = json!([{"Config": "config.json", "RepoTags": ["box:v1"], "Layers": names}]);
    fixture.write("saved/manifest.json", list.to_string());
    let made = "tar cf saved.tar -C saved . && gzip -k saved.tar && zstd -q saved.tar && tar cf layout.tar -C layout .";
    let status = std::process::Command::new("sh").args(["-c", made]).current_dir(fixture.path("")).status();
    assert!(status.unwrap().success());
    for name in ["saved.tar", "saved.tar.gz", "saved.tar.zst", "layout.tar"] {
        let run = fixture.run(["pack", name, "all.erofs", "-q"]);
        assert!(run.code == Some(0) && run.stderr.contains("archive of container images"), "{}", run.stderr);
        assert_eq!(listed(&fixture, "all.erofs"), MERGED, "{name}");
        fixture.run(["ls", name]).failed(4, &["tar archives", "packfs pack"]);
        fixture.run(["oci", "convert", name, &format!("oci-layout:{name}.out"), "-q"]).done();
    }
    // Other archives with such a file are archives.
    fixture.write("web.tar", tar(&[("manifest.json", "[]"), ("a.json", "{}")]));
    fixture.run(["pack", "web.tar", "web.erofs", "-q"]).done();
    assert_eq!(listed(&fixture, "web.erofs")[0], "a.json 640 {}");
    fixture.run(["pack", "all.erofs", "web.erofs", "x.erofs", "--merge"]).failed(2, &["packfs merge"]);
}

#[test]
fn a_symbolic_link_that_a_directory_replaces_is_told() {
    let fixture = made(&[
        Layer::tar("", &[("usr/", ""), ("usr/lib/", ""), ("lib", "->usr/lib")]),
        Layer::tar("", &[("lib/c.so", "c")]),
    ]);
    for args in [["pack", "oci-layout:layout", "all.erofs"], ["oci", "convert", "oci-layout:layout"]] {
        let args = if args[0] == "oci" { [&args[..], &["oci-layout:out"]].concat() } else { args.to_vec() };
        let run = fixture.run(&args);
        assert!(run.code == Some(0) && run.stderr.contains("replace symbolic links"), "{}", run.stderr);
        assert!(run.stderr.contains("\"lib\""), "{}", run.stderr);
    }
}

#[test]
fn directories_that_a_layer_only_implies_are_those_of_the_layers_below() {
    let fixture = made(&[
        Layer::tar("+gzip", &[("d/", ""), ("d/e/", ""), ("d/e/x", "x"), ("o/", ""), ("o/x", "x")]),
        Layer::tar("", &[("d/e/y", "y"), ("o/.wh..wh..opq", ""), ("o/y", "y"), ("new/dir/z", "z")]),
    ]);
    let told = "2 directories have no entry in the archive, or in any layer";
    let convert = fixture.run(["oci", "convert", "oci-layout:layout", "oci-layout:out"]);
    assert_eq!(convert.stderr.matches(told).count(), 1, "{}", convert.stderr);
    let layer = manifest(&fixture.path("out"))["layers"][1]["digest"].as_str().unwrap().to_owned();
    let layer = format!("out/{}", layer.parse::<Digest>().unwrap().blob_path());
    let modes = ["d 750", "d/e 750", "d/e/y 640 y", "new 755", "new/dir 755", "new/dir/z 640 z", "o 750"];
    assert_eq!(listed(&fixture, &layer)[..7], modes);
    let pack = fixture.run(["pack", "oci-layout:layout", "all.erofs"]);
    assert_eq!(pack.stderr.matches(told).count(), 1, "{}", pack.stderr);
    let found = digests(&fixture, &["oci-layout:out", "all.erofs"]);
    assert_eq!(found[0], found[1]);
    // Of a layer alone, the layers below are not known.
    fixture.write("l.tar", tar(&[("d/e/y", "y")]));
    let run = fixture.run(["pack", "l.tar", "l.erofs"]);
    assert!(run.code == Some(0) && run.stderr.contains("2 directories have no entry"), "{}", run.stderr);
    let mut command = fixture.command(["pack", "-q", "l.tar", "dated.erofs"]);
    assert!(command.env("SOURCE_DATE_EPOCH", "1234").status().unwrap().success());
    let opened = packfs::open(fixture.path("dated.erofs")).unwrap();
    let time = |path: &str| opened.volume().inode(opened.find(path).unwrap()).unwrap().meta.mtime.seconds;
    assert_eq!(["", "d", "d/e", "d/e/y"].map(time), [1234, 1234, 1234, 1000]);
}

/// Puts an index over images of layouts into a new layout.
pub fn index_of(fixture: &Fixture, dir: &str, images: &[(&str, &str)]) {
    let mut manifests = Vec::new();
    for (layout, platform) in images {
        let status = std::process::Command::new("cp")
            .args(["-r", &format!("{layout}/."), dir])
            .current_dir(fixture.path(""))
            .status();
        assert!(status.unwrap().success());
        let index: serde_json::Value =
            serde_json::from_slice(&fixture.bytes(&format!("{layout}/index.json"))).unwrap();
        let mut entry = index["manifests"][0].clone();
        let (os, architecture) = platform.split_once('/').unwrap();
        entry["platform"] = json!({"os": os, "architecture": architecture});
        entry["annotations"] = json!({"for": platform});
        manifests.push(entry);
    }
    let media = "application/vnd.oci.image.index.v1+json";
    let index = json!({"schemaVersion": 2, "mediaType": media, "manifests": manifests,
        "annotations": {"of": "all"}});
    let index = index.to_string().into_bytes();
    let described = packfs::oci::Descriptor::of(media, &index);
    fixture.write(&format!("{dir}/{}", described.digest.blob_path()), index);
    let outer = json!({"schemaVersion": 2, "manifests": [described]});
    fixture.write(&format!("{dir}/index.json"), outer.to_string());
}

#[test]
fn all_platforms_of_an_index_are_converted() {
    let fixture = made(&layers());
    write(&fixture.path("arm"), &[Layer::tar("+gzip", &[("arm", "arm")])]);
    std::fs::create_dir(fixture.path("index")).unwrap();
    let images = [("layout", "linux/amd64"), ("arm", "linux/arm64"), ("arm", "unknown/unknown")];
    index_of(&fixture, "index", &images);
    let convert =
        |arguments: &[&str]| fixture.run([&["oci", "convert", "oci-layout:index"][..], arguments].concat());
    let run = convert(&["oci-layout:out:v1", "--all-platforms"]).ended(0);
    assert!(run.text().contains("2 images, 4 layers"), "{}", run.text());
    assert!(run.stderr.contains("unknown/unknown"), "{}", run.stderr);
    let index = manifest(&fixture.path("out"));
    let entries = index["manifests"].as_array().unwrap();
    assert_eq!((entries.len(), &index["annotations"]["of"]), (2, &json!("all")));
    for (entry, architecture) in entries.iter().zip(["amd64", "arm64"]) {
        let wanted = json!({"os": "linux", "architecture": architecture, "os.features": ["erofs"]});
        assert_eq!(entry["platform"], wanted);
        assert_eq!(entry["annotations"], json!({"for": format!("linux/{architecture}")}));
    }
    let pack = |architecture: &str| {
        let platform = format!("linux/{architecture}");
        fixture.run(["pack", "oci-layout:out:v1", architecture, "-q", "--platform", &platform])
    };
    pack("amd64").done();
    assert_eq!(listed(&fixture, "amd64"), MERGED);
    pack("arm64").done();
    assert_eq!(listed(&fixture, "arm64"), ["arm 640 arm", "/ 755"]);
    pack("s390x").failed(1, &["linux/amd64", "linux/arm64"]);
    // One platform, and a reference to a single image.
    convert(&["oci-layout:one", "--platform", "linux/arm64", "-q"]).done();
    assert_eq!(manifest(&fixture.path("one"))["layers"].as_array().unwrap().len(), 1);
    fixture.run(["oci", "convert", "--all-platforms", "oci-layout:arm", "oci-layout:two", "-q"]).done();
    assert_eq!(manifest(&fixture.path("two")), manifest(&fixture.path("one")));
    assert_eq!(convert(&["oci-layout:x", "--all-platforms", "--platform", "linux/arm64"]).code, Some(2));
    std::fs::create_dir(fixture.path("none")).unwrap();
    index_of(&fixture, "none", &[("arm", "windows/amd64")]);
    let none = ["oci", "convert", "--all-platforms", "oci-layout:none", "oci-layout:x"];
    let run = fixture.run(none);
    assert!(run.code == Some(4) && run.stderr.contains("it has no image for Linux"), "{}", run.stderr);
}

#[test]
fn a_pushed_image_is_read_where_it_is() {
    let fixture = Fixture::with_image();
    fixture.run(["pack", "rootfs", "root.erofs", "-q"]).done();
    let push = ["oci", "push", "root.erofs", "oci-layout:layout:v1"];
    let first = fixture.run(push);
    assert!(first.done().text().starts_with("pushed: oci-layout:layout:v1: 1 layer"), "{}", first.text());
    assert!(fixture.run(push).text().contains("1 layer already there"));
    for args in [vec!["ls", "-lR"], vec!["cat"], vec!["tar"], vec!["info"], vec!["check", "--data", "-q"]] {
        let with = |image: &str| {
            let path = if args[0] == "cat" { &["etc/os-release"][..] } else { &[] };
            fixture.run([&args[..], &[image], path].concat())
        };
        let text = |run: &Run| String::from_utf8_lossy(&run.done().stdout).into_owned();
        let (there, here) = (text(&with("oci-layout:layout")), text(&with("root.erofs")));
        assert!(there.replace("oci-layout:layout", "root.erofs") == here, "{args:?}: {there}\n{here}");
    }
    fixture.run(["unpack", "oci-layout:layout:v1", "out", "-q"]).done();
    fixture.run(["diff", "out", "rootfs", "-q"]).done();
    fixture.run(["ls", "layout"]).done();
    fixture
        .run(["oci", "push", "root.sqfs", "oci-layout:layout"])
        .failed(4, &["EROFS is needed", "packfs pack"]);
    fixture.run(["oci", "push", "root.erofs", "rootfs"]).failed(2, &["oci-layout:DIR"]);
    fixture.run(["oci", "push", "root.erofs", "oci-layout:rootfs"]).failed(1, &["no image layout"]);
}

#[test]
fn a_hash_tree_becomes_an_annotation() {
    let fixture = Fixture::with_tree();
    fixture.run(["pack", "rootfs", "root.erofs", "-q"]).done();
    let tree = fixture.run(["verity", "root.erofs", "--json"]).json();
    fixture.run(["oci", "push", "root.erofs", "oci-layout:layout", "-q"]).done();
    let layer = manifest(&fixture.path("layout"))["layers"][0].clone();
    let annotation = |name: &str| layer["annotations"][format!("org.erofs.dmverity.{name}")].clone();
    assert_eq!(annotation("root_digest"), format!("sha256:{}", tree["root_hash"].as_str().unwrap()));
    assert_eq!(annotation("block_size"), "4096");
    fixture.run(["ls", "oci-layout:layout"]).done();
    let mut bytes = fixture.bytes("root.erofs");
    bytes[5000] ^= 1;
    fixture.write("root.erofs", bytes);
    fixture.run(["oci", "push", "root.erofs", "oci-layout:layout"]).failed(3, &["hash tree"]);
}

#[test]
fn layers_that_are_not_those_of_their_digests_are_refused() {
    let pack = |fixture: &Fixture| fixture.run(["pack", "oci-layout:layout", "a.sqfs", "-q"]);
    let path_of = |layer: &Layer| format!("layout/{}", Digest::of(&layer.blob).blob_path());
    let all = layers();
    let fixture = made(&all);
    for (index, layer) in all.iter().enumerate() {
        let (path, good) = (path_of(layer), layer.blob.clone());
        let mut bad = good.clone();
        bad[100] ^= 1;
        fixture.write(&path, &bad);
        pack(&fixture).failed(3, &["its digest is"]);
        fixture.write(&path, &good[..good.len() - 1]);
        pack(&fixture).failed(3, &["are expected"]);
        std::fs::remove_file(fixture.path(&path)).unwrap();
        pack(&fixture).failed(3, &["is missing"]);
        fixture.write(&path, &good);
        assert!(!fixture.path("a.sqfs").exists(), "{index}");
    }
    pack(&fixture).done();
    let mut all = layers();
    all[0].diff_id = Digest::of(b"another");
    pack(&made(&all)).failed(3, &["decoded layer", "its digest is"]);
    let mut all = layers();
    all[1].media = "application/vnd.oci.image.layer.nondistributable.v1.tar+zstd".into();
    pack(&made(&all)).failed(4, &["nondistributable"]);
    let mut all = layers();
    (all[2].media, all[2].blob) = ("text/plain".into(), b"text".to_vec());
    pack(&made(&all)).failed(4, &["layer sha256:"]);
}

#[test]
fn a_registry_is_read_by_ranges() {
    let fixture = Fixture::with_tree();
    fixture.run(["pack", "rootfs", "root.erofs", "-q"]).done();
    fixture.run(["oci", "push", "root.erofs", "oci-layout:layout", "-q"]).done();
    let manifest = manifest(&fixture.path("layout"));
    let config = manifest["config"]["digest"].as_str().unwrap().to_owned();
    let text = fixture.bytes(&format!("layout/{}", config.parse::<Digest>().unwrap().blob_path()));
    let (manifest, text) = (manifest.to_string(), String::from_utf8(text).unwrap());
    let server = RangeServer::with(fixture.bytes("root.erofs"), move |request| match &*request.path {
        path if path.contains("/manifests/") => Reply::Status(200, vec![], manifest.clone()),
        path if path.ends_with(&config) => Reply::Status(200, vec![], text.clone()),
        _ => Reply::Right,
    });
    let image = server.url("/box:v1").replace("http://", "oci://");
    let run = fixture.run(["cat", "--stats", &image, "etc/os-release"]);
    assert_eq!((run.code, run.text()), (Some(0), "NAME=example\n"), "{}", run.stderr);
    let stats: serde_json::Value = serde_json::from_str(run.stderr.lines().last().unwrap()).unwrap();
    assert_eq!((&stats["remote_requests"], &stats["remote_rounds"]), (&3.into(), &2.into()));
    fixture.run(["pack", &image, "copy.sqfs", "-q"]).done();
    fixture.run(["diff", "copy.sqfs", "rootfs", "-q"]).done();
    fixture.run(["ls", "--sandbox", &image]).failed(2, &["OCI image in a sandbox"]);
    assert_eq!(fixture.run(["cat", "--offline", &image, "etc/os-release"]).done().text(), "NAME=example\n");
    let other = image.replace(":v1", ":v2");
    fixture.run(["ls", "--offline", &other]).failed(1, &["manifest v2", "--offline"]);
}

#[test]
fn wrong_references_are_usage_errors() {
    let fixture = Fixture::new();
    for image in ["oci://host", "oci://host/A", "oci://host/a:b:c", "oci://u:secret@host/a", "oci-layout:"] {
        let run = fixture.run(["ls", image]);
        assert!(!run.failed(2, &["hint"]).stderr.contains("secret"), "{image}");
    }
    fixture.run(["ls", "--platform", "linux", "oci-layout:a"]).code.filter(|&code| code == 2).unwrap();
    fixture.run(["oci", "push", "oci-layout:a"]).code.filter(|&code| code == 2).unwrap();
    fixture.run(["oci", "convert", "a", "oci-layout:b"]).failed(2, &["no OCI image"]);
    fixture.run(["ls", "oci-layout:none"]).failed(1, &["cannot open \"none\"", "No such file"]);
    fixture.write("plain.tar", tar(&[("a", "a")]));
    fixture.run(["pack", "oci-archive:plain.tar", "a.sqfs"]).failed(4, &["manifest.json"]);
    assert!(TAR.ends_with("tar"));
}
