//! Targets of `pack`: pipes, block devices, and a file of data beside the image.

use crate::fixture::{Fixture, Run};
use packfs_testkit::{LoopDevice, Mount, Random, is_root, skip};
use serde_json::Value;
use std::fs::File;
use std::process::{Command, Stdio};

#[test]
fn standard_output_gets_the_same_image_as_a_file() {
    let fixture = Fixture::with_tree();
    for format in ["squashfs", "erofs"] {
        fixture.run(["pack", "rootfs", "image", "-q", "--format", format]).done();
        let run = fixture.run(["pack", "rootfs", "-", "--format", format]);
        assert!(run.done().stdout == fixture.bytes("image"), "{format} into a pipe");
        let file = File::create(fixture.path("redirected")).unwrap();
        let mut command = fixture.command(["pack", "rootfs", "-", "--format", format]);
        assert!(command.stdout(file).status().unwrap().success());
        assert!(fixture.bytes("redirected") == fixture.bytes("image"), "{format} into a file");
    }
}

#[test]
fn a_reader_that_goes_away_ends_the_work_quietly() {
    let fixture = Fixture::with_tree();
    let mut child = fixture
        .command(["pack", "rootfs", "-", "--codec", "none"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let run = Run::of(child.wait_with_output().unwrap());
    assert_eq!((run.code, run.said().as_str()), (Some(141), ""));
}

#[test]
fn the_image_and_a_json_summary_cannot_share_standard_output() {
    let run = Fixture::with_tree();
    run.run(["pack", "rootfs", "-", "--json"]).failed(2, &["--json", "standard output"]);
}

#[test]
fn a_block_device_is_written_in_place_and_mounts() {
    if !is_root() {
        return skip("loop devices need root");
    }
    let fixture = Fixture::with_tree();
    for format in ["squashfs", "erofs"] {
        File::create(fixture.path("disk")).unwrap().set_len(4 << 20).unwrap();
        let device = LoopDevice::new(&fixture.path("disk")).unwrap();
        let path = device.path().to_str().unwrap();
        let run = fixture.run(["pack", "rootfs", path, "--format", format]);
        let text = run.done().text();
        assert!(text.contains(&format!("-o ro {path} /mnt")), "{text}");
        fixture.run(["diff", path, "rootfs"]).done();
        fixture.run(["check", "--data", path]).done();
        let mount = Mount::block_device(device.path(), format).unwrap();
        assert_eq!(std::fs::read(mount.path().join("etc/os-release")).unwrap(), b"NAME=example\n");
        // What is mounted is not written to.
        fixture.run(["pack", "rootfs", path, "--format", format]).failed(1, &["busy", path]);
    }
}

#[test]
fn reports_a_too_small_block_device_and_leaves_no_image_on_it() {
    if !is_root() {
        return skip("loop devices need root");
    }
    let fixture = Fixture::with_tree();
    let before = vec![0xa5; 64 << 10];
    fixture.write("disk", &before);
    let device = LoopDevice::new(&fixture.path("disk")).unwrap();
    let path = device.path().to_str().unwrap();
    let pack = ["pack", "rootfs", path, "--codec", "none", "--format"];
    for format in ["squashfs", "erofs"] {
        let run = fixture.run([&pack[..], &[format]].concat());
        run.failed(1, &["it has 65536 bytes, at least", path, "nothing was written to"]);
        assert!(fixture.bytes(path) == before, "{format}");
        // A part of it is no more.
        let run = fixture.run([&pack[..], &[format, "--max-size", "32K"]].concat());
        run.failed(1, &["at most 32768 are allowed", "nothing was written to"]);
        assert!(fixture.bytes(path) == before, "{format}");
    }
    // Without room for a copy it is written in place, and told so.
    let nowhere = fixture.path("tmpfs");
    std::fs::create_dir(&nowhere).unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=16k", "tmpfs"])
        .arg(&nowhere)
        .status()
        .unwrap();
    assert!(mounted.success());
    let run = |args: &[&str]| {
        Run::of(fixture.command([&pack[..], args].concat()).env("TMPDIR", &nowhere).output().unwrap())
    };
    let refused = run(&["squashfs", "--max-size", "60K"]);
    let in_place = run(&["squashfs"]);
    assert!(Command::new("umount").arg(&nowhere).status().unwrap().success());
    refused.failed(1, &["cannot test if the image fits", "TMPDIR"]);
    assert_eq!(in_place.code, Some(1), "{}", in_place.stderr);
    for words in [
        "if it does not, the previous contents are lost",
        "it has 65536 bytes, at least",
        "its previous contents are lost",
    ] {
        assert!(in_place.stderr.contains(words), "{words}: {}", in_place.stderr);
    }
    assert_ne!(fixture.run(["info", path]).code, Some(0));
}

#[test]
fn an_image_that_may_only_be_so_long_is_refused_with_its_length_or_made_to_fit() {
    let fixture = Fixture::with_tree();
    for (format, image) in
        [("squashfs", "x.sqfs"), ("erofs", "x.erofs"), ("iso9660", "x.iso"), ("cloop", "x.cloop")]
    {
        let pack = ["pack", "rootfs", image, "-q", "--lossy", "--format", format];
        assert_eq!(fixture.run(pack).code, Some(0));
        let len = fixture.bytes(image).len();
        let may_have = |len: usize, args: &[&str]| {
            fixture.run([&pack[..], &["--max-size", &len.to_string()], args].concat())
        };
        fixture.write(image, "as it was");
        let found = format!("has {len} bytes, at most {} are allowed", len - 1);
        may_have(len - 1, &[]).failed(1, &[&found, "--fit", &format!("nothing was written to {image:?}")]);
        may_have(100, &["--fit"]).failed(1, &["at most 100 are allowed", "exclude files"]);
        assert!(fixture.bytes(image) == b"as it was", "{format}");
        assert_eq!(may_have(len, &["--fit"]).code, Some(0));
        assert_eq!(fixture.bytes(image).len(), len, "{format}");
    }
    assert!(fixture.names().iter().all(|name| !name.contains("tmp")), "{:?}", fixture.names());
    let stdout = fixture.run(["pack", "rootfs", "-", "--max-size", "1000"]);
    stdout.failed(1, &["nothing was written to standard output", "at most 1000"]);
    assert!(stdout.stdout.is_empty());
    fixture.run(["pack", "rootfs", "y.sqfs", "--fit"]).failed(2, &["--max-size"]);
}

#[test]
fn fitting_starts_at_the_request_and_keeps_given_options() {
    let fixture = Fixture::new();
    let mut random = Random::new(7);
    let text: Vec<String> = (0..60_000).map(|_| format!("{} ", random.below(900) * 77)).collect();
    fixture.write("tree/text", text.concat());
    let pack = |args: &[&str]| {
        fixture.run([&["pack", "tree", "x.sqfs", "--json", "-b", "16K"], args].concat()).json()
    };
    let size = |report: &Value| report["image_size"].as_u64().unwrap();
    let usual = pack(&["--codec", "lz4"]);
    assert!(usual["fitted"].is_null());
    let most = (size(&usual) - 1).to_string();
    let lz4hc = pack(&["--codec", "lz4hc:1", "--max-size", &size(&usual).to_string(), "--fit"]);
    assert!(lz4hc["codec"].as_str().unwrap().starts_with("lz4hc"), "{lz4hc}");
    let any = pack(&["--max-size", &most, "--fit"]);
    assert!(size(&any) < size(&usual), "{any}");
    let gzip = pack(&["--codec", "gzip:1"]);
    let denser = pack(&["--codec", "gzip", "--max-size", &(size(&gzip) - 1).to_string(), "--fit"]);
    assert!(denser["codec"].as_str().unwrap().starts_with("gzip"), "{denser}");
    let quick = pack(&["--optimize", "build"]);
    let most = (size(&quick) - 1).to_string();
    let fitted = pack(&["--optimize", "build", "--max-size", &most, "--fit"]);
    let way = fitted["fitted"].as_str().unwrap();
    assert!(way.contains("blocks of 16 KiB"), "the block size was given: {way}");
    fixture.run(["diff", "x.sqfs", "tree"]).done();
}

#[test]
fn what_cannot_fit_is_refused_by_samples_with_what_to_leave_out() {
    let fixture = Fixture::new();
    let mut random = Random::new(8);
    for (name, len) in [("few", 100_000), ("more", 900_000), ("most", 6_000_000)] {
        std::fs::create_dir_all(fixture.path("tree/opt")).unwrap();
        let text: String = (0..len).map(|_| format!("{} ", random.below(900))).collect();
        fixture.write(&format!("tree/opt/{name}"), text);
    }
    for image in ["x.sqfs", "x.erofs"] {
        let pack = |args: &[&str]| fixture.run([&["pack", "tree", image, "--fit", "-q"], args].concat());
        let refused = pack(&["--max-size", "2M"]);
        refused.failed(1, &["by samples", "any of these is enough: --exclude /opt/most (about"]);
        refused.failed(1, &[&format!("nothing was written to {image:?}")]);
        assert!(!refused.stderr.contains("unchanged"), "{image} is new: {}", refused.stderr);
        assert_eq!(pack(&["--max-size", "2M", "--exclude", "/opt/most"]).code, Some(0));
        let nothing = pack(&["--max-size", "4K"]);
        nothing.failed(1, &["by samples", "not enough: --exclude /opt/most --exclude /opt/more"]);
    }
}

#[test]
fn data_beside_the_image_are_read_compared_and_packed_again() {
    let fixture = Fixture::with_tree();
    let run = fixture.run(["pack", "rootfs", "x.erofs", "-O", "device=x.blob"]);
    let text = run.done().text();
    assert!(text.contains("-o loop,ro,device=$(sudo losetup -rf --show x.blob) x.erofs /mnt"), "{text}");
    fixture.run(["check", "--data", "x.erofs", "--device", "x.blob"]).done();
    fixture.run(["diff", "x.erofs", "rootfs", "--device", "x.blob"]).done();
    fixture.run(["diff", "rootfs", "x.erofs", "--device-b", "x.blob"]).done();
    let run = fixture.run(["pack", "x.erofs", "y.sqfs", "--device", "x.blob", "-q"]).ended(0);
    assert!(run.stderr.contains("warning: lost: times lose their fractions of a second"), "{}", run.stderr);
    fixture.run(["diff", "y.sqfs", "rootfs"]).done();
    fixture.run(["pack", "x.erofs", "z.erofs"]).failed(1, &["device 1", "not given", "--device"]);
    fixture
        .run(["pack", "rootfs", "z.sqfs", "--device", "x.blob"])
        .failed(2, &["rootfs", "a directory, not an image", "further devices"]);
    fixture.run(["pack", "rootfs", "z.sqfs", "-O", "device=z.blob"]).failed(2, &["device"]);
}

#[test]
fn data_are_spread_over_devices_by_rules_and_over_block_devices_by_their_length() {
    let fixture = Fixture::with_tree();
    let pack = ["pack", "rootfs", "x.erofs", "-O", "device=a.blob", "-O", "device=b.blob"];
    let run = fixture.run([&pack[..], &["-O", "device-of=etc=2", "--json"]].concat());
    let report = run.json();
    assert_eq!(report["data_file"], "a.blob", "{report}");
    assert_eq!(report["data_files"][1]["path"], "b.blob", "{report}");
    let command = report["mount"].as_str().unwrap();
    assert_eq!(command.matches(",device=$(sudo losetup -rf --show ").count(), 2, "{command}");
    fixture.run(["diff", "x.erofs", "rootfs", "--device", "a.blob", "--device", "b.blob"]).done();
    fixture.run(["check", "x.erofs", "--device", "a.blob"]).failed(2, &["1 further devices", "lists 2"]);
    if !is_root() {
        return skip("loop devices need root");
    }
    std::fs::create_dir(fixture.path("many")).unwrap();
    for (number, noise) in Random::new(4).noise(300_000).chunks(50_000).enumerate() {
        std::fs::write(fixture.path("many").join(number.to_string()), noise).unwrap();
    }
    let disks = ["one", "two"].map(|name| {
        fixture.write(name, vec![0xa5; 256 << 10]);
        LoopDevice::new(&fixture.path(name)).unwrap()
    });
    let paths = disks.each_ref().map(|disk| disk.path().to_str().unwrap().to_owned());
    let options = paths.each_ref().map(|path| format!("device={path}"));
    let pack = ["pack", "many", "y.erofs", "--codec", "lz4"];
    fixture.run([&pack[..], &["-O", &options[0], "-O", &options[1]]].concat()).done();
    fixture.run(["diff", "y.erofs", "many", "--device", &paths[0], "--device", &paths[1]]).done();
    let run = fixture.run([&pack[..], &["-O", &options[0]]].concat());
    run.failed(1, &["262144 are allowed", "add devices"]);
}

#[test]
fn options_convert_layers_and_set_labels() {
    let fixture = Fixture::with_tree();
    fixture.write("rootfs/etc/.wh.gone", "");
    fixture.write("policy", "/.* any\n/etc/gone -c mark\n");
    let args = ["--whiteouts", "overlayfs", "--file-contexts", "policy", "-q"];
    fixture.run([&["pack", "rootfs", "x.erofs"][..], &args].concat()).done();
    let rows = fixture.run(["stat", "x.erofs", "etc/gone", "--json"]).json();
    assert_eq!(rows[0]["type"], "char_device", "{rows}");
    assert_eq!(rows[0]["xattrs"][0]["name"], "security.selinux", "{rows}");
    let run = fixture.run(["pack", "x.erofs", "y.erofs", "--whiteouts", "aufs", "-q"]);
    run.done();
    assert!(fixture.run(["ls", "y.erofs", "etc"]).done().text().contains(".wh.gone"));
    fixture.write("policy", "/etc(");
    let run = fixture.run(["pack", "rootfs", "z.erofs", "--file-contexts", "policy"]);
    run.failed(2, &["policy", "line 1"]);
    fixture
        .run(["pack", "rootfs", "z.erofs", "--whiteouts", "union"])
        .failed(2, &["overlayfs, aufs or keep"]);
    fixture.run(["pack", "rootfs", "z.erofs", "--file-contexts-at", "/x"]).failed(2, &["--file-contexts"]);
}
