//! Operations that a sandboxed process cannot do, tried in a copy of this test, because
//! restrictions cannot be removed.

use packfs_sandbox::{Applied, Sandbox};
use packfs_testkit::{as_nobody, skip};
use rustix::fs::{AtFlags, CWD, Mode};
use std::fs;
use std::io::{ErrorKind, Read};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

const MARK: &str = "PACKFS_TEST_IN_SANDBOX";

/// Runs a test's body in a process of its own.
fn alone(name: &str, body: impl FnOnce()) {
    if std::env::var_os(MARK).is_some() {
        return body();
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture", "--test-threads=1"])
        .env(MARK, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}\n{errors}");
}

/// Applies a sandbox; `None` if this kernel does not support both.
fn apply(sandbox: &Sandbox) -> Option<Applied> {
    let applied = sandbox.apply().unwrap();
    if applied.is_whole() {
        return Some(applied);
    }
    skip(&format!("this kernel's sandbox is not whole: {applied}"));
    None
}

#[track_caller]
fn denied<T>(outcome: std::io::Result<T>) {
    let error = outcome.err().expect("this must be out of reach");
    assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
}

/// Returns a directory with an image, a target and an unrelated file.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("image"), "image").unwrap();
    fs::write(folder.path().join("private"), "private").unwrap();
    fs::create_dir(folder.path().join("target")).unwrap();
    folder
}

fn reach(folder: &Path) -> Sandbox {
    Sandbox::new().read(folder.join("image")).read(folder.join("not there")).fill(folder.join("target"))
}

fn nothing_else_is_reached(folder: &Path) {
    denied(fs::read("/etc/passwd"));
    denied(fs::read_dir("/"));
    denied(fs::read(folder.join("private")));
    denied(fs::write(folder.join("image"), "changed"));
    denied(fs::write(folder.join("new"), "new"));
    denied(fs::create_dir(folder.join("new")));
    denied(fs::remove_file(folder.join("private")));
    denied(std::os::unix::fs::symlink("image", folder.join("link")));
    assert_eq!(fs::read(folder.join("not there")).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(fs::read(folder.join("image")).unwrap(), b"image");
}

fn the_target_takes_everything(target: &Path, outside: &Path) {
    fs::create_dir_all(target.join("a/b")).unwrap();
    fs::write(target.join("a/b/f"), "f").unwrap();
    fs::hard_link(target.join("a/b/f"), target.join("hard")).unwrap();
    fs::rename(target.join("hard"), target.join("a/hard")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", target.join("link")).unwrap();
    denied(fs::read(target.join("link")));
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(CWD, target.join("fifo"), fifo, Mode::RUSR, 0).unwrap();
    let file = fs::File::options().write(true).open(target.join("a/hard")).unwrap();
    file.set_len(1 << 20).unwrap();
    rustix::fs::fchmod(&file, Mode::RWXU).unwrap();
    file.sync_all().unwrap();
    fs::remove_file(target.join("a/b/f")).unwrap();
    fs::remove_dir(target.join("a/b")).unwrap();
    // Neither out of it nor into it.
    assert!(fs::rename(target.join("a"), outside.join("moved")).is_err());
    assert!(fs::hard_link(outside.join("private"), target.join("private")).is_err());
}

fn no_way_out() {
    assert!(TcpListener::bind("127.0.0.1:0").is_err());
    assert!(UdpSocket::bind("127.0.0.1:0").is_err());
    assert!(UnixListener::bind("/tmp/packfs-never-there").is_err());
    assert!(Command::new("/bin/true").status().is_err());
    let own = rustix::process::getpid();
    assert!(rustix::process::kill_process(own, rustix::process::Signal::CONT).is_err());
}

#[test]
fn files_programs_and_networks_are_out_of_reach() {
    alone("files_programs_and_networks_are_out_of_reach", || {
        let folder = folder();
        let mut open_before = fs::File::open(folder.path().join("private")).unwrap();
        let Some(applied) = apply(&reach(folder.path())) else { return };
        assert_eq!(applied.to_string(), "landlock, seccomp");
        nothing_else_is_reached(folder.path());
        no_way_out();
        the_target_takes_everything(&folder.path().join("target"), folder.path());
        let mut text = String::new();
        open_before.read_to_string(&mut text).unwrap();
        assert_eq!(text, "private", "what is open stays open");
    });
}

#[test]
fn it_holds_without_privileges_too() {
    as_nobody(|| {
        let folder = folder();
        if apply(&reach(folder.path())).is_some() {
            nothing_else_is_reached(folder.path());
            no_way_out();
            the_target_takes_everything(&folder.path().join("target"), folder.path());
        }
    });
}

#[test]
fn it_holds_for_threads_that_start_later() {
    alone("it_holds_for_threads_that_start_later", || {
        let folder = folder();
        if apply(&reach(folder.path())).is_some() {
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        nothing_else_is_reached(folder.path());
                        no_way_out();
                    });
                }
            });
        }
    });
}

#[test]
fn names_can_be_changed_without_opening_anything_for_writing() {
    alone("names_can_be_changed_without_opening_anything_for_writing", || {
        let folder = folder();
        let at = |name: &str| folder.path().join(name);
        if apply(&Sandbox::new().name_in(folder.path())).is_some() {
            denied(fs::write(at("private"), "changed"));
            denied(fs::read(at("private")));
            fs::rename(at("image"), at("renamed")).unwrap();
            fs::remove_file(at("renamed")).unwrap();
            denied(rustix::fs::unlinkat(CWD, at("target"), AtFlags::REMOVEDIR).map_err(Into::into));
        }
    });
}

#[test]
fn scratch_files_can_be_written_and_read() {
    alone("scratch_files_can_be_written_and_read", || {
        let folder = folder();
        if apply(&Sandbox::new().scratch(folder.path())).is_some() {
            let mut file = tempfile::tempfile_in(folder.path()).unwrap();
            std::io::Write::write_all(&mut file, b"text").unwrap();
            denied(fs::create_dir(folder.path().join("dir")));
        }
    });
}

/// A second sandbox cannot be applied inside one, just as on a kernel without support.
#[test]
fn reports_a_kernel_without_support_and_refuses_it_if_required() {
    alone("reports_a_kernel_without_support_and_refuses_it_if_required", || {
        if apply(&Sandbox::new()).is_some() {
            let applied = Sandbox::new().apply().unwrap();
            assert!(applied.no_landlock.is_some() && applied.no_seccomp.is_some(), "{applied}");
            let error = Sandbox::new().apply_whole().unwrap_err();
            assert!(error.to_string().contains("no landlock ("), "{error}");
            assert!(error.to_string().contains("no seccomp ("), "{error}");
        }
    });
}
