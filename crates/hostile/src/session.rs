//! Cases by number: what each of them is. A seed and a number say all, so any case can be tried
//! again alone.

use crate::corpus::{self, Base, images, inputs};
use crate::judge::{digest, open};
use crate::outcome::Outcome;
use crate::properties::{Input, recovery, shards, verity};
use crate::{Breach, Class, Field, Judged, Sandpit, fields, judge, mutate};
use packfs::Silent;
use packfs_testkit::Random;

/// Kinds of cases: images of a format, images within containers, integrity data of images, and
/// packed shards with their plan.
pub fn kinds() -> Vec<&'static str> {
    let mut kinds = corpus::kinds();
    kinds.extend(TRIED.iter().map(|(kind, ..)| *kind));
    kinds
}

/// Property of an input that is no image.
type Tried = fn(&[u8]) -> Result<Outcome, Breach>;

/// Kinds that are no images.
const TRIED: [(&str, Input, Tried); 3] = [
    ("recovery", Input::Recovery, recovery::outcome),
    ("verity", Input::Verity, verity::outcome),
    ("shards", Input::Shards, shards::outcome),
];

/// The valid inputs of a kind, and what is known of them.
pub struct Session {
    bases: Vec<Base>,
    fields: Vec<Vec<Field>>,
    digests: Vec<Option<u64>>,
    tried: Option<Tried>,
    seed: u64,
}

/// One mutated image.
pub struct Case {
    /// The image that it was made of.
    pub base: String,
    /// Class of its mutation.
    pub class: Class,
    /// The result.
    pub bytes: Vec<u8>,
    /// Threads that read it: mostly one, sometimes two.
    pub jobs: usize,
    valid: Option<u64>,
    tried: Option<Tried>,
}

impl Session {
    /// Makes the valid inputs of one of the [`kinds`].
    ///
    /// # Errors
    /// As of packing and reading valid images.
    pub fn new(kind: &str, seed: u64) -> packfs::Result<Session> {
        if let Some(&(_, input, tried)) = TRIED.iter().find(|(tried, ..)| *tried == kind) {
            return Session::of_what_vouches(input, tried, seed);
        }
        let folder = tempfile::tempdir()
            .map_err(|error| packfs::Error::io("cannot make a temporary folder", error))?;
        let bases = images(kind, folder.path())?;
        let mut session = Session { bases, fields: Vec::new(), digests: Vec::new(), tried: None, seed };
        for base in &session.bases {
            let opened = open(&base.bytes, 1)?;
            let loaded = opened.load(&Silent)?;
            session.digests.push(Some(digest(&opened, &loaded)?));
            session.fields.push(fields(&base.bytes));
        }
        Ok(session)
    }

    fn of_what_vouches(input: Input, tried: Tried, seed: u64) -> packfs::Result<Session> {
        let bases = inputs(input)?;
        let fields = bases.iter().map(|base| fields(&base.bytes)).collect();
        let valid = |base: &Base| match tried(&base.bytes) {
            Ok(Outcome::Read(digest)) => Some(digest),
            // More is lost than can be repaired: that is valid, too.
            Ok(Outcome::Refused(_)) | Err(_) => None,
        };
        let digests = bases.iter().map(valid).collect();
        Ok(Session { bases, fields, digests, tried: Some(tried), seed })
    }

    /// The case of a number.
    pub fn case(&self, number: u64) -> Case {
        let mut random = Random::new(self.seed.wrapping_mul(0x9e37_79b9) ^ number << 8);
        let index = random.below(self.bases.len() as u64) as usize;
        let jobs = if random.below(16) == 0 { 2 } else { 1 };
        let base = &self.bases[index];
        let mutated = mutate(&base.bytes, &self.fields[index], &self.bases, &mut random);
        Case {
            base: base.name.clone(),
            class: mutated.class,
            bytes: mutated.bytes,
            jobs,
            valid: self.digests[index],
            tried: self.tried,
        }
    }
}

