//! Property of merging.

use super::image::with_pit;
use crate::Breach;
use crate::judge::{digest, open};
use packfs::Silent;

/// Longest input that is tried.
const INPUT_LEN_MAX: usize = 1 << 20;

/// Requires that an image that is merged alone holds the tree that was read from it, if it can be
/// merged.
///
/// # Errors
/// A [`Breach`].
pub fn merge(input: &[u8]) -> Result<(), Breach> {
    if input.len() > INPUT_LEN_MAX {
        return Ok(());
    }
    with_pit(|pit| {
        let (from, to) = (pit.image().with_extension("input"), pit.image());
        let failed = |error: std::io::Error| Breach::MergeFailed(error.to_string());
        std::fs::write(&from, input).map_err(failed)?;
        let merged = packfs::merge([&from], &to).run_with(&Silent);
        std::fs::remove_file(&from).map_err(failed)?;
        if merged.is_err() {
            return Ok(());
        }
        let Ok(opened) = open(input, 1) else { return Ok(()) };
        let Ok(loaded) = opened.load(&Silent) else { return Ok(()) };
        let Ok(before) = digest(&opened, &loaded) else { return Ok(()) };
        let failed = |error: packfs::Error| Breach::MergeFailed(error.to_string());
        let again = packfs::OpenOptions::new().jobs(1).open(&to).map_err(failed)?;
        let reloaded = again.load(&Silent).map_err(failed)?;
        let after = digest(&again, &reloaded).map_err(failed)?;
        if before == after {
            return Ok(());
        }
        let (first, second) = (loaded.tree.node_count(), reloaded.tree.node_count());
        Err(Breach::MergeDiffers(format!("{first} nodes before, {second} after")))
    })
}
