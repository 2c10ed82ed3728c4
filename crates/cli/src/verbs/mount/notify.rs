//! A named pipe that hears whether a mount answers, as squashfuse's `notify_pipe`.

use crate::out::Outcome;
use crate::out::report;
use packfs::printable;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

const READY: u8 = b's';
const FAILED: u8 = b'f';

/// Serves by `serve`, which calls its argument when the mount answers; tells the pipe.
pub fn told(pipe: Option<&Path>, serve: impl FnOnce(&dyn Fn()) -> Outcome) -> Outcome {
    let Some(pipe) = pipe else { return serve(&|| {}) };
    let outcome = serve(&|| {
        let pipe = pipe.to_owned();
        // Opening waits for a reader, and the mount must answer meanwhile.
        std::thread::spawn(move || tell(&pipe, READY));
    });
    if outcome.is_err() {
        tell(pipe, FAILED);
    }
    outcome
}

fn tell(pipe: &Path, status: u8) {
    let is_pipe = std::fs::metadata(pipe).map(|found| found.file_type().is_fifo());
    let written = is_pipe.and_then(|is_pipe| {
        if is_pipe {
            File::options().write(true).open(pipe)?.write_all(&[status])
        } else {
            Err(std::io::Error::other("it is not a pipe"))
        }
    });
    if let Err(error) = written {
        report::warning(&format!("cannot write to {}: {error}", printable(&pipe.display().to_string())));
    }
}
