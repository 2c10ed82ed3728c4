//! Facts of this build.

use packfs_terminal::json;
use serde::Serialize;

/// Version, source, and parts of the program.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Build {
    /// Version of packfs.
    version: &'static str,
    /// Commit of the source, if the build knew it.
    commit: Option<&'static str>,
    /// Platform of the program, as Rust names it.
    target: &'static str,
    /// Compiler of the program.
    rustc: &'static str,
    /// Cargo features of the program.
    features: Vec<&'static str>,
    /// Formats.
    formats: Vec<&'static str>,
    /// Codec libraries with versions: of C as they state them, crates as locked.
    libraries: Vec<String>,
    /// License.
    license: &'static str,
}

impl Build {
    pub fn new() -> Self {
        let list =
            |text: Option<&'static str>| text.unwrap_or_default().split(',').filter(|word| !word.is_empty());
        let stated =
            packfs::codec::libraries().into_iter().map(|(name, version)| format!("{name} {version}"));
        Build {
            version: env!("CARGO_PKG_VERSION"),
            commit: option_env!("PACKFS_COMMIT"),
            target: env!("PACKFS_TARGET"),
            rustc: option_env!("PACKFS_RUSTC").unwrap_or("unknown"),
            features: list(option_env!("PACKFS_FEATURES")).collect(),
            formats: packfs::formats::all().iter().map(|format| format.name()).collect(),
            libraries: stated.chain(list(option_env!("PACKFS_CRATES")).map(str::to_owned)).collect(),
            license: env!("CARGO_PKG_LICENSE"),
        }
    }
}

/// Returns the text of `--version` after the name of the program.
pub fn long() -> String {
    let text = json::text(&Build::new()).unwrap_or_default();
    text.trim_start_matches("version: ").trim_end().to_owned()
}
