//! `cargo xtask ci`: all checks and tests that a change must pass, for developers and the build
//! machine.
//!
//! Quick checks run first. A check whose tool is missing is reported as skipped. With `--peers
//! required`, as on the build machine, it is an error.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::failure::{Failure, Result};
use crate::{
    api, corpus, flows, instructions, kernels, licenses, metadata, peers, python, shell, tidy, workspace,
};

/// Run all checks and all tests
#[derive(clap::Args)]
pub struct Options {
    /// Programs of other projects that tests use
    #[arg(long, value_enum, default_value_t = Peers::Optional)]
    peers: Peers,
    /// Run the tests without the checks
    #[arg(long)]
    tests_only: bool,
    /// Fetch peers, kernels, the Debian root, and the oldest Rust while the checks run
    #[arg(long)]
    fetch: bool,
}

/// Environment variable with the mode of peers, for tests.
const PEERS: &str = "PACKFS_PEERS";

/// Mode of peers: programs of other projects that tests use.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Peers {
    /// Skip the tests of missing ones
    Optional,
    /// Fail if one is missing: needs `cargo xtask peers` first, and root for privileged operations
    Required,
    /// Run only the tests with peers, with the installed ones instead of those in target/peers
    System,
}

impl Peers {
    fn name(self) -> &'static str {
        match self {
            Self::Optional => "optional",
            Self::Required => "required",
            Self::System => "system",
        }
    }
}

enum Outcome {
    Done,
    Skipped(String),
}

pub fn run(Options { peers, tests_only, fetch }: Options) -> Result<()> {
    let mut steps = vec![];
    std::thread::scope(|scope| {
        // The network keeps one busy, the compiler the other.
        let fetching = fetch.then(|| scope.spawn(fetch_all));
        if !tests_only {
            check(&mut steps, peers)?;
        }
        let Some(fetching) = fetching else { return Ok(()) };
        let end = || fetching.join().unwrap_or_else(|_| Err(Failure::new("the thread panicked")));
        step(&mut steps, "fetching", || end().map(|()| Outcome::Done))
    })?;
    if !tests_only {
        // Not before, because fetching installs its toolchain.
        step(&mut steps, "floor", floor)?;
    }
    step(&mut steps, "tests", || test(peers))?;
    if !tests_only {
        // After the tests, because these use what they have built.
        step(&mut steps, "instructions", || {
            instructions::compare().map(|why| why.map_or(Outcome::Done, Outcome::Skipped))
        })?;
        step(&mut steps, "python lints", || tool("clippy", "clippy", &PYTHON_LINTS, peers))?;
        step(&mut steps, "python", || {
            python::check().map(|done| done.map_or_else(Outcome::Skipped, |()| Outcome::Done))
        })?;
    }

    eprintln!();
    for (name, took) in &steps {
        eprintln!("{name:16}{:6.1} s", took.as_secs_f64());
    }
    Ok(())
}

