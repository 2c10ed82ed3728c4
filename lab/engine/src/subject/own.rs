//! The program packfs, which is a maker, a reader and an unpacker.

use std::path::Path;

use crate::process::{self, Invocation};
use crate::results::{Missing, Program};

/// The program at a path, which has to be packfs.
pub(super) fn program(path: &Path) -> Result<Program, Missing> {
    let missing = |why: String| Missing { what: "packfs".into(), why };
    let said = process::capture(&Invocation::new(path).arg("-V"), false)
        .map_err(|error| missing(format!("{path:?} does not run: {error}")))?;
    match said.split_once(' ') {
        Some(("packfs", version)) => Ok(Program {
            name: "packfs".into(),
            version: version.trim().into(),
            path: Some(path.to_string_lossy().into_owned()),
        }),
        _ => Err(missing(format!("{path:?} is not packfs"))),
    }
}