impl Case {
    /// Judges the case.
    pub fn judge(&self, pit: &Sandpit) -> Judged {
        match self.tried {
            Some(tried) => Judged::of(tried(&self.bytes), self.valid),
            None => judge(&self.bytes, pit, self.jobs, self.valid),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_filesystem_is_mutated_and_commands_name_every_property() {
        let kinds = kinds();
        for kind in ["squashfs-legacy", "erofs", "romfs", "udf", "ext4", "xfs", "btrfs", "iso9660", "shards"]
        {
            assert!(kinds.contains(&kind), "{kind} has no inputs: {kinds:?}");
        }
        let fuzz = include_str!("../../../xtask/src/fuzz.rs");
        for property in crate::properties::PROPERTIES {
            let name = property.name;
            assert!(fuzz.contains(&format!("    \"{name}\",\n")), "cargo xtask fuzz has no {name}");
        }
    }

    /// Bounded: the long run is `cargo xtask mutate`.
    const CASES: u64 = 1000;

    #[test]
    fn mutated_images_violate_no_property() {
        for format in corpus::kinds() {
            let session = Session::new(format, 1).unwrap();
            let pit = Sandpit::new().unwrap();
            let mut told = 0;
            for number in 0..CASES {
                let case = session.case(number);
                let judged = case.judge(&pit);
                let what = format!("{format} case {number}: {:?} of {}", case.class, case.base);
                assert_eq!(judged.breach, None, "{what}");
                told += u64::from(judged.error.is_some());
            }
            // ISO 9660 has no checksums, and stores most figures twice, of which one is read. Most
            // bytes of an XFS image are unused, and its checksums are put right.
            assert!(told > CASES / 5, "{format}: of {CASES} only {told} were found to be wrong");
        }
    }

    #[test]
    fn mutated_integrity_files_and_plans_violate_no_property() {
        for (kind, ..) in TRIED {
            let session = Session::new(kind, 1).unwrap();
            let pit = Sandpit::new().unwrap();
            let mut counts = [0; 3];
            for number in 0..CASES {
                let case = session.case(number);
                let judged = case.judge(&pit);
                assert_eq!(judged.breach, None, "{kind} case {number}: {:?} of {}", case.class, case.base);
                counts[judged.verdict as usize] += 1;
            }
            // Same, different, refused.
            assert!(counts[0] > 0 && counts[2] > 0, "{kind}: {counts:?}");
        }
    }

    /// Kinds of structures that each kind of input has at least, and one of them.
    const STRUCTURES: [(&str, usize, &str); 15] = [
        ("squashfs", 15, "SuperBlock"),
        ("squashfs-legacy", 2, "bytes"),
        ("erofs", 10, "Dirent"),
        ("composefs", 4, "Dirent"),
        ("cramfs", 1, "other"),
        ("romfs", 2, "RomfsInode"),
        ("udf", 20, "FileIdentDesc"),
        ("ext4", 8, "Ext4Inode"),
        ("xfs", 20, "Dinode"),
        ("btrfs", 12, "FileExtentItem"),
        ("iso9660", 6, "RecordHead"),
        ("containers", 8, "BootRecord"),
        ("disks", 8, "Footer"),
        ("recovery", 4, "page"),
        ("verity", 3, "hash"),
    ];

    #[test]
    fn fields_of_every_structure_are_known() {
        for (kind, min, wanted) in STRUCTURES {
            let session = Session::new(kind, 1).unwrap();
            let all = session.fields.iter().flatten().map(|field| field.of);
            let found: std::collections::BTreeSet<&str> = all.collect();
            assert!(found.contains(wanted) && found.len() >= min, "{kind}: {found:?}");
            for (base, fields) in session.bases.iter().zip(&session.fields) {
                assert!(fields.len() > 20, "{kind} {}: {}", base.name, fields.len());
            }
        }
    }
}
