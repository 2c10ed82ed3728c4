//! The one table of all formats: no other code names them.
//!
//! A part of [packfs](https://docs.rs/packfs): only its API is stable.
//!
//! Owns finding a format: by the name users type, by a file name's extension, by what an image
//! starts with. A new format is one more row here.
#![forbid(unsafe_code)]

use packfs_core::{Image, Result};
use packfs_format::Format;

/// In the order in which images are probed. Partition tables come last: a file system or a CD that
/// can be booted from begins with one, too. Each row is a Cargo feature.
static FORMATS: &[&dyn Format] = &[
    #[cfg(feature = "squashfs")]
    &packfs_format_squashfs::Squashfs,
    // An EROFS image with a separate header.
    #[cfg(feature = "erofs")]
    &packfs_format_erofs::composefs::Composefs,
    #[cfg(feature = "erofs")]
    &packfs_format_erofs::Erofs,
    #[cfg(feature = "squashfs")]
    &packfs_format_squashfs::SquashfsLegacy,
    #[cfg(feature = "cramfs")]
    &packfs_format_cramfs::Cramfs,
    // Before ISO 9660, which an image of both often has as a stub.
    #[cfg(feature = "udf")]
    &packfs_format_udf::Udf,
    #[cfg(feature = "iso9660")]
    &packfs_format_iso9660::Iso9660,
    #[cfg(feature = "romfs")]
    &packfs_format_romfs::Romfs,
    #[cfg(feature = "btrfs")]
    &packfs_format_btrfs::Btrfs,
    #[cfg(feature = "ext")]
    &packfs_format_ext::Ext,
    #[cfg(feature = "xfs")]
    &packfs_format_xfs::Xfs,
    #[cfg(feature = "cloop")]
    &packfs_format_cloop::Cloop,
    #[cfg(feature = "qcow2")]
    &packfs_format_qcow2::Qcow2,
    #[cfg(feature = "disks")]
    &packfs_format_disks::AndroidSparse,
    #[cfg(feature = "disks")]
    &packfs_format_disks::Vhd,
    #[cfg(feature = "disks")]
    &packfs_format_disks::Vhdx,
    #[cfg(feature = "disks")]
    &packfs_format_disks::Vmdk,
    #[cfg(feature = "disks")]
    &packfs_format_disks::Vdi,
    #[cfg(feature = "lvm")]
    &packfs_format_lvm::Lvm,
    #[cfg(feature = "partitions")]
    &packfs_format_partitions::Partitions,
];

/// Trees of composefs, the bytes of their images, and their dumps.
#[cfg(feature = "erofs")]
pub mod composefs {
    pub use packfs_format_erofs::composefs::{Composefs, Escape, File, Inode, Line, Parser, Tree, escape};
    pub use packfs_format_erofs::{ComposefsVersions as Versions, write_composefs as write};
}

/// Every format, in the order in which help lists them.
pub fn all() -> &'static [&'static dyn Format] {
    FORMATS
}

/// The name of the format of images that are made where nothing says one.
pub const DEFAULT: &str = "squashfs";

/// The name of the format of an image that another image is to hold, where nothing says one.
pub const INNER_DEFAULT: &str = "iso9660";

/// The format of that name.
pub fn by_name(name: &str) -> Option<&'static dyn Format> {
    all().iter().copied().find(|format| format.name() == name)
}

/// Names of all Linux drivers that mount a format.
pub fn drivers() -> Vec<&'static str> {
    all().iter().filter_map(|format| format.info().driver_name()).collect()
}

/// The format that a file name extension (without the dot, in any case) means. A codec may follow,
/// as in `squashfs-xz`.
pub fn by_extension(extension: &str) -> Option<&'static dyn Format> {
    let extension = extension.split_once('-').map_or(extension, |(format, _)| format);
    let means =
        |format: &&dyn Format| format.info().extensions.iter().any(|own| own.eq_ignore_ascii_case(extension));
    all().iter().copied().find(means)
}

/// The format that an image starts like; `None` if no format knows it.
///
/// # Errors
/// `Io`: the image cannot be read.
pub fn probe(image: &dyn Image) -> Result<Option<&'static dyn Format>> {
    for format in all().iter().copied() {
        if format.probe(image)? {
            return Ok(Some(format));
        }
    }
    Ok(None)
}

/// Formats of discs, which leave room at their beginning: one disc may have both, over the same
/// files or others, and a partition table.
const OF_DISCS: [&str; 2] = ["udf", "iso9660"];
/// The format of tables of partitions.
const OF_PARTITIONS: &str = "partitions";

