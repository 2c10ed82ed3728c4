//! Damage to an image: what is done (action) at which structure (place), all combinations.

use crate::Random;
use packfs_format::SpaceOwner;

/// A change to the bytes of a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The image ends within the structure.
    Truncate,
    /// One bit is flipped.
    Flip,
    /// Four bytes become all ones.
    Ones,
    /// Four bytes become zeros.
    Zeros,
    /// Four bytes become the largest signed number.
    Largest,
    /// Bytes of another structure are copied over it.
    Splice,
}

impl Action {
    /// Every action.
    pub const ALL: [Action; 6] =
        [Action::Truncate, Action::Flip, Action::Ones, Action::Zeros, Action::Largest, Action::Splice];
}

/// One damaged image.
#[derive(Debug)]
pub struct Damage {
    /// The change.
    pub action: Action,
    /// To which structure.
    pub owner: &'static str,
    /// At which offset of the image.
    pub offset: u64,
    /// The damaged image.
    pub image: Vec<u8>,
}

/// Damages `image` in every structure of `space` by every action, `each` times at different places.
pub fn damages<'a>(image: &'a [u8], space: &'a [SpaceOwner], each: u64) -> impl Iterator<Item = Damage> + 'a {
    let places = space.iter().filter(|place| place.len > 0);
    places.flat_map(move |place| {
        Action::ALL.into_iter().flat_map(move |action| {
            (0..each).map(move |attempt| {
                let mut random = Random::new(place.offset ^ (attempt << 40) ^ ((action as u64) << 56));
                // The first attempts hit the start of the structure, where lengths and types are.
                let within =
                    if attempt * 2 < each { attempt * 4 % place.len } else { random.below(place.len) };
                let offset = place.offset + within;
                let image = apply(image, action, offset, &mut random);
                Damage { action, owner: place.owner, offset, image }
            })
        })
    })
}

fn apply(image: &[u8], action: Action, offset: u64, random: &mut Random) -> Vec<u8> {
    let mut image = image.to_vec();
    let at = offset as usize;
    let mut overwrite = |bytes: &[u8]| {
        let len = bytes.len().min(image.len() - at);
        image[at..at + len].copy_from_slice(&bytes[..len]);
    };
    match action {
        Action::Truncate => image.truncate(at),
        Action::Flip => image[at] ^= 1 << random.below(8),
        Action::Ones => overwrite(&[0xff; 4]),
        Action::Zeros => overwrite(&[0; 4]),
        Action::Largest => overwrite(&i32::MAX.to_le_bytes()),
        Action::Splice => {
            let from = random.below(image.len() as u64) as usize;
            let len = (image.len() - from.max(at)).min(64);
            image.copy_within(from..from + len, at);
        }
    }
    image
}
