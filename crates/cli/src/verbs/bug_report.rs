//! `packfs bug-report`: what maintainers ask for.

use crate::out::{Outcome, json, report};
use crate::version::Build;
use packfs_sandbox::Sandbox;
use serde::Serialize;
use std::fs::{File, read_to_string};
use std::process::ExitCode;

/// Print facts about packfs and this machine for a bug report
///
/// It names no user, host, or file of a user, and no values of variables.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  packfs bug-report
  packfs bug-report --json";

/// Variables that change what packfs does, besides its own and those of AWS.
const VARIABLES: &str = "ALL_PROXY CLICOLOR_FORCE COLUMNS CONTAINER DOCKER_CONFIG FAKEROOTKEY GLIBC_TUNABLES \
    HTTPS_PROXY HTTP_PROXY LANG LC_ALL LD_LIBRARY_PATH LD_PRELOAD NETRC NO_COLOR NO_PROXY REGISTRY_AUTH_FILE \
    RUST_BACKTRACE SOURCE_DATE_EPOCH SSL_CERT_FILE TERM TMPDIR TZ XDG_CACHE_HOME XDG_RUNTIME_DIR";

/// Document of `bug-report --json`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Document {
    #[serde(flatten)]
    build: Build,
    /// Distribution.
    system: Option<String>,
    /// Release of Linux.
    kernel: Option<String>,
    /// Filesystems of the kernel that packfs mounts, as far as they are loaded.
    filesystems: Vec<String>,
    /// C library that was loaded; "static" for a static program.
    libc: String,
    /// Processors that this process may use.
    processors: usize,
    /// Model of the processors.
    processor: Option<String>,
    /// Memory of the machine.
    memory_bytes: Option<u64>,
    /// Memory that is available.
    available_bytes: Option<u64>,
    /// Limit of memory by control groups.
    memory_limit_bytes: Option<u64>,
    /// Limit of the address space.
    address_space_limit_bytes: Option<u64>,
    /// True for root.
    root: bool,
    /// Columns of the terminal on standard error.
    terminal_columns: Option<usize>,
    /// Names of variables that change what packfs does.
    variables: Vec<String>,
    /// "available", or the reason why /dev/fuse cannot be opened.
    dev_fuse: String,
    /// True if fusermount3 is on `PATH`.
    fusermount3: bool,
    /// "available", or the reason why io_uring is not.
    io_uring: String,
    /// "Y" if FUSE offers io_uring.
    fuse_io_uring: Option<String>,
    /// Restrictions that `--sandbox` applies.
    sandbox: String,
}

impl Opts {
    /// Prints.
    pub fn run(self) -> Outcome {
        let document = Document::new();
        if self.json {
            json::print(&document)?;
        } else {
            report::print(json::text(&document)?)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Document {
    /// Applies the sandbox to this process.
    fn new() -> Self {
        let line = |path| read_to_string(path).ok().map(|text| text.trim().to_owned());
        let drivers = packfs::formats::drivers();
        let is_mounted = |name: &&str| drivers.contains(name) || ["fuse", "overlay"].contains(name);
        let loaded = read_to_string("/proc/filesystems").unwrap_or_default();
        let memory = |key| {
            let value = value("/proc/meminfo", key, ':')?;
            Some(value.strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
        };
        let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        let is_ours = |name: &str| name.starts_with("PACKFS_") || name.starts_with("AWS_");
        let is_listed = |name: &str| VARIABLES.split(' ').any(|own| own.eq_ignore_ascii_case(name));
        let mut variables: Vec<String> = names.filter(|name| is_ours(name) || is_listed(name)).collect();
        variables.sort();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let fuse = File::options().read(true).write(true).open("/dev/fuse");
        Document {
            build: Build::new(),
            system: value("/etc/os-release", "PRETTY_NAME", '='),
            kernel: line("/proc/sys/kernel/osrelease"),
            filesystems: loaded.split_whitespace().filter(is_mounted).map(str::to_owned).collect(),
            libc: libc(),
            processors: packfs::processor_count(),
            processor: ["model name", "cpu model", "uarch", "Model"]
                .iter()
                .find_map(|key| value("/proc/cpuinfo", key, ':')),
            memory_bytes: memory("MemTotal"),
            available_bytes: memory("MemAvailable"),
            memory_limit_bytes: packfs::group_memory_limit(),
            address_space_limit_bytes: rustix::process::getrlimit(rustix::process::Resource::As).current,
            root: packfs::mount::is_root(),
            terminal_columns: report::columns(std::io::stderr()),
            variables,
            dev_fuse: availability(fuse.map(drop)),
            fusermount3: std::env::split_paths(&path).any(|dir| dir.join("fusermount3").is_file()),
            io_uring: availability(packfs::mount::try_uring()),
            fuse_io_uring: line("/sys/module/fuse/parameters/enable_uring"),
            // Last, because it closes files to this process.
            sandbox: Sandbox::new()
                .apply()
                .map_or_else(|error| error.to_string(), |applied| applied.to_string()),
        }
    }
}

fn availability(tried: std::io::Result<()>) -> String {
    tried.map_or_else(|error| error.to_string(), |()| "available".into())
}

/// Returns the value of the first line with a key in a file.
fn value(path: &str, key: &str, separator: char) -> Option<String> {
    let text = read_to_string(path).ok()?;
    let (_, value) =
        text.lines().filter_map(|line| line.split_once(separator)).find(|(own, _)| own.trim() == key)?;
    Some(value.trim().trim_matches('"').to_owned())
}

/// Reads the banner of glibc, or the name of another library's file.
fn libc() -> String {
    let maps = read_to_string("/proc/self/maps").unwrap_or_default();
    let mut files = maps.split_whitespace().filter(|word| word.starts_with('/'));
    let name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    let is_libc = |path: &&str| name(path).starts_with("libc.") || name(path).starts_with("ld-musl");
    let Some(path) = files.find(is_libc) else { return "static".into() };
    let bytes = std::fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let banner = text.find("GNU C Library").and_then(|at| text.get(at..)?.lines().next());
    banner.map_or_else(|| name(path), str::to_owned)
}
