//! The programs in `examples/`, run as their first lines say.

use packfs_testkit::{is_root, skip};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// The command that runs an example, which cargo has built along with this test.
fn example(name: &str, folder: &Path) -> Command {
    let test = std::env::current_exe().unwrap();
    let built = test.ancestors().nth(2).unwrap().join("examples").join(name);
    if !built.exists() {
        // Only some of the tests were asked for, so only those were built.
        let status = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--package", "packfs", "--example", name])
            .status();
        assert!(status.unwrap().success(), "{name} cannot be built");
    }
    let mut command = Command::new(built);
    command.current_dir(folder);
    command
}

fn text_of(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn folder_with_tree() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("rootfs/etc")).unwrap();
    std::fs::write(folder.path().join("rootfs/etc/hostname"), "example\n").unwrap();
    folder
}

#[test]
fn images_are_packed_read_and_converted() {
    let folder = folder_with_tree();
    let run = |name: &str, words: &[&str]| text_of(example(name, folder.path()).args(words));
    assert!(run("pack", &["rootfs", "root.sqfs", "zstd:19"]).starts_with("root.sqfs: 8 bytes became "));
    assert_eq!(run("read", &["root.sqfs", "etc/hostname"]), "example\n");
    assert!(run("convert", &["root.sqfs", "root.erofs"]).starts_with("squashfs to erofs: "));
    assert!(run("read", &["root.erofs"]).contains("           8 etc/hostname\n"));
}

#[test]
fn an_image_is_mounted_until_it_is_unmounted() {
    if !is_root() || File::options().read(true).write(true).open("/dev/fuse").is_err() {
        return skip("mounting through FUSE needs root and /dev/fuse");
    }
    let folder = folder_with_tree();
    text_of(example("pack", folder.path()).args(["rootfs", "root.sqfs"]));
    let at = folder.path().join("mnt");
    std::fs::create_dir(&at).unwrap();
    let mut server =
        example("mount", folder.path()).args(["root.sqfs", "mnt"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut said).unwrap();
    assert_eq!(said, "mounted\n");
    assert_eq!(std::fs::read(at.join("etc/hostname")).unwrap(), b"example\n");
    packfs::mount::unmount(&at, &packfs::formats::drivers(), false).unwrap();
    assert!(server.wait().unwrap().success());
}
