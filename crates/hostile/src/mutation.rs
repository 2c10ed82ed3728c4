//! Mutations of an input. Same input and same seed give the same result.

use crate::corpus::Base;
use crate::extremes::extreme;
use crate::sums::reseal;
use crate::{Field, repair};
use packfs_testkit::Random;
use serde::{Deserialize, Serialize};

/// Class of a mutation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// One to eight bits were flipped, anywhere.
    Flip,
    /// A few bytes became others, anywhere.
    Bytes,
    /// One figure became another.
    Field,
    /// Two to five figures did.
    Fields,
    /// Two figures changed places.
    Swap,
    /// A stretch was copied from elsewhere in the image.
    Splice,
    /// A stretch was copied from another image of the format, to where it was there.
    Graft,
    /// The end is missing.
    Truncate,
    /// A stretch became zeros or ones.
    Fill,
    /// Bytes were put in or taken out, so that all after them moves.
    Shift,
}

impl Class {
    /// Every class, in the order of tables.
    pub const ALL: [Class; 10] = [
        Class::Flip,
        Class::Bytes,
        Class::Field,
        Class::Fields,
        Class::Swap,
        Class::Splice,
        Class::Graft,
        Class::Truncate,
        Class::Fill,
        Class::Shift,
    ];
}

/// A mutated input.
#[derive(Clone, Debug)]
pub struct Mutated {
    /// Its class.
    pub class: Class,
    /// The result.
    pub bytes: Vec<u8>,
}

/// Mutates a valid image, knowing where its figures are; checksums are mostly put right afterwards.
/// `others` are what stretches may be taken from.
pub fn mutate(image: &[u8], fields: &[Field], others: &[Base], random: &mut Random) -> Mutated {
    let mut class = match random.below(100) {
        0..=11 => Class::Flip,
        12..=18 => Class::Bytes,
        19..=48 => Class::Field,
        49..=64 => Class::Fields,
        65..=69 => Class::Swap,
        70..=77 => Class::Splice,
        78..=83 => Class::Graft,
        84..=89 => Class::Truncate,
        90..=95 => Class::Fill,
        _ => Class::Shift,
    };
    if fields.is_empty() && matches!(class, Class::Field | Class::Fields | Class::Swap) {
        class = Class::Bytes;
    }
    let mut bytes = image.to_vec();
    apply(class, &mut bytes, fields, others, random);
    // Some fields only matter together with the length of the file.
    if class == Class::Truncate && random.below(2) == 0 {
        claim_len(image.len(), &mut bytes, fields);
    }
    match random.below(8) {
        0 => {}
        1 | 2 => reseal(&mut bytes),
        _ => repair(&mut bytes),
    }
    Mutated { class, bytes }
}

/// Mutates bytes of which nothing is known.
pub fn mutate_plainly(input: &[u8], others: &[Base], random: &mut Random) -> Mutated {
    mutate(input, &[], others, random)
}

fn apply(class: Class, bytes: &mut Vec<u8>, fields: &[Field], others: &[Base], random: &mut Random) {
    let len = bytes.len() as u64;
    if len == 0 {
        return;
    }
    let any = |random: &mut Random| random.below(len) as usize;
    match class {
        Class::Flip => {
            for _ in 0..1 + random.below(8) {
                let at = any(random);
                bytes[at] ^= 1 << random.below(8);
            }
        }
        Class::Bytes => {
            let at = any(random);
            let end = bytes.len().min(at + 1 + random.below(8) as usize);
            let noise = random.noise(end - at);
            bytes[at..end].copy_from_slice(&noise);
        }
        Class::Field => change(bytes, fields, random),
        Class::Fields => {
            for _ in 0..2 + random.below(4) {
                change(bytes, fields, random);
            }
        }
        Class::Swap => {
            let (a, b) = (one_of(fields, random), one_of(fields, random));
            let (value_a, value_b) = (a.get(bytes), b.get(bytes));
            a.set(bytes, value_b);
            b.set(bytes, value_a);
        }
        Class::Splice => {
            let (from, to) = (any(random), near_a_field(fields, random).unwrap_or_else(|| any(random)));
            let most = bytes.len() - from.max(to);
            let len = stretch(13, random).min(most);
            bytes.copy_within(from..from + len, to);
        }
        Class::Graft => graft(bytes, fields, others, random),
        Class::Truncate => {
            let at =
                near_a_field(fields, random).filter(|_| random.below(2) == 0).unwrap_or_else(|| any(random));
            bytes.truncate(at);
        }
        Class::Fill => {
            let at = near_a_field(fields, random).unwrap_or_else(|| any(random));
            let end = bytes.len().min(at + stretch(12, random));
            let value = [0, 0xff, b'A', 0x7f][random.below(4) as usize];
            bytes[at..end].fill(value);
        }
        Class::Shift => shift(bytes, fields, random),
    }
}

