//! Lack of threads and memory. Packing and checking continue with fewer threads if possible; if a
//! thread is required, the program fails with an error instead of panicking.

use packfs::Error;
use rustix::process::{Resource, getrlimit};

/// Prefixes of the panic messages of the standard library when a thread cannot be started: in the
/// thread that requests another, and in the new one, which allocates its stack for signals.
const NO_THREAD: [&str; 3] = [
    "failed to spawn thread",
    "failed to allocate an alternative stack",
    "failed to set up alternative stack guard page",
];

/// Prepares the program for limits; call before it has a second thread.
pub fn prepare() {
    packfs::mount::return_long_blocks();
    if getrlimit(Resource::As).current.is_some() {
        // Separate heaps would each reserve hundreds of megabytes of address space.
        packfs::mount::share_heap();
    }
    let otherwise = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let payload = panic.payload();
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
        let is_no_thread = |text: &str| NO_THREAD.iter().any(|beginning| text.starts_with(beginning));
        if text.is_some_and(is_no_thread) {
            let error = Error::failed("cannot start a thread: memory or processes are limited")
                .hint("use --jobs 1, or raise the limits that ulimit -v and ulimit -u show");
            crate::report::failure(&error);
            std::process::exit(1);
        }
        otherwise(panic);
    }));
}
