//! Properties of any hash tree.

use super::image::with_pit;
use crate::Breach;
use crate::outcome::Outcome;
use packfs::MemoryImage;
use packfs::integrity::{self, VerityParams};
use packfs::{Error, ErrorKind, Image, Silent};
use std::fs::File;
use xxhash_rust::xxh3::xxh3_64;

/// Longest input that is tried.
const INPUT_LEN_MAX: usize = 1 << 20;
const SIGNATURE: &[u8] = b"verity\0\0";
/// Superblocks stand at multiples of this at least.
const STEP: usize = 512;
/// Superblocks that are looked at in one input.
const PLACES_MAX: usize = 3;

/// A superblock is read or refused. A tree is found at the end or is not there; one that is called
/// sound is, byte for byte, what is made anew of the data that it covers, with the same root hash;
/// what is called damaged lies within what is covered.
///
/// # Errors
/// A [`Breach`].
pub fn verity(input: &[u8]) -> Result<(), Breach> {
    outcome(input).map(drop)
}

pub(crate) fn outcome(input: &[u8]) -> Result<Outcome, Breach> {
    if input.len() > INPUT_LEN_MAX {
        return Ok(Outcome::Refused("too long to be tried".into()));
    }
    let image = MemoryImage::new("mutated image", input.to_vec());
    let found = integrity::find_appended(&image).map_err(|error| Breach::NotTheInput(error.to_string()))?;
    if let Some((at, params)) = &found
        && (*at != params.data_len() || at + params.hash_len() != image.len())
    {
        return Err(Breach::Integrity(format!("a tree found at {at}, {params:?}")));
    }
    let places = (0..input.len()).step_by(STEP).filter(|&at| input[at..].starts_with(SIGNATURE));
    for at in places.take(PLACES_MAX) {
        let outcome = at_place(&image, at as u64);
        if found.as_ref().is_some_and(|(found, _)| *found == at as u64) {
            return outcome;
        }
        outcome?;
    }
    Ok(Outcome::Refused("no tree is appended".into()))
}

fn at_place(image: &MemoryImage, at: u64) -> Result<Outcome, Breach> {
    let refused = |error: Error| match error.kind() {
        ErrorKind::Corrupt | ErrorKind::Unsupported => Ok(Outcome::Refused(error.to_string())),
        _ => Err(Breach::NotTheInput(error.to_string())),
    };
    let params = match integrity::read_verity(image, at) {
        Ok(params) => params,
        // It begins like one, and ends too early.
        Err(error) if error.kind() == ErrorKind::Failed => return Ok(Outcome::Refused(error.to_string())),
        Err(error) => return refused(error),
    };
    let report = match integrity::verify_verity(image, &params, image, at, 1, &Silent) {
        Ok(report) => report,
        Err(error) => return refused(error),
    };
    let named = &report.first_damaged;
    let within = named.is_sorted_by(|a, b| a < b)
        && named.last().is_none_or(|&last| last < params.data_blocks)
        && named.len() as u64 <= report.damaged_blocks
        && report.damaged_blocks <= params.data_blocks;
    if !within {
        return Err(Breach::Integrity(format!("damage where nothing is covered: {report:?}")));
    }
    if !report.is_sound(&report.stored_root_hash) {
        return Ok(Outcome::Refused("the tree is not sound".into()));
    }
    same_when_made_anew(image, &params, at, &report.root_hash)?;
    Ok(Outcome::Read(xxh3_64(&report.root_hash)))
}

fn same_when_made_anew(
    image: &MemoryImage,
    params: &VerityParams,
    at: u64,
    root_hash: &[u8],
) -> Result<(), Breach> {
    let other = |what: String| Breach::Integrity(format!("called sound, but made anew {what}"));
    let made = with_pit(|pit| {
        let path = pit.image();
        let out = File::create(&path).map_err(|error| other(error.to_string()))?;
        let root = integrity::write_verity(image, params, &out, 0, 1, &Silent)
            .map_err(|error| other(error.to_string()))?;
        if root != root_hash {
            return Err(other("it has another root hash".into()));
        }
        std::fs::read(&path).map_err(|error| other(error.to_string()))
    })?;
    // Between superblock and tree there may be anything.
    let head_len = STEP.max(params.hash_block_len as usize);
    let tree = made.get(head_len..).unwrap_or_default();
    // One block needs no tree.
    if tree.is_empty() {
        return Ok(());
    }
    let mut stored = vec![0; tree.len()];
    image.read_exact_at(at + head_len as u64, &mut stored).map_err(|error| other(error.to_string()))?;
    if stored == tree { Ok(()) } else { Err(other("the tree is another one".into())) }
}
