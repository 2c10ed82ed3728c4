//! `cargo xtask python`: the Python package: its wheel, and its tests in a virtual environment.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Failure, Result};
use crate::{dist, shell, workspace};

/// Build and test the Python package
///
/// Builds a wheel in target/python/wheels, with --target in target/python/TARGET. Without --wheel,
/// installs it in the virtual environment target/python/venv, and runs python/tests. Fetches
/// maturin, pytest, fsspec, and mypy from PyPI if the environment lacks them, and with --target zig
/// from PyPI and the standard library by rustup. mypy checks the types of the package, and compares
/// its stubs with the native part.
#[derive(clap::Args)]
pub struct Options {
    /// Build an optimized wheel, with the program packfs in it, and run no tests
    #[arg(long)]
    wheel: bool,
    /// Leave the program out of the wheel, which takes less time to build
    #[arg(long, requires = "wheel")]
    no_program: bool,
    /// Build it by zig for other machines: x86_64-unknown-linux-gnu (glibc 2.17 and newer),
    /// x86_64-unknown-linux-musl, or the same of aarch64
    #[arg(long, requires = "wheel")]
    target: Option<String>,
    /// Python 3.11 or newer with the module venv
    #[arg(long, value_name = "PROGRAM", default_value = "python3")]
    python: String,
    /// Packages of PyPI for further tests, separated by commas, such as
    /// numpy,pandas,pyarrow,zarr,torch
    #[arg(long, value_name = "PACKAGES", default_value = "")]
    with: String,
}

/// Packages of PyPI: what builds the wheel, and what its tests need.
const TOOLS: [&str; 4] = ["maturin==1.16.0", "pytest>=8,<10", "fsspec==2026.9.0", "mypy==2.4.1"];

/// Ends with success if Python is recent enough, and has what virtual environments need.
const PROBE: &str = "import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))";

pub fn run(Options { wheel, no_program, target, python, with }: Options) -> Result<()> {
    let has_program = !no_program;
    let venv = match Venv::prepare(&python, &with)? {
        Ok(venv) => venv,
        Err(missing) => return Err(Failure::new(missing)),
    };
    if wheel {
        let wheel = match target {
            Some(target) => venv.build_wheel_for(&target, has_program)?,
            None => venv.build_wheel(true, has_program)?,
        };
        println!("{}", wheel.display());
        return Ok(());
    }
    venv.test()
}

/// Builds the wheel and runs the tests; returns the reason if Python or a package of PyPI is
/// missing.
pub fn check() -> Result<std::result::Result<(), String>> {
    match Venv::prepare("python3", "")? {
        Ok(venv) => venv.test().map(Ok),
        Err(missing) => Ok(Err(missing)),
    }
}

struct Venv {
    folder: PathBuf,
}

impl Venv {
    /// Makes the environment, unless it is there; returns the reason if it cannot be made here.
    fn prepare(python: &str, with: &str) -> Result<std::result::Result<Self, String>> {
        if shell::capture(Command::new(python).args(["-c", PROBE])).is_err() {
            return Ok(Err(format!("{python} is missing, is older than 3.11, or has no module venv")));
        }
        let folder = workspace::target().join("python/venv");
        let venv = Venv { folder };
        if shell::capture(Command::new(venv.program("python")).args(["-c", PROBE])).is_err() {
            workspace::remove_dir(&venv.folder)?;
            shell::run_quietly(Command::new(python).args(["-m", "venv"]).arg(&venv.folder))?;
        }
        let wanted = TOOLS.into_iter().chain(with.split(',').filter(|package| !package.is_empty()));
        let mut install = Command::new(venv.program("python"));
        install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(wanted);
        if let Err(failure) = shell::run_quietly(&mut install) {
            return Ok(Err(format!("packages of PyPI cannot be installed: {failure}")));
        }
        Ok(Ok(venv))
    }

    fn program(&self, name: &str) -> PathBuf {
        self.folder.join("bin").join(name)
    }

