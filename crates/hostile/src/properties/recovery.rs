//! Properties of any recovery file.

use super::image::with_pit;
use crate::Breach;
use crate::corpus::protected;
use crate::outcome::Outcome;
use packfs::integrity::{self, RecoveryIndex, RecoveryState};
use packfs::{Error, ErrorKind, Image, Silent};
use packfs::{FileImage, MemoryImage};
use packfs_testkit::Random;
use std::fs::File;
use std::os::unix::fs::FileExt;
use xxhash_rust::xxh3::xxh3_64;

/// Longest input that is tried.
const INPUT_LEN_MAX: usize = 1 << 20;
/// Bytes of a repaired image that are compared; recovery data may claim terabytes.
const TOLD_LEN: u64 = 2 << 20;

/// A recovery file is read or refused. What it says is lost or good lies within what it says there
/// is; what it repairs is intact afterwards by its own account, and never longer than it says; and
/// the image is what it was if the file is. The last two bytes of the input say of which image it
/// is, and how that is damaged.
///
/// # Errors
/// A [`Breach`].
pub fn recovery(input: &[u8]) -> Result<(), Breach> {
    outcome(input).map(drop)
}

pub(crate) fn outcome(input: &[u8]) -> Result<Outcome, Breach> {
    let Some((file, &[which, damage])) = input.split_last_chunk::<2>() else {
        return Ok(Outcome::Refused("too short to say anything".into()));
    };
    if input.len() > INPUT_LEN_MAX {
        return Ok(Outcome::Refused("too long to be tried".into()));
    }
    let image = MemoryImage::new("protected image", damaged(which, damage));
    let file = MemoryImage::new("mutated recovery file", file.to_vec());
    let index = match RecoveryIndex::read(&file) {
        Ok(index) => index,
        Err(error) => return refused(&error, &[ErrorKind::Corrupt]),
    };
    let state = survey(&image, &file, &index)?;
    with_pit(|pit| {
        let path = pit.image();
        let broken = |what: String| Breach::Integrity(what);
        let out = File::options().read(true).write(true).create(true).truncate(true).open(&path);
        let out = out.map_err(|error| broken(error.to_string()))?;
        let len = index.params.image_len.max(image.len());
        // More than the file system can hold: the program would say so.
        if out.set_len(len).is_err() {
            return Ok(Outcome::Refused("longer than files can be".into()));
        }
        let mut bytes = vec![0; image.len() as usize];
        image.read_exact_at(0, &mut bytes).map_err(|error| broken(error.to_string()))?;
        out.write_all_at(&bytes, 0).map_err(|error| broken(error.to_string()))?;
        if let Err(error) = integrity::repair(&image, &file, &index, &state, &out, 1, &Silent) {
            return refused(&error, &[ErrorKind::Corrupt]);
        }
        if out.metadata().map(|found| found.len()).ok() != Some(len) {
            return Err(broken("repair changed the length".into()));
        }
        let repaired = FileImage::open(&path).map_err(|error| broken(error.to_string()))?;
        if !survey(&repaired, &file, &index)?.is_intact() {
            return Err(broken("repaired, and still not intact".into()));
        }
        let mut told = vec![0; repaired.len().min(TOLD_LEN) as usize];
        repaired.read_exact_at(0, &mut told).map_err(|error| broken(error.to_string()))?;
        Ok(Outcome::Read(xxh3_64(&told) ^ len))
    })
}

fn refused(error: &Error, allowed: &[ErrorKind]) -> Result<Outcome, Breach> {
    if allowed.contains(&error.kind()) {
        Ok(Outcome::Refused(error.to_string()))
    } else {
        Err(Breach::NotTheInput(error.to_string()))
    }
}

fn survey(image: &dyn Image, file: &dyn Image, index: &RecoveryIndex) -> Result<RecoveryState, Breach> {
    let state = integrity::survey(image, file, index, 1, &Silent)
        .map_err(|error| Breach::NotTheInput(error.to_string()))?;
    let params = &index.params;
    let within = |blocks: &[u32], count: u32| {
        blocks.is_sorted_by(|a, b| a < b) && blocks.last().is_none_or(|&last| last < count)
    };
    let holds = within(&state.lost, params.data_count) && within(&state.good_recovery, params.recovery_count);
    if holds { Ok(state) } else { Err(Breach::Integrity(format!("blocks that there are not: {state:?}"))) }
}

/// An image, some bytes of which are others, or are missing.
fn damaged(which: u8, damage: u8) -> Vec<u8> {
    let mut bytes = protected(which).to_vec();
    if damage == 0 {
        return bytes;
    }
    let mut random = Random::new(u64::from(damage));
    for _ in 0..1 + damage % 8 {
        let at = random.below(bytes.len() as u64) as usize;
        bytes[at] ^= 1 << random.below(8);
    }
    if damage & 0x40 != 0 {
        // The end, or much more.
        let most = if damage & 0x80 == 0 { 4096 } else { bytes.len() as u64 };
        bytes.truncate(bytes.len() - random.below(most) as usize);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::inputs;
    use crate::properties::Input;

    #[test]
    fn recovery_data_repairs_its_image_or_fails() {
        let mut repaired = 0;
        for base in inputs(Input::Recovery).unwrap() {
            let [which, _] = base.bytes[base.bytes.len() - 2..] else { unreachable!() };
            let whole = protected(which);
            match outcome(&base.bytes).unwrap() {
                Outcome::Read(found) => {
                    assert_eq!(found, xxh3_64(whole) ^ whole.len() as u64, "{}", base.name);
                    repaired += 1;
                }
                Outcome::Refused(why) => assert!(why.contains("can be repaired"), "{}: {why}", base.name),
            }
        }
        assert!(repaired >= 7, "{repaired}");
    }
}