/// Copies a stretch of another input over these bytes.
fn graft(bytes: &mut [u8], fields: &[Field], others: &[Base], random: &mut Random) {
    if others.is_empty() {
        return;
    }
    let other = &others[random.below(others.len() as u64) as usize];
    let at = near_a_field(fields, random).unwrap_or_else(|| random.below(bytes.len() as u64) as usize);
    let from = if random.below(2) == 0 {
        at.min(other.bytes.len())
    } else {
        random.below(other.bytes.len().max(1) as u64) as usize
    };
    let most = other.bytes.len().saturating_sub(from).min(bytes.len() - at);
    let len = stretch(13, random).min(most);
    bytes[at..at + len].copy_from_slice(&other.bytes[from..from + len]);
}

/// Adds or removes a few bytes, so that all after them moves.
fn shift(bytes: &mut Vec<u8>, fields: &[Field], random: &mut Random) {
    let at = near_a_field(fields, random).unwrap_or_else(|| random.below(bytes.len() as u64) as usize);
    let count = 1 + random.below(16) as usize;
    if random.below(2) == 0 {
        let noise = random.noise(count);
        bytes.splice(at..at, noise);
    } else {
        let end = bytes.len().min(at + count);
        bytes.drain(at..end);
    }
}

/// A length, mostly short.
fn stretch(bits: u64, random: &mut Random) -> usize {
    let bound = 1 << random.below(bits);
    1 + random.below(bound) as usize
}

fn one_of(fields: &[Field], random: &mut Random) -> Field {
    fields[random.below(fields.len() as u64) as usize]
}

/// The superblock has few figures and decides most; every other kind of structure gets its share,
/// however few there are.
fn weighted(fields: &[Field], random: &mut Random) -> Field {
    let count = |of: &str| fields.iter().filter(|field| field.of == of).count();
    match random.below(6) {
        0 => one_of(&fields[..fields.iter().take_while(|field| field.of == fields[0].of).count()], random),
        // Of a few picks, the one of which there is least around.
        1 | 2 => {
            let picks: [Field; 6] = std::array::from_fn(|_| one_of(fields, random));
            picks.into_iter().min_by_key(|pick| count(pick.of)).unwrap_or(picks[0])
        }
        _ => one_of(fields, random),
    }
}

fn near_a_field(fields: &[Field], random: &mut Random) -> Option<usize> {
    (!fields.is_empty() && random.below(4) > 0).then(|| weighted(fields, random).at)
}

fn change(bytes: &mut [u8], fields: &[Field], random: &mut Random) {
    let field = weighted(fields, random);
    let value = extreme(bytes, field, fields, random);
    field.set(bytes, value);
}

/// Has the superblock say that the image is as long as it is: in bytes or in blocks.
fn claim_len(was: usize, bytes: &mut [u8], fields: &[Field]) {
    let (was, now) = (was as u64, bytes.len() as u64);
    for field in fields.iter().take_while(|field| field.of == fields[0].of) {
        let value = field.get(bytes);
        if let Some(shift) = (0..=16).find(|shift| value > 3 && value == was >> shift) {
            field.set(bytes, now >> shift);
        }
    }
    // Superblocks that no table describes, of either byte order.
    for at in 0..bytes.len().saturating_sub(8).min(600) {
        for is_big in [false, true] {
            let field = Field { is_big, ..Field::new("", at, 4) };
            if field.get(bytes) == was {
                field.set(bytes, now);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_determines_everything() {
        let folder = tempfile::tempdir().unwrap();
        for format in crate::corpus::kinds() {
            let bases = crate::corpus::images(format, folder.path()).unwrap();
            let fields = crate::fields(&bases[0].bytes);
            let mut changed = 0;
            for seed in 0..200 {
                let once = mutate(&bases[0].bytes, &fields, &bases, &mut Random::new(seed));
                let again = mutate(&bases[0].bytes, &fields, &bases, &mut Random::new(seed));
                assert!(once.bytes == again.bytes && once.class == again.class);
                changed += u32::from(once.bytes != bases[0].bytes);
            }
            assert!(changed > 150, "{format}: only {changed} of 200 differ");
        }
    }

    #[test]
    fn any_bytes_can_be_mutated() {
        let mut random = Random::new(1);
        for len in 0..200 {
            let bytes = random.noise(len);
            let fields = crate::fields(&bytes);
            mutate(&bytes, &fields, &[], &mut random);
        }
    }
}
