//! Threads and memory that this machine or its limits do not have. Packing and checking make do
//! with fewer threads where they can; where a thread is a must, the program fails like any other
//! instead of panicking.

use packfs::Error;
use rustix::process::{Resource, getrlimit};

/// Beginnings of the messages with which the standard library panics where a thread cannot be
/// started: in the thread that asks for another, and in the new one, whose stack for signals is
/// allocated after it has begun.
const NO_THREAD: [&str; 3] = [
    "failed to spawn thread",
    "failed to allocate an alternative stack",
    "failed to set up alternative stack guard page",
];

/// Prepares the program for limits, before it has a second thread.
pub fn prepare() {
    packfs::mount::return_long_blocks();
    if getrlimit(Resource::As).current.is_some() {
        // A heap for each thread would reserve address space by the hundred megabytes.
        packfs::mount::share_heap();
    }
    let otherwise = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let is_no_thread = |text: &str| NO_THREAD.iter().any(|beginning| text.starts_with(beginning));
        if panic.payload_as_str().is_some_and(is_no_thread) {
            let error = Error::failed("cannot start a thread: memory or processes are limited")
                .hint("use --jobs 1, or raise the limits that ulimit -v and ulimit -u show");
            crate::report::failure(&error);
            std::process::exit(1);
        }
        otherwise(panic);
    }));
}
