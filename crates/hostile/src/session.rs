//! Cases by number: what each of them is. A seed and a number say all, so any case can be tried
//! again alone.

use crate::corpus::{Base, images, inputs};
use crate::judge::{digest, open};
use crate::outcome::Outcome;
use crate::properties::{Input, recovery, shards, verity};
use crate::{Breach, Class, Field, Judged, Sandpit, fields, judge, mutate};
use packfs::Silent;
use packfs_testkit::Random;

/// Kinds of cases: images of a format, images within containers, integrity data of images, or
/// packed shards with their plan.
pub const KINDS: [&str; 16] = [
    "squashfs",
    "squashfs-legacy",
    "erofs",
    "composefs",
    "cramfs",
    "iso9660",
    "romfs",
    "udf",
    "ext4",
    "xfs",
    "btrfs",
    "containers",
    "disks",
    "recovery",
    "verity",
    "shards",
];

/// Returns those of them that are images.
pub(crate) fn image_kinds() -> impl Iterator<Item = &'static str> {
    KINDS.into_iter().filter(|kind| tried(kind).is_none())
}

/// Property of an input that is no image.
type Tried = fn(&[u8]) -> Result<Outcome, Breach>;

fn tried(kind: &str) -> Option<(Input, Tried)> {
    match kind {
        "recovery" => Some((Input::Recovery, recovery::outcome)),
        "verity" => Some((Input::Verity, verity::outcome)),
        "shards" => Some((Input::Shards, shards::outcome)),
        _ => None,
    }
}

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
    /// Makes the valid inputs of one of [`KINDS`].
    ///
    /// # Errors
    /// As of packing and reading valid images.
    pub fn new(kind: &str, seed: u64) -> packfs::Result<Session> {
        if let Some((input, tried)) = tried(kind) {
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
            let nodes: Vec<u64> = loaded.inodes.iter().map(|id| id.0).collect();
            session.fields.push(fields(&base.bytes, &nodes));
        }
        Ok(session)
    }

    fn of_what_vouches(input: Input, tried: Tried, seed: u64) -> packfs::Result<Session> {
        let bases = inputs(input)?;
        let fields = bases.iter().map(|base| fields(&base.bytes, &[])).collect();
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

    /// Returns the number of known fields of each valid image, by its name.
    pub fn known_figures(&self) -> impl Iterator<Item = (&str, usize)> {
        self.bases.iter().zip(&self.fields).map(|(base, fields)| (&*base.name, fields.len()))
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
    fn every_format_is_mutated_and_commands_name_every_kind_and_property() {
        for format in packfs::formats::all() {
            let is_container = matches!(
                format.name(),
                "cloop" | "qcow2" | "partitions" | "android-sparse" | "vhd" | "vhdx" | "vmdk" | "vdi" | "lvm"
            );
            assert!(is_container || KINDS.contains(&format.name()), "{} has no inputs", format.name());
        }
        let (mutate, fuzz) =
            (include_str!("../../../xtask/src/mutate.rs"), include_str!("../../../xtask/src/fuzz.rs"));
        for kind in KINDS {
            assert!(mutate.contains(&format!("    \"{kind}\",\n")), "cargo xtask mutate has no {kind}");
        }
        for property in crate::properties::PROPERTIES {
            let name = property.name;
            assert!(fuzz.contains(&format!("    \"{name}\",\n")), "cargo xtask fuzz has no {name}");
        }
    }

    /// Bounded: the long run is `cargo xtask mutate`.
    const CASES: u64 = 1000;

    #[test]
    fn mutated_images_violate_no_property() {
        for format in image_kinds() {
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
        for kind in ["recovery", "verity", "shards"] {
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

    /// Structures whose figures each kind of image has.
    const STRUCTURES: [(&str, &str); 15] = [
        ("squashfs", "superblock, inode, block list, directory index, directory entry, xattr"),
        ("squashfs-legacy", "superblock, inode, block list, directory index, directory entry, owners"),
        ("erofs", "superblock, inode, index, chunk index, directory entry, xattr, xattr prefix"),
        ("cramfs", "superblock, inode, name, block pointer, block length"),
        ("composefs", "superblock, inode, directory entry, xattr"),
        ("romfs", "superblock, header, name"),
        (
            "udf",
            "recognition, anchor, primary volume, partition, logical volume, partition map, integrity, file set, \
             file entry, allocation, continuation, attributes, identifier, sparing table",
        ),
        ("ext4", "superblock, descriptor, inode, block field, attributes, node, entry"),
        (
            "xfs",
            "superblock, group header, inode, fork, directory, hash tree, extent tree, tree, log, operation, change",
        ),
        ("btrfs", "superblock, block, pointer, item, inode, entry, extent, root, chunk, reference"),
        (
            "iso9660",
            "descriptor, boot record, boot catalog, path table, record, entry, zisofs header, block pointer",
        ),
        ("containers", "version, head, index, partition"),
        ("disks", "footer, header, table, directory, grain, chunk, label, area, text"),
        ("recovery", "page, set, checksum, image"),
        ("verity", "superblock, hash"),
    ];

    #[test]
    fn figures_of_every_structure_are_known() {
        for (format, wanted) in STRUCTURES {
            let session = Session::new(format, 1).unwrap();
            for of in wanted.split(", ") {
                assert!(session.fields.iter().flatten().any(|field| field.of == of), "{format}: {of}");
            }
            for (name, count) in session.known_figures() {
                assert!(count > 20, "{format} {name}: {count}");
            }
        }
    }
}
