//! The `packfs-lab` program: `lab/cli` in an installation of `packfs`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

/// A program that runs out of memory fails like any other.
#[global_allocator]
static ALLOCATOR: packfs::mount::ReportingAllocator = packfs::mount::ReportingAllocator;

fn main() -> ExitCode {
    packfs_lab_cli::main()
}