type Steps = Vec<(&'static str, Duration)>;

fn check(steps: &mut Steps, peers: Peers) -> Result<()> {
    step(steps, "format", || {
        tool("fmt", "rustfmt", &["--all", "--check"], peers)?;
        tool("fmt", "rustfmt", &[&PYTHON[..], &["--check"]].concat(), peers)
    })?;
    step(steps, "tidy", || tidy::run(tidy::Options::default()).map(|()| Outcome::Done))?;
    step(steps, "licenses", || licenses::run(licenses::Options).map(|()| Outcome::Done))?;
    step(steps, "cargo-deny", deny)?;
    step(steps, "workflows", workflows)?;
    let lints = [&ALL[..], &["--all-targets", "--quiet", "--", "-D", "warnings"]].concat();
    step(steps, "clippy", || tool("clippy", "clippy", &lints, peers))?;
    step(steps, "features", || features(peers))?;
    step(steps, "documentation", document)?;
    step(steps, "public items", || api::compare(false).map(|why| why.map_or(Outcome::Done, Outcome::Skipped)))
}

fn fetch_all() -> Result<()> {
    // Only one step needs it, which is skipped without it.
    if let Err(failure) = shell::run_quietly(rustup().args(INSTALL_FLOOR)) {
        eprintln!("cannot install Rust {FLOOR}: {failure}");
    }
    peers::run(peers::Options::default())?;
    kernels::run(kernels::Options::default())?;
    corpus::named("debian")?.ensure().map(drop)
}

fn step(steps: &mut Steps, name: &'static str, run: impl FnOnce() -> Result<Outcome>) -> Result<()> {
    eprintln!("==> {name}");
    let start = Instant::now();
    match run().map_err(|failure| Failure::new(format!("{name}: {failure}")))? {
        Outcome::Done => steps.push((name, start.elapsed())),
        Outcome::Skipped(why) => eprintln!("SKIPPED {name}: {why}"),
    }
    Ok(())
}

fn tool(verb: &str, component: &str, arguments: &[&str], peers: Peers) -> Result<Outcome> {
    if shell::capture(cargo().args([verb, "--version"])).is_err() {
        let why = format!("cargo {verb} is not installed; `rustup component add {component}` installs it");
        return if peers == Peers::Required { Err(Failure::new(why)) } else { Ok(Outcome::Skipped(why)) };
    }
    shell::run(cargo().arg(verb).args(arguments)).map(|()| Outcome::Done)
}

/// Runs cargo-deny with deny.toml and the database of advisories.
///
/// cargo-deny takes long to build, so it is never required: the check of licenses before reads the
/// same file and lacks only the advisories.
fn deny() -> Result<Outcome> {
    if shell::capture(cargo().args(["deny", "--version"])).is_err() {
        let why = "cargo deny is not installed; `cargo install cargo-deny --locked` installs it";
        return Ok(Outcome::Skipped(why.to_owned()));
    }
    shell::run(cargo().args(["deny", "check", "licenses", "bans", "sources"]))?;
    // The database comes from GitHub, which may be unreachable.
    if shell::capture(cargo().args(["deny", "fetch", "db"])).is_err() {
        return Ok(Outcome::Skipped(
            "cannot fetch the database of advisories; all other rules were checked".to_owned(),
        ));
    }
    shell::run(cargo().args(["deny", "check", "advisories"])).map(|()| Outcome::Done)
}

fn workflows() -> Result<Outcome> {
    let missing = flows::check()?.join(" and ");
    let why = format!("{missing} not found; docs/release.md says how to install");
    Ok(if missing.is_empty() { Outcome::Done } else { Outcome::Skipped(why) })
}

/// Everything of the workspace, with the program that is not installed by default.
const ALL: [&str; 3] = ["--workspace", "--features", "packfs-cli/lab"];

/// The Python package, which is a workspace of its own.
const PYTHON: [&str; 2] = ["--manifest-path", "python/Cargo.toml"];

/// Lints of the Python package, with the formats that its tests are built with.
const PYTHON_LINTS: [&str; 10] = [
    PYTHON[0],
    PYTHON[1],
    "--target-dir",
    "target",
    "--locked",
    "--no-default-features",
    "--quiet",
    "--",
    "-D",
    "warnings",
];

/// Smaller feature sets of the library; docs/guide/library.md lists their sizes.
const FEATURES: [&str; 2] = ["erofs,lz4", "formats,codecs"];

fn features(peers: Peers) -> Result<Outcome> {
    let base = ["--package", "packfs", "--quiet", "--no-default-features", "--features"];
    for set in FEATURES {
        let lints = [&base[..], &[set, "--", "-D", "warnings"]].concat();
        if let skipped @ Outcome::Skipped(_) = tool("clippy", "clippy", &lints, peers)? {
            return Ok(skipped);
        }
    }
    Ok(Outcome::Done)
}

/// Oldest Rust for everything that is published: `rust-version` of the workspace, and so of this
/// tool.
const FLOOR: &str = env!("CARGO_PKG_RUST_VERSION");

/// Arguments of rustup that install [`FLOOR`].
const INSTALL_FLOOR: [&str; 5] = ["toolchain", "install", FLOOR, "--profile", "minimal"];

/// Checks the program, and with it the library, with the oldest Rust; in a separate folder, because
/// each compiler would replace what the other has built.
fn floor() -> Result<Outcome> {
    if shell::capture(rustup().args(["run", FLOOR, "rustc", "--version"])).is_err() {
        let install = INSTALL_FLOOR.join(" ");
        return Ok(Outcome::Skipped(format!(
            "Rust {FLOOR} is not installed; `rustup {install}` installs it"
        )));
    }
    let mut check = rustup();
    check.args(["run", FLOOR, "cargo", "check", "--locked", "--quiet", "--package", "packfs-cli"]);
    shell::run(check.arg("--target-dir").arg(workspace::target().join("floor"))).map(|()| Outcome::Done)
}

fn rustup() -> Command {
    let mut command = Command::new("rustup");
    command.current_dir(workspace::root());
    command
}

/// Builds the documentation of the libraries and of this tool. The program is left out, because it
/// has the name of its library and would overwrite its pages.
fn document() -> Result<Outcome> {
    for what in [&["--workspace", "--lib"][..], &["--package", "xtask"]] {
        let mut command = cargo();
        command.arg("doc").args(what).args(["--no-deps", "--document-private-items", "--quiet"]);
        shell::run(command.env("RUSTDOCFLAGS", "-D warnings"))?;
    }
    Ok(Outcome::Done)
}

fn test(peers: Peers) -> Result<Outcome> {
    if peers != Peers::Required {
        eprintln!("tests without their program or privilege print `skipped` and the reason");
    }
    let mut command = cargo();
    // A run is long, so one failure must not hide others.
    command.arg("test").args(ALL).args(["--quiet", "--no-fail-fast"]).env(PEERS, peers.name());
    if peers == Peers::System {
        // Not `--package`: a part of the workspace would be built with other features.
        command.args(tests_with_peers()?.iter().flat_map(|name| ["--test", name]));
    }
    shell::run(&mut command).map(|()| Outcome::Done)
}

/// Returns the names of the test programs that may run a program of `cargo xtask peers`: with an
/// installed one in its place they may say something else, and no others can.
fn tests_with_peers() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for folder in ["crates", "crates/formats", "lab"] {
        for krate in children(&workspace::root().join(folder))? {
            let tests = krate.join("tests");
            let programs = if tests.is_dir() { children(&tests)? } else { Vec::new() };
            for path in programs {
                let is_program = path.extension().is_some_and(|extension| extension == "rs")
                    || path.join("main.rs").is_file();
                if is_program && asks_for_peers(&path)? {
                    names.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
                }
            }
        }
    }
    Ok(names)
}

