//! OCI images with the registry, skopeo, and umoci of Debian.

use crate::fixture::Fixture;
use crate::oci::index_of;
use crate::oci_made::{Layer, layers, write};
use packfs_testkit::{is_root, peer, skip};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// A registry of this machine; it ends when it is dropped.
struct Registry {
    child: Child,
    host: String,
}

impl Registry {
    /// Starts one with its data in the folder; skips the test if there is none.
    fn start(fixture: &Fixture) -> Option<Self> {
        let program = peer("docker-registry")?;
        let host = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let data = fixture.path("registry");
        let config = format!(
            "version: 0.1\nlog:\n  level: error\nstorage:\n  filesystem:\n    rootdirectory: {}\nhttp:\n  addr: {host}\n",
            data.display()
        );
        fixture.write("registry.yml", config);
        let mut command = program.command(&[&"serve", &fixture.path("registry.yml")]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let patience = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect(&host).is_err() {
            assert!(child.try_wait().unwrap().is_none() && Instant::now() < patience, "the registry ended");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(Registry { child, host })
    }

    fn image(&self, name: &str) -> String {
        format!("oci://{}/{name}", self.host)
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs `packfs digest` over sources, and returns true if all are equal.
#[track_caller]
fn assert_same(fixture: &Fixture, sources: &[&str]) {
    let run = fixture.run([&["digest"][..], sources].concat());
    let digests: Vec<&str> = run.done().text().lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert!(digests.windows(2).all(|pair| pair[0] == pair[1]), "{}", run.text());
}

#[test]
fn a_registry_takes_and_gives_images() {
    let fixture = Fixture::with_tree();
    let Some(registry) = Registry::start(&fixture) else { return };
    // Longer than a chunk of an upload, and not to be compressed.
    let noise = packfs_testkit::Random::new(1).noise(20 << 20);
    fixture.write("rootfs/noise", noise);
    fixture.run(["pack", "rootfs", "root.erofs", "-q"]).done();
    let image = registry.image("team/root:v1");
    fixture.run(["oci", "push", "root.erofs", &image, "-q"]).done();
    assert!(fixture.run(["oci", "push", "root.erofs", &image]).done().text().contains("already there"));
    assert_same(&fixture, &["root.erofs", &image]);
    let run = fixture.run(["cat", "--stats", &image, "etc/os-release"]);
    assert_eq!((run.code, run.text()), (Some(0), "NAME=example\n"), "{}", run.stderr);
    let stats: serde_json::Value = serde_json::from_str(run.stderr.lines().last().unwrap()).unwrap();
    assert!(stats["remote_rounds"].as_u64().unwrap() <= 3, "{stats}");
    assert_eq!(fixture.run(["cat", "--offline", &image, "etc/os-release"]).done().text(), "NAME=example\n");
    write(&fixture.path("layout"), &layers());
    let converted = registry.image("team/app:erofs");
    fixture.run(["oci", "convert", "oci-layout:layout", &converted, "-q"]).done();
    assert_same(&fixture, &["oci-layout:layout", &converted]);
    assert!(fixture.run(["cat", &converted, "bin/same"]).done().text() == "tool");
    // Compressed, with a chunk index.
    let small = registry.image("team/root:zstd");
    fixture.run(["oci", "push", "--zstd", "root.erofs", &small, "-q"]).done();
    assert_same(&fixture, &["root.erofs", &small]);
    fixture.run(["unpack", &small, "small", "-q"]).done();
    fixture.run(["diff", "small", "rootfs", "-q"]).done();
    // An index of several platforms.
    std::fs::create_dir(fixture.path("index")).unwrap();
    index_of(&fixture, "index", &[("layout", "linux/amd64"), ("layout", "linux/arm64")]);
    let several = registry.image("team/several:v1");
    fixture.run(["oci", "convert", "--all-platforms", "oci-layout:index", &several, "-q"]).done();
    fixture.run(["pack", "--platform", "linux/arm64", &several, "arm.sqfs", "-q"]).done();
    assert_same(&fixture, &["oci-layout:layout", "arm.sqfs"]);
    fixture.run(["ls", &registry.image("team/none")]).failed(1, &["no such image"]);
}

#[test]
fn skopeo_copies_what_is_pushed() {
    let fixture = Fixture::with_tree();
    let Some(skopeo) = peer("skopeo") else { return };
    let Some(registry) = Registry::start(&fixture) else { return };
    fixture.run(["pack", "rootfs", "root.erofs", "-q"]).done();
    fixture.run(["oci", "push", "root.erofs", &registry.image("root:v1"), "-q"]).done();
    let from = format!("docker://{}/root:v1", registry.host);
    let to = format!("oci:{}:v1", fixture.path("copied").display());
    let plain = "--src-tls-verify=false";
    skopeo.run(&[&"--insecure-policy", &"copy", &plain, &from, &to]);
    assert_same(&fixture, &["root.erofs", "oci-layout:copied:v1"]);
    // The other way: layers of tar, in a registry and in archives.
    write(&fixture.path("layout"), &layers());
    let layout = format!("oci:{}", fixture.path("layout").display());
    let there = format!("docker://{}/app:v1", registry.host);
    skopeo.run(&[&"--insecure-policy", &"copy", &"--dest-tls-verify=false", &layout, &there]);
    let archive = format!("oci-archive:{}:v1", fixture.path("oci.tar").display());
    skopeo.run(&[&"--insecure-policy", &"copy", &layout, &archive]);
    let image = registry.image("app:v1");
    assert_same(&fixture, &["oci-layout:layout", &image, "oci-archive:oci.tar"]);
    // Archives of docker hold no zstd.
    write(&fixture.path("gzip"), &layers()[..1]);
    let layout = format!("oci:{}", fixture.path("gzip").display());
    let archive = format!("docker-archive:{}:local/app:v1", fixture.path("docker.tar").display());
    skopeo.run(&[&"--insecure-policy", &"copy", &layout, &archive]);
    assert_same(&fixture, &["oci-layout:gzip", "docker-archive:docker.tar"]);
}

#[test]
fn umoci_unpacks_the_tree_that_is_packed() {
    let fixture = Fixture::new();
    let Some(umoci) = peer("umoci") else { return };
    if !is_root() {
        skip("umoci unpacks owners as root alone");
        return;
    }
    let layout = fixture.path("layout");
    let image = |tag: &str| format!("{}:{tag}", layout.display());
    let bundle = fixture.path("bundle");
    let root = bundle.join("rootfs");
    umoci.run(&[&"init", &"--layout", &layout]);
    umoci.run(&[&"new", &"--image", &image("v1")]);
    umoci.run(&[&"unpack", &"--image", &image("v1"), &bundle]);
    fill(&root);
    umoci.run(&[&"repack", &"--refresh-bundle", &"--image", &image("v1"), &bundle]);
    std::fs::remove_dir_all(root.join("d")).unwrap();
    std::fs::remove_file(root.join("etc/b")).unwrap();
    std::fs::write(root.join("new"), "a file").unwrap();
    std::fs::write(root.join("etc/c"), "c").unwrap();
    // A file in place of a directory: umoci marks what was in that, too.
    std::fs::remove_dir_all(root.join("replaced")).unwrap();
    std::fs::write(root.join("replaced"), "a file").unwrap();
    umoci.run(&[&"repack", &"--refresh-bundle", &"--image", &image("v1"), &bundle]);
    std::fs::remove_dir_all(&bundle).unwrap();
    umoci.run(&[&"unpack", &"--image", &image("v1"), &bundle]);
    fixture.run(["pack", "oci-layout:layout:v1", "all.erofs", "-q"]).done();
    // Times of directories are those of unpacking for parents that a layer does not describe.
    fixture.run(["diff", "all.erofs", "bundle/rootfs", "--no-times", "-q"]).done();
}

#[test]
fn umoci_follows_hard_links_to_lower_layers() {
    let fixture = Fixture::new();
    let Some(umoci) = peer("umoci") else { return };
    if !is_root() {
        skip("umoci unpacks owners as root alone");
        return;
    }
    let layout = fixture.path("layout");
    let lower = [
        ("b", "b"),
        ("d/", ""),
        ("d/a", "1"),
        ("d/x", "x"),
        ("etc/", ""),
        ("etc/c", "c"),
        ("abs", "->/etc"),
        ("up", "->../../d/"),
        ("link", "->b"),
    ];
    let upper = [
        ("e/", ""),
        ("e/a", "=d/a"),
        ("e/c", "=etc/c"),
        ("d/", ""),
        ("d/.wh.a", ""),
        ("etc/", ""),
        ("etc/c", "new"),
        ("f", "=b"),
        ("g", "=f"),
        // Symbolic links on the way are followed within the root, the last one is not.
        ("of-abs", "=abs/c"),
        ("of-up", "=up/x"),
        ("of-link", "=link"),
        ("own", "->e"),
        ("of-own", "=own/a"),
    ];
    write(&layout, &[Layer::tar("", &lower), Layer::tar("+gzip", &upper), Layer::tar("", &[("h", "=e/a")])]);
    let path = layout.join("index.json");
    let mut index: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    index["manifests"][0]["annotations"] = serde_json::json!({"org.opencontainers.image.ref.name": "v1"});
    std::fs::write(&path, index.to_string()).unwrap();
    let bundle = fixture.path("bundle");
    umoci.run(&[&"unpack", &"--image", &format!("{}:v1", layout.display()), &bundle]);
    fixture.run(["pack", "oci-layout:layout:v1", "all.erofs", "-q"]).done();
    // Links are compared, too.
    fixture.run(["diff", "all.erofs", "bundle/rootfs", "--no-times", "-q"]).done();
    let linked = fixture.run(["stat", "--json", "all.erofs", "h"]).json()[0]["links"].clone();
    assert_eq!(linked, 3);
    // Neither links to what comes later.
    write(&layout, &[Layer::tar("", &[("b", "=a"), ("a", "a")])]);
    let mut index: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    index["manifests"][0]["annotations"] = serde_json::json!({"org.opencontainers.image.ref.name": "v2"});
    std::fs::write(&path, index.to_string()).unwrap();
    let late = format!("{}:v2", layout.display());
    assert!(
        !umoci
            .command(&[&"unpack", &"--image", &late, &fixture.path("late")])
            .output()
            .unwrap()
            .status
            .success()
    );
    fixture.run(["pack", "oci-layout:layout:v2", "late.erofs", "-q"]).failed(3, &["only after the link"]);
}

fn fill(root: &Path) {
    std::fs::create_dir_all(root.join("d/e")).unwrap();
    std::fs::create_dir_all(root.join("etc")).unwrap();
    std::fs::create_dir_all(root.join("replaced")).unwrap();
    for name in ["d/x", "d/e/y", "etc/a", "etc/b", "replaced/z"] {
        std::fs::write(root.join(name), name).unwrap();
    }
    std::fs::hard_link(root.join("etc/a"), root.join("etc/hard")).unwrap();
    std::os::unix::fs::symlink("../etc/a", root.join("d/link")).unwrap();
}
