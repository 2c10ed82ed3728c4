//! Threads and memory that this machine or its limits do not have. Packing and checking make do with fewer threads
//! where they can; where a thread is a must, the program fails like any other instead of panicking.

use packfs::Error;
use rustix::process::{Resource, getrlimit};

/// Message of the standard library's panic where a thread cannot be started.
const NO_THREAD: &str = "failed to spawn thread";

/// Prepares the program for limits, before it has a second thread.
pub fn prepare() {
    if getrlimit(Resource::As).current.is_some() {
        // A heap for each thread would reserve address space by the hundred megabytes.
        packfs::mount::share_heap();
    }
    let otherwise = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if panic.payload_as_str().is_some_and(|text| text.starts_with(NO_THREAD)) {
            let error = Error::failed("cannot start a thread: memory or processes are limited")
                .hint("fewer are needed with --jobs 1; ulimit -v and ulimit -u show what is allowed");
            crate::report::failure(&error);
            std::process::exit(1);
        }
        otherwise(panic);
    }));
}
