//! Where `pack` writes: pipes, block devices, and a file of data beside the image.

use crate::fixture::{Fixture, Run};
use packfs_testkit::{LoopDevice, Mount, Random, is_root, skip};
use std::fs::File;
use std::process::Stdio;

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
fn a_block_device_that_is_too_small_is_told_and_holds_no_image() {
    if !is_root() {
        return skip("loop devices need root");
    }
    let fixture = Fixture::with_tree();
    std::fs::write(fixture.path("disk"), vec![0xa5; 64 << 10]).unwrap();
    let device = LoopDevice::new(&fixture.path("disk")).unwrap();
    let path = device.path().to_str().unwrap();
    for format in ["squashfs", "erofs"] {
        let run = fixture.run(["pack", "rootfs", path, "--codec", "none", "--format", format]);
        run.failed(1, &["is too small: it has 65536 bytes", path]);
        assert_ne!(fixture.run(["info", path]).code, Some(0));
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
    let run = fixture.run(["pack", "x.erofs", "y.sqfs", "--device", "x.blob", "-q"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stderr.contains("warning: lost: times lose their fractions of a second"), "{}", run.stderr);
    fixture.run(["diff", "y.sqfs", "rootfs"]).done();
    fixture.run(["pack", "x.erofs", "z.erofs"]).failed(1, &["device 1", "not given", "--device"]);
    fixture
        .run(["pack", "rootfs", "z.sqfs", "--device", "x.blob"])
        .failed(2, &["rootfs", "a directory and no image", "further devices"]);
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
        std::fs::write(fixture.path(name), vec![0xa5; 256 << 10]).unwrap();
        LoopDevice::new(&fixture.path(name)).unwrap()
    });
    let paths = disks.each_ref().map(|disk| disk.path().to_str().unwrap().to_owned());
    let options = paths.each_ref().map(|path| format!("device={path}"));
    let pack = ["pack", "many", "y.erofs", "--codec", "lz4"];
    fixture.run([&pack[..], &["-O", &options[0], "-O", &options[1]]].concat()).done();
    fixture.run(["diff", "y.erofs", "many", "--device", &paths[0], "--device", &paths[1]]).done();
    let run = fixture.run([&pack[..], &["-O", &options[0]]].concat());
    run.failed(1, &["262144 are allowed", "further devices"]);
}

#[test]
fn layers_and_labels_are_asked_for_by_options() {
    let fixture = Fixture::with_tree();
    std::fs::write(fixture.path("rootfs/etc/.wh.gone"), "").unwrap();
    std::fs::write(fixture.path("policy"), "/.* any\n/etc/gone -c mark\n").unwrap();
    let args = ["--whiteouts", "overlayfs", "--file-contexts", "policy", "-q"];
    fixture.run([&["pack", "rootfs", "x.erofs"][..], &args].concat()).done();
    let rows = fixture.run(["stat", "x.erofs", "etc/gone", "--json"]).json();
    assert_eq!(rows[0]["type"], "char_device", "{rows}");
    assert_eq!(rows[0]["xattrs"][0]["name"], "security.selinux", "{rows}");
    let run = fixture.run(["pack", "x.erofs", "y.erofs", "--whiteouts", "aufs", "-q"]);
    run.done();
    assert!(fixture.run(["ls", "y.erofs", "etc"]).done().text().contains(".wh.gone"));
    std::fs::write(fixture.path("policy"), "/etc(").unwrap();
    let run = fixture.run(["pack", "rootfs", "z.erofs", "--file-contexts", "policy"]);
    run.failed(2, &["policy", "line 1"]);
    fixture
        .run(["pack", "rootfs", "z.erofs", "--whiteouts", "union"])
        .failed(2, &["overlayfs, aufs or keep"]);
    fixture.run(["pack", "rootfs", "z.erofs", "--file-contexts-at", "/x"]).failed(2, &["--file-contexts"]);
}
