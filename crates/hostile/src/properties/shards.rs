//! Property of plans, lists, sidecars, and packed shards.

use super::image::with_pit;
use crate::corpus::{BETWEEN, sha256};
use crate::judge::digest;
use crate::outcome::Outcome;
use crate::{Breach, Sandpit};
use packfs::shards::{DirStore, Plan, Sidecar, shard_images, verify_merged, verify_shard};
use packfs::{Error, ErrorKind, Result, ResultExt, Silent};
use std::path::Path;

/// Longest input that is tried.
const INPUT_LEN_MAX: usize = 1 << 20;
/// Shards that are verified.
const SHARDS_MAX: usize = 8;

/// Shards of a plan are merged and verified, or refused; a merged image can be read. The input is
/// `plan.json`, and list, sidecar, and image of each shard, with `BETWEEN` between them; a last
/// byte other than 0 has their digests put right.
///
/// # Errors
/// A [`Breach`].
pub fn shards(input: &[u8]) -> Result<(), Breach> {
    outcome(input).map(drop)
}

pub(crate) fn outcome(input: &[u8]) -> Result<Outcome, Breach> {
    let Some((right, bytes)) = input.split_last().filter(|_| input.len() <= INPUT_LEN_MAX) else {
        return Ok(Outcome::Refused("of no length that is tried".into()));
    };
    let mut parts = split(bytes);
    if *right != 0 {
        put_right(&mut parts);
    }
    with_pit(|pit| {
        let outcome = tried(&parts, pit).unwrap_or_else(|error| refused(&error));
        pit.clear().and(outcome)
    })
}

fn split(bytes: &[u8]) -> Vec<Vec<u8>> {
    let (mut parts, mut rest) = (Vec::new(), bytes);
    while let Some(at) = rest.windows(BETWEEN.len()).position(|word| word == BETWEEN) {
        parts.push(rest[..at].to_vec());
        rest = &rest[at + BETWEEN.len()..];
    }
    parts.push(rest.to_vec());
    parts
}

/// Has the plan and the sidecars tell the digests of what there is, so that more than digests is
/// tried.
fn put_right(parts: &mut [Vec<u8>]) -> Option<()> {
    let (text, shards) = parts.split_first_mut()?;
    let mut plan: Plan = serde_json::from_slice(text).ok()?;
    plan.recipe_sha256 = plan.recipe.digest().ok()?;
    for (shard, parts) in plan.shards.iter_mut().zip(shards.chunks_exact_mut(3)) {
        let [list, text, image] = parts else { break };
        shard.list_sha256 = sha256(list);
        let Ok(sidecar) = serde_json::from_slice::<Sidecar>(text) else { continue };
        let right = Sidecar {
            recipe_sha256: plan.recipe_sha256.clone(),
            list_sha256: shard.list_sha256.clone(),
            size: image.len() as u64,
            sha256: sha256(image),
            ends_sha256: sha256(image),
            ..sidecar
        };
        *text = right.text().ok()?;
    }
    *text = serde_json::to_vec(&plan).ok()?;
    Some(())
}

/// Merges and verifies.
///
/// # Errors
/// Those of packfs.
fn tried(parts: &[Vec<u8>], pit: &Sandpit) -> Result<Result<Outcome, Breach>> {
    let (folder, store_folder, image) = (pit.target().join("plan"), pit.target().join("store"), pit.image());
    for folder in [&folder, &store_folder] {
        std::fs::create_dir_all(folder).or_io(|| "cannot create a folder")?;
    }
    let write = |path: &Path, bytes: &[u8]| std::fs::write(path, bytes).or_io(|| "cannot write a part");
    let Some((text, shards)) = parts.split_first() else { return Ok(Ok(Outcome::Refused("empty".into()))) };
    write(&folder.join("plan.json"), text)?;
    let plan = Plan::read(&folder)?;
    for (index, (shard, parts)) in plan.shards.iter().zip(shards.chunks(3)).enumerate() {
        let name = plan.name_of(shard);
        let places = [
            plan.list_path(index),
            store_folder.join(format!("{name}.json")),
            store_folder.join(format!("{name}.shard")),
        ];
        places.iter().zip(parts).try_for_each(|(path, part)| write(path, part))?;
    }
    let store = DirStore::open(&store_folder, false)?;
    for index in 0..plan.shards.len().min(SHARDS_MAX) {
        verify_shard(&plan, index, &store, 1, &Silent)?;
    }
    let _ = plan.cuts();
    packfs::merge(shard_images(&plan, &store, &Silent)?, &image).run_with(&Silent)?;
    let read = packfs::OpenOptions::new().jobs(1).open(&image).and_then(|opened| {
        let loaded = opened.load(&Silent)?;
        Ok(digest(&opened, &loaded).unwrap_or_default())
    });
    let read = match read {
        Ok(digest) => digest,
        Err(error) => return Ok(Err(Breach::MergeFailed(error.to_string()))),
    };
    verify_merged(&plan, &image, 1, &Silent)?;
    Ok(Ok(Outcome::Read(read)))
}

/// Takes an error for a refusal, unless it is one of the machine. A part that is missing is the
/// input's fault.
fn refused(error: &Error) -> Result<Outcome, Breach> {
    let is_missing = error.io_source().is_some_and(|source| source.kind() == std::io::ErrorKind::NotFound);
    if error.kind() == ErrorKind::Io && !is_missing {
        return Err(Breach::NotTheInput(error.to_string()));
    }
    Ok(Outcome::Refused(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::inputs;
    use crate::properties::Input;

    #[test]
    fn valid_shards_are_merged_and_digests_that_were_put_right_let_others_be_merged() {
        let mut digests = Vec::new();
        for base in inputs(Input::Shards).unwrap() {
            let Outcome::Read(digest) = outcome(&base.bytes).unwrap() else { panic!("{}", base.name) };
            digests.push(digest);
            let mut bytes = base.bytes;
            let at = bytes.windows(5).position(|word| word == b" 9000").unwrap();
            bytes[at + 1] = b'8';
            let was_refused = matches!(outcome(&bytes).unwrap(), Outcome::Refused(_));
            // The length is compared with the image, and a difference is a finding.
            assert_eq!(was_refused, bytes.ends_with(&[0]), "{}", base.name);
        }
        assert!(digests[0] == digests[1] && digests[2] == digests[3], "{digests:?}");
    }
}
