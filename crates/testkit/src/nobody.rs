//! Tests of what only root may not do, run by root too.

use crate::is_root;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

/// Runs `body`, a closure of a test, without privileges: in a process of its own if this one is
/// root.
pub fn as_nobody<T: FnOnce()>(body: T) {
    const MARK: &str = "PACKFS_TEST_AS_NOBODY";
    const NOBODY: u32 = 65_534;
    if !is_root() || std::env::var_os(MARK).is_some() {
        assert!(!is_root());
        return body();
    }
    // "program::module::test::{{closure}}"; the harness leaves out the program.
    let path = std::any::type_name::<T>().strip_suffix("::{{closure}}").unwrap();
    let (_, name) = path.split_once("::").unwrap();
    // The test binary may lie where only root may go.
    let copy = tempfile::Builder::new().prefix("packfs-test").tempdir().unwrap();
    open_to_all(copy.path());
    let program = copy.path().join("test");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let mut again = Command::new(program);
    again.args([name, "--exact", "--nocapture"]).env(MARK, "1").current_dir("/").uid(NOBODY).gid(NOBODY);
    let output = output_of_copy(&mut again);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Runs a program that was copied a moment ago.
///
/// Another test's child may have been forked while the copy was open for writing, and holds it open
/// until it runs its own program: until then this one counts as busy.
pub fn output_of_copy(command: &mut Command) -> Output {
    loop {
        match command.output() {
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(Duration::from_millis(5));
            }
            output => return output.unwrap(),
        }
    }
}

fn open_to_all(path: &Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}
