//! The properties of `packfs-hostile`, under libFuzzer. One program for all: the property is named
//! by `PACKFS_PROPERTY`.
//!
//! libFuzzer mutates whole inputs. Half of the time images are mutated field by field instead, with
//! checksums set right. A breach is a crash, as a panic is.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use packfs_hostile::properties::{PROPERTIES, Property};
use packfs_hostile::{fields, mutate, mutate_plainly, repair};
use packfs_testkit::Random;
use std::sync::LazyLock;

static PROPERTY: LazyLock<Property> = LazyLock::new(|| {
    let name = std::env::var("PACKFS_PROPERTY").unwrap_or_default();
    let found = PROPERTIES.into_iter().find(|property| property.name == name);
    found.unwrap_or_else(|| {
        let names: Vec<&str> = PROPERTIES.iter().map(|property| property.name).collect();
        panic!("PACKFS_PROPERTY={name:?}: one of {} is needed", names.join(" "))
    })
});

fuzz_target!(|input: &[u8]| {
    if let Err(breach) = (PROPERTY.holds)(input) {
        panic!("{breach}");
    }
});

fuzz_mutator!(|data: &mut [u8], len: usize, len_max: usize, seed: u32| {
    let mut random = Random::new(u64::from(seed));
    if random.below(2) == 0 {
        let len = fuzzer_mutate(data, len, len_max);
        if PROPERTY.input.has_figures() {
            repair(&mut data[..len]);
        }
        return len;
    }
    let input = &data[..len];
    let mutated = match PROPERTY.input.has_figures() {
        true => mutate(input, &fields(input, &[]), &[], &mut random),
        false => mutate_plainly(input, &[], &mut random),
    };
    let len = mutated.bytes.len().min(len_max);
    data[..len].copy_from_slice(&mutated.bytes[..len]);
    len
});
