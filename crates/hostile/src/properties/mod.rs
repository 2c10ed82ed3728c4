//! One function for each property that fuzzing holds packfs to. Each takes any bytes and returns a
//! [`Breach`] if what is promised did not hold; it panics only where packfs does.

mod codec;
mod fs_verity;
mod fuse;
mod image;
mod manifest;
mod merge;
pub(crate) mod recovery;
pub(crate) mod shards;
mod signature;
mod tar;
pub(crate) mod verity;

use crate::Breach;
pub use crate::input::Input;

pub use codec::{decode, lzma};
pub use fs_verity::fs_verity;
pub use fuse::fuse;
pub use image::{check, extract, open, read_all, repack, walk};
pub use manifest::manifest;
pub use merge::merge;
pub use recovery::recovery;
pub use shards::shards;
pub use signature::signature;
pub use tar::tar;
pub use verity::verity;

/// A property: its name, what it is tried on, and the function.
#[derive(Clone, Copy)]
pub struct Property {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its kind of input.
    pub input: Input,
    /// The property itself.
    pub holds: fn(&[u8]) -> Result<(), Breach>,
}

/// All of them.
pub const PROPERTIES: [Property; 17] = [
    Property { name: "open", input: Input::Image, holds: open },
    Property { name: "walk", input: Input::Image, holds: walk },
    Property { name: "read", input: Input::Image, holds: read_all },
    Property { name: "check", input: Input::Image, holds: check },
    Property { name: "extract", input: Input::Image, holds: extract },
    Property { name: "repack", input: Input::Image, holds: repack },
    Property { name: "merge", input: Input::Image, holds: merge },
    Property { name: "fuse", input: Input::Requests, holds: fuse },
    Property { name: "tar", input: Input::Tar, holds: tar },
    Property { name: "manifest", input: Input::Manifest, holds: manifest },
    Property { name: "decode", input: Input::Block, holds: decode },
    Property { name: "lzma", input: Input::Block, holds: lzma },
    Property { name: "recovery", input: Input::Recovery, holds: recovery },
    Property { name: "verity", input: Input::Verity, holds: verity },
    Property { name: "signature", input: Input::Signature, holds: signature },
    Property { name: "fs-verity", input: Input::Measured, holds: fs_verity },
    Property { name: "shards", input: Input::Shards, holds: shards },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::inputs;
    use crate::{mutate, mutate_plainly};
    use packfs_testkit::Random;
    use std::collections::HashMap;

    /// Bounded: `cargo xtask fuzz` goes on for as long as it is told.
    const MUTATED: u64 = 250;

    #[test]
    fn every_property_holds_of_the_corpus_and_of_what_mutations_make_of_it() {
        for property in PROPERTIES {
            let corpus = inputs(property.input).unwrap();
            assert!(corpus.len() >= 2, "{}", property.name);
            for base in &corpus {
                assert_eq!((property.holds)(&base.bytes), Ok(()), "{}: {}", property.name, base.name);
            }
            let mut random = Random::new(5);
            let mut known = HashMap::new();
            for number in 0..MUTATED {
                let index = random.below(corpus.len() as u64) as usize;
                let base = &corpus[index];
                let mutated = if property.input.has_figures() {
                    let fields = known.entry(index).or_insert_with(|| crate::fields(&base.bytes));
                    mutate(&base.bytes, fields, &corpus, &mut random)
                } else {
                    mutate_plainly(&base.bytes, &corpus, &mut random)
                };
                let what = format!("{} {number}: {:?} of {}", property.name, mutated.class, base.name);
                assert_eq!((property.holds)(&mutated.bytes), Ok(()), "{what}");
            }
        }
    }
}
