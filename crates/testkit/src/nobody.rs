//! Tests of what only root may not do, run by root too.

use crate::is_root;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;

/// Runs `body` as somebody without privileges: in a process of its own if this one is root. `name` is the test's path.
pub fn as_nobody(name: &str, body: impl FnOnce()) {
    const MARK: &str = "PACKFS_TEST_AS_NOBODY";
    const NOBODY: u32 = 65_534;
    if !is_root() || std::env::var_os(MARK).is_some() {
        assert!(!is_root());
        return body();
    }
    // The test binary may lie where only root may go.
    let copy = tempfile::Builder::new().prefix("packfs-test").tempdir().unwrap();
    open_to_all(copy.path());
    let program = copy.path().join("test");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let output = std::process::Command::new(program)
        .args([name, "--exact", "--nocapture"])
        .env(MARK, "1")
        .current_dir("/")
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn open_to_all(path: &Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}
