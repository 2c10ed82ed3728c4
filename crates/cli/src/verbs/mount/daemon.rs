//! The process that serves a mount: in the foreground, or started in the background and heard of
//! only when it answers.

use crate::out::Outcome;
use packfs::mount::record::Written;
use packfs::mount::{FuseMount, Unmounter};
use packfs::{Result, ResultExt};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};

/// Message of the background process when the mount answers.
const READY: &[u8] = b"ready\n";

/// Mounts with `mount`, and serves until it is unmounted or a signal comes.
pub fn serve(mount: impl FnOnce() -> Result<(FuseMount, Option<Written>)>) -> Outcome {
    // From here on a signal must not end the process before the mount is gone.
    let mut signals = signals()?;
    packfs::mount::share_heap();
    let (mounted, written) = mount()?;
    let unmounter = mounted.unmounter();
    std::thread::spawn(move || {
        for (index, _) in signals.forever().enumerate() {
            stop(index, &unmounter);
        }
    });
    let outcome = mounted.wait();
    if let Some(written) = written {
        written.remove();
    }
    outcome.map(|()| ExitCode::SUCCESS)
}

fn signals() -> Result<signal_hook::iterator::Signals> {
    signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP]).or_io(|| "cannot handle signals")
}

/// Unmounts at the first signal, and lets processes that use the mount finish. The second signal
/// ends the server, and with it their reads.
fn stop(index: usize, unmounter: &Unmounter) {
    if unmounter.unmount(false).is_ok() {
        return;
    }
    let _ = unmounter.unmount(true);
    if index > 0 {
        std::process::exit(1);
    }
}

/// Serves like [`serve`], in the process that [`start`] started.
pub fn serve_detached(mount: impl FnOnce() -> Result<(FuseMount, Option<Written>)>) -> Outcome {
    // Leaves session and terminal. It fails only if the process leads a session already.
    let _ = rustix::process::setsid();
    serve(|| {
        let mounted = mount()?;
        // No directory is kept in use.
        std::env::set_current_dir("/").or_io(|| "cannot go to \"/\"")?;
        detach().or_io(|| "cannot report that the mount is ready")?;
        Ok(mounted)
    })
}

/// Reports that the mount answers, and closes the files of the starter. If the starter is gone,
/// that is an error, because the mount would go unnoticed.
fn detach() -> std::io::Result<()> {
    let null = File::options().read(true).write(true).open("/dev/null")?;
    dup2_stdin(&null)?;
    dup2_stderr(&null)?;
    let mut out = std::io::stdout().lock();
    out.write_all(READY)?;
    out.flush()?;
    dup2_stdout(&null)?;
    Ok(())
}

/// Starts this program once more, in the background, and waits until the mount answers or has
/// failed; errors are printed by the process that meets them.
pub fn start() -> Outcome {
    let mut args: Vec<OsString> = super::helper::arguments(std::env::args_os().collect());
    // Behind the program's name and the verb.
    args.insert(2.min(args.len()), "--detached".into());
    let cannot = || "cannot start a process in the background";
    // By its name, as others are to see it, unless that is gone.
    let program = std::env::current_exe().ok().filter(|program| program.exists());
    let mut command = Command::new(program.unwrap_or_else(|| "/proc/self/exe".into()));
    command.arg0(&args[0]).args(&args[1..]).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().or_io(cannot)?;
    let mut said = Vec::new();
    if let Some(mut stdout) = child.stdout.take() {
        // Ends when the child has let go of it or is gone.
        stdout.read_to_end(&mut said).or_io(cannot)?;
    }
    if said == READY {
        return Ok(ExitCode::SUCCESS);
    }
    let code = child.wait().or_io(cannot)?.code();
    Ok(ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).filter(|&code| code != 0).unwrap_or(1)))
}