    /// Builds a wheel. If it is to have the program packfs, an optimized one holds it, any other
    /// one if it was built before.
    fn build_wheel(&self, is_optimized: bool, has_program: bool) -> Result<PathBuf> {
        let target = workspace::target();
        let before = Some(target.join("debug/packfs")).filter(|program| program.is_file());
        let program = match (has_program, is_optimized) {
            (false, _) => None,
            (true, true) => Some(dist::program_of_machine()?),
            (true, false) => before,
        };
        let wheels = target.join("python/wheels");
        let mut maturin = self.maturin(program.as_deref(), &wheels)?;
        maturin.args(["--profile", if is_optimized { "release" } else { "dev" }]);
        if !is_optimized {
            // Two formats are enough for the tests, and build in half of the time.
            maturin.arg("--no-default-features");
        }
        shell::run(&mut maturin)?;
        the_wheel(&wheels)
    }

    fn build_wheel_for(&self, target: &str, has_program: bool) -> Result<PathBuf> {
        let arch = target.split('-').next().unwrap_or_default();
        let program =
            has_program.then(|| dist::program(&format!("{arch}-unknown-linux-musl"))).transpose()?;
        dist::fetch_library(target)?;
        let wheels = workspace::target().join("python").join(target);
        let mut maturin = self.maturin(program.as_deref(), &wheels)?;
        maturin.args(["--profile", "release", "--zig", "--target", target, "--compatibility"]);
        maturin.arg(if target.ends_with("-musl") { "musllinux_1_2" } else { "manylinux2014" });
        // Debug information and symbols would make half of the wheel.
        maturin.env("PATH", dist::zig_path()?).env("CARGO_PROFILE_RELEASE_STRIP", "symbols");
        shell::run(&mut maturin)?;
        the_wheel(&wheels)
    }

    /// Returns the command that builds a wheel in a folder, with a program if one is given.
    fn maturin(&self, program: Option<&Path>, wheels: &Path) -> Result<Command> {
        let folder = workspace::root().join("python");
        let scripts = folder.join("packfs.data/scripts");
        workspace::make_dir(&scripts)?;
        // Anything in the folder becomes a command.
        let installed = scripts.join("packfs");
        let _ = std::fs::remove_file(&installed);
        if let Some(program) = program {
            std::fs::copy(program, &installed).map_err(|error| Failure::io("copy", program, error))?;
        }
        workspace::remove_dir(wheels)?;
        let mut maturin = Command::new(self.program("maturin"));
        maturin.args(["build", "--quiet", "--interpreter"]).arg(self.program("python"));
        maturin.arg("--out").arg(wheels);
        maturin.env("CARGO_TARGET_DIR", workspace::target()).current_dir(folder);
        Ok(maturin)
    }

    fn test(&self) -> Result<()> {
        let wheel = self.build_wheel(false, true)?;
        let mut install = Command::new(self.program("python"));
        install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        install.args(["--force-reinstall", "--no-deps"]).arg(&wheel);
        shell::run(&mut install)?;
        let mut tests = Command::new(self.program("python"));
        tests.args(["-m", "pytest"]).current_dir(workspace::root().join("python"));
        // The package that was installed is tested, not the folder beside the tests.
        shell::run(tests.env("PYTHONSAFEPATH", "1").env("PYTHONDONTWRITEBYTECODE", "1"))?;
        self.check_types()
    }

    fn check_types(&self) -> Result<()> {
        let cache = workspace::target().join("python/mypy");
        let mypy = |module: &str| {
            let mut command = Command::new(self.program("python"));
            command.args(["-m", module]).current_dir(workspace::root().join("python"));
            command.env("PYTHONSAFEPATH", "1").env("MYPY_CACHE_DIR", &cache);
            command
        };
        shell::run(mypy("mypy").arg("--no-error-summary"))?;
        shell::run_quietly(mypy("mypy.stubtest").args(["--concise", "packfs._packfs"]))
    }
}

/// Returns the only wheel in a folder.
fn the_wheel(folder: &Path) -> Result<PathBuf> {
    let entries = std::fs::read_dir(folder).map_err(|error| Failure::io("read", folder, error))?;
    let is_wheel = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "whl");
    let found = entries.flatten().map(|entry| entry.path()).find(is_wheel);
    found.ok_or_else(|| Failure::new(format!("maturin left no wheel in {}", folder.display())))
}