/// The other formats of filesystems that an image of this format has, too.
///
/// # Errors
/// `Io`: the image cannot be read.
pub fn beside(format: &dyn Format, image: &dyn Image) -> Result<Vec<&'static dyn Format>> {
    let mut found = Vec::new();
    for name in OF_DISCS.iter().filter(|_| OF_DISCS.contains(&format.name())) {
        if let Some(other) = by_name(name).filter(|other| other.name() != format.name())
            && other.probe(image)?
        {
            found.push(other);
        }
    }
    Ok(found)
}

/// The format of the partition table that an image of this format has in front.
///
/// # Errors
/// `Io`: the image cannot be read.
pub fn table_before(format: &dyn Format, image: &dyn Image) -> Result<Option<&'static dyn Format>> {
    match by_name(OF_PARTITIONS).filter(|_| OF_DISCS.contains(&format.name())) {
        Some(table) if table.probe(image)? => Ok(Some(table)),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_format::{Makes, PackSettings};
    use packfs_testkit::BytesImage;

    #[test]
    fn names_and_extensions_lead_to_one_format_each() {
        for (index, format) in all().iter().enumerate() {
            assert_eq!(by_name(format.name()).unwrap().name(), format.name());
            for extension in format.info().extensions {
                assert_eq!(by_extension(extension).unwrap().name(), format.name(), "{extension}");
            }
            assert!(all()[..index].iter().all(|other| other.name() != format.name()));
        }
        assert_eq!(by_extension("SQFS").unwrap().name(), "squashfs");
        assert!(by_name("nosuchfs").is_none());
        assert_eq!(by_extension("erofs-lz4hc").unwrap().name(), "erofs");
        assert!(by_extension("txt").is_none());
    }

    #[test]
    fn images_are_known_by_their_first_bytes() {
        for magic in [b"hsqs", b"HSQS", b"sqsh"] {
            assert_eq!(probe(&BytesImage(magic.to_vec())).unwrap().unwrap().name(), "squashfs");
        }
        for (magic, major, name) in [
            (b"hsqs", [4, 0], "squashfs"),
            (b"shsq", [4, 0], "squashfs"),
            (b"hsqs", [5, 0], "squashfs"),
            (b"sqsh", [0, 4], "squashfs"),
            (b"hsqs", [1, 0], "squashfs-legacy"),
            (b"sqsh", [0, 3], "squashfs-legacy"),
            (b"shsq", [3, 0], "squashfs-legacy"),
            (b"qshs", [0, 3], "squashfs-legacy"),
            (b"hsqt", [3, 0], "squashfs-legacy"),
            (b"tqsh", [0, 3], "squashfs-legacy"),
        ] {
            let image = BytesImage([&magic[..], &[0; 24], &major, &[0; 2]].concat());
            assert_eq!(probe(&image).unwrap().unwrap().name(), name, "{magic:?} {major:?}");
        }
        for other in [&b""[..], b"hsq", b"hsqx", b"\x7fELF"] {
            assert!(probe(&BytesImage(other.to_vec())).unwrap().is_none());
        }
    }

    /// Makes a packer with one option set.
    fn set(format: &dyn Format, name: &str, value: &str) -> Result<()> {
        let options = vec![(name.to_owned(), value.to_owned())];
        format.packer(&PackSettings { options, ..PackSettings::default() }).map(|_| ())
    }

    #[test]
    fn every_option_accepts_the_values_in_help_and_lists_them_for_others() {
        let makes_images = |format: &&&dyn Format| format.info().makes != Makes::Nothing;
        for format in all().iter().filter(makes_images) {
            let rows = format.info().options;
            for row in rows {
                let refusal = |value: &str| {
                    let refused = set(*format, row.name, value).err().map(|error| error.to_string());
                    refused.filter(|text| text.contains(&format!("option {}=", row.name)))
                };
                let is_choice =
                    row.values.contains('|') && !row.values.contains(|c: char| c.is_uppercase() || c == ' ');
                for word in row.values.split('|').filter(|_| is_choice) {
                    assert_eq!(refusal(word), None, "{} {}", format.name(), row.name);
                }
                let others = ["", "-", "x@no", "no such value, and much too long"];
                let told = others.iter().filter_map(|other| set(*format, row.name, other).err());
                let told: Vec<String> = told.map(|error| error.to_string()).collect();
                let says = |text: &String| {
                    text.contains(row.values) || text.contains("from 5.4 on") || text.contains("in the tree")
                };
                assert!(told.iter().any(says), "{} {}: {told:?}", format.name(), row.name);
            }
            let names: Vec<&str> = rows.iter().map(|row| row.name).collect();
            let error = set(*format, "no-such", "1").unwrap_err().to_string();
            assert!(error.contains(&format!("it has {}", names.join(", "))), "{error}");
        }
    }
}
