//! Properties of any manifest.

use super::image::with_pit;
use crate::Breach;
use packfs::Silent;
use packfs::source::{Shape, load_manifest, write_manifest};

/// Longest input that is tried.
const INPUT_LEN_MAX: usize = 64 << 10;

/// A manifest is read or refused; what was read can be written and is read again as the same.
///
/// # Errors
/// A [`Breach`].
pub fn manifest(input: &[u8]) -> Result<(), Breach> {
    // Files of this machine may be named, and some of those do things when they are looked at.
    if input.len() > INPUT_LEN_MAX || input.windows(4).any(|word| word == b"from") {
        return Ok(());
    }
    with_pit(|pit| {
        let path = pit.image();
        let failed = |what: String| Breach::RepackFailed(what);
        std::fs::write(&path, input).map_err(|error| failed(error.to_string()))?;
        let Ok(loaded) = load_manifest(&path, &Shape::default(), &Silent) else { return Ok(()) };
        super::tar::contents_are_there(&loaded)?;
        let mut written = Vec::new();
        write_manifest(&loaded.tree, &mut written).map_err(|error| failed(error.to_string()))?;
        std::fs::write(&path, &written).map_err(|error| failed(error.to_string()))?;
        // Contents are named as files beside it, which are not there.
        if written.windows(6).any(|word| word == b" from=") {
            return Ok(());
        }
        let again =
            load_manifest(&path, &Shape::default(), &Silent).map_err(|error| failed(error.to_string()))?;
        let mut twice = Vec::new();
        write_manifest(&again.tree, &mut twice).map_err(|error| failed(error.to_string()))?;
        if written == twice { Ok(()) } else { Err(Breach::RepackDiffers("of a manifest".into())) }
    })
}
