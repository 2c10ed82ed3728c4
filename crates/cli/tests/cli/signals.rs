//! Signals: the program stops, tidies up and says so by its exit code.

use crate::fixture::{Fixture, Run};
use rustix::process::{Pid, Signal, kill_process};
use std::io::Read;
use std::process::Stdio;

/// A stopped pack leaves nothing, whenever the signal comes: here while file data is being written.
#[test]
fn a_stopped_pack_leaves_nothing_behind() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let fixture = Fixture::new();
        std::fs::create_dir(fixture.path("big")).unwrap();
        for number in 0..8 {
            let noise: Vec<u8> =
                (0..4_000_000u32).flat_map(|n| n.wrapping_mul(n ^ number).to_le_bytes()).collect();
            fixture.write(&format!("big/{number}"), noise);
        }
        let args = ["pack", "big", "big.sqfs", "--codec", "xz:9,extreme", "--jobs", "1"];
        let mut child = fixture.command(args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        // Its source is open once it is past scanning; from then on it works for many seconds.
        let opens = |name: &str| {
            let fds = std::fs::read_dir(format!("/proc/{}/fd", child.id())).unwrap();
            fds.flatten()
                .any(|fd| std::fs::read_link(fd.path()).is_ok_and(|to| to.to_string_lossy().contains(name)))
        };
        while !opens("big/") {
            std::thread::yield_now();
        }
        kill_process(Pid::from_child(&child), signal).unwrap();
        let status = child.wait().unwrap();
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        assert_eq!(status.code(), Some(code), "{stderr}");
        let run = Run { code: status.code(), stdout: Vec::new(), stderr };
        assert_eq!(run.said(), "error: stopped\n");
        assert_eq!(fixture.names(), ["big"]);
    }
}

#[test]
fn a_pack_that_waits_for_its_input_can_be_stopped() {
    let fixture = Fixture::new();
    fixture.stop_while_it_waits(["pack", "-", "x.sqfs"]);
    assert_eq!(fixture.names(), [""; 0]);
}