fn children(folder: &Path) -> Result<Vec<PathBuf>> {
    let cannot = |error| Failure::new(format!("cannot read {}: {error}", folder.display()));
    let entries = std::fs::read_dir(folder).and_then(Iterator::collect::<std::io::Result<Vec<_>>>);
    let mut paths: Vec<PathBuf> = entries.map_err(cannot)?.iter().map(std::fs::DirEntry::path).collect();
    paths.sort();
    Ok(paths)
}

fn asks_for_peers(path: &Path) -> Result<bool> {
    if path.is_dir() {
        return children(path)?.iter().try_fold(false, |found, path| Ok(found || asks_for_peers(path)?));
    }
    let cannot = |error| Failure::new(format!("cannot read {}: {error}", path.display()));
    let text = String::from_utf8_lossy(&std::fs::read(path).map_err(cannot)?).into_owned();
    let mut asked = ["peer(", "peer_since("].into_iter().flat_map(|call| text.split(call).skip(1));
    // The lab asks whether programs that it found serve.
    Ok(asked.any(may_be_fetched) || text.contains("serves(&"))
}

/// True if the argument that a text begins with may be a program of `cargo xtask peers`: a variable
/// may be any.
fn may_be_fetched(argument: &str) -> bool {
    match argument.strip_prefix('"').and_then(|rest| rest.split_once('"')) {
        Some((name, _)) => peers::fetches(name),
        None => true,
    }
}

fn cargo() -> Command {
    let mut command = metadata::cargo();
    command.current_dir(workspace::root());
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_of_names_that_a_variable_holds_run_with_installed_programs() {
        let found = tests_with_peers().unwrap();
        for name in ["cli", "interop", "packfs"] {
            assert!(found.iter().any(|test| test == name), "{name} is missing in {found:?}");
        }
        assert!(!found.iter().any(|test| test == "cramfs"), "{found:?}");
        assert!(may_be_fetched("call.tool, call.since)") && may_be_fetched("\"squashfuse_ll\")"));
        assert!(!may_be_fetched("\"zstd\")"));
    }

    #[test]
    fn notes_only_steps_that_ran() {
        let mut steps = vec![];
        step(&mut steps, "a", || Ok(Outcome::Done)).unwrap();
        step(&mut steps, "b", || Ok(Outcome::Skipped("why".into()))).unwrap();
        let failed = step(&mut steps, "c", || Err(Failure::new("no"))).unwrap_err();
        assert_eq!(steps.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["a"]);
        assert_eq!(failed.to_string(), "c: no");
    }
}
