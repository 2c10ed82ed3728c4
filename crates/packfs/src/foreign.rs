//! Files that are no image packfs reads: their kind, by their first bytes, and the command that
//! helps.
//!
//! The only place that knows them. A new kind is one more row of [`ROWS`]; a changed magic of
//! SquashFS is told by its superblock.

use crate::altered;
use crate::behind::Behind;
use packfs_core::{Error, Image};
use std::sync::Arc;

/// Kind of a file of which nothing else is known.
const ZEROS: &str = "a file that starts with zeros";

/// A kind of file, and advice what to do with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foreign {
    /// The kind, with its article, such as `an XFS filesystem`.
    pub what: String,
    /// A command to try.
    pub hint: String,
    /// True if it is a file like others, in which no tree is to be looked for: a program, a
    /// database, a signature.
    pub is_alone: bool,
}

impl Foreign {
    /// Looks at the beginning of a file, and at its end. `None` for kinds that nothing is known of;
    /// an image that cannot be read is such a kind.
    pub fn identify(image: &Arc<dyn Image>) -> Option<Foreign> {
        let head = Head::read(&**image);
        let what = |what: &str, advice: Advice| Foreign {
            what: what.into(),
            hint: advice.hint(),
            is_alone: matches!(advice, Advice::Alone),
        };
        if image.is_empty() {
            return Some(what("an empty file", Advice::Make));
        }
        if let Some(magic) = altered::readable_magic(image) {
            let hint = format!("--magic {magic} reads it, as in packfs ls FILE --magic {magic}");
            let what = "a SquashFS image with another magic".into();
            return Some(Foreign { what, hint, is_alone: false });
        }
        if let Some(behind) = Behind::of(image) {
            let hint = match behind.first_offset() {
                Some(at) => format!("--offset {at} reads it, as in packfs ls FILE --offset {at}"),
                None => Advice::Scan.hint(),
            };
            return Some(Foreign { what: behind.words(), hint, is_alone: behind.is_alone() });
        }
        // The description of a virtual machine comes first in an OVA file.
        if head.0.get(..100).is_some_and(is_ovf) && source_kind(&head.0).is_some() {
            return Some(what("a virtual machine (OVA)", Advice::Extract("tar -xf FILE")));
        }
        if let Some(kind) = source_kind(&head.0) {
            return Some(what(kind, Advice::Tar));
        }
        if let Some(row) = ROWS.iter().find(|row| head.holds(&**image, row.at, row.magic)) {
            return Some(what(row.what, row.advice));
        }
        if image.len() >= 512 && head.holds(&**image, image.len() - 512, b"koly") {
            return Some(what("an Apple disk image", Advice::Unpack));
        }
        let is_zero = head.0.iter().all(|byte| *byte == 0);
        is_zero.then(|| what(ZEROS, Advice::Scan))
    }

    /// Returns the kind; `None` if it says nothing of what the bytes are for.
    pub(crate) fn kind(self) -> Option<String> {
        Some(self.what).filter(|what| what != ZEROS)
    }

    /// The error of a verb that reads images.
    pub(crate) fn refuse(image: &Arc<dyn Image>) -> Error {
        let known: Vec<&str> = packfs_formats::all().iter().map(|format| format.name()).collect();
        let refusal = format!("{} has no known format", image.name());
        let error = match Foreign::identify(image) {
            Some(Foreign { what, hint, .. }) => {
                Error::unsupported("image", format!("{refusal}: it looks like {what}")).hint(hint)
            }
            None => Error::unsupported("image", refusal).hint(Advice::Scan.hint()),
        };
        error.hint(format!("packfs reads the formats {}", known.join(", ")))
    }
}

/// Help for a kind of file.
#[derive(Clone, Copy, Debug)]
enum Advice {
    /// Linux mounts it, so that its tree can be packed.
    Mount,
    /// It is what `pack` takes.
    Tar,
    /// It is compressed as a whole, with the program of that name.
    Decompress(&'static str),
    /// It has to be unpacked first.
    Unpack,
    /// Another program makes of it something that packfs reads.
    Convert(&'static str),
    /// Another program takes images out of it.
    Extract(&'static str),
    /// Its key is needed.
    Decrypt,
    /// Images may lie within it.
    Scan,
    /// There is nothing in it yet.
    Make,
    /// Its beginning is damaged; this program may tell more.
    Examine(&'static str),
    /// The same as [`Advice::Scan`], but a file like others.
    Alone,
}

impl Advice {
    fn hint(self) -> String {
        match self {
            Advice::Mount => {
                "sudo mount -o ro,loop FILE /mnt && packfs pack /mnt IMAGE packs its contents".into()
            }
            Advice::Tar => "packfs pack FILE IMAGE converts it to an image".into(),
            Advice::Decompress(program) => format!(
                "packfs pack FILE IMAGE packs a compressed tar; {program} -dc FILE > raw.img decompresses an image"
            ),
            Advice::Unpack => "unpack it first, then packfs pack DIR IMAGE".into(),
            Advice::Extract(command) => format!("{command} extracts its disks, which packfs reads"),
            Advice::Convert(command) => format!("{command} converts it to a readable image"),
            Advice::Decrypt => {
                "sudo cryptsetup open --readonly FILE NAME decrypts it to the image /dev/mapper/NAME; \
                of a partition, FILE is a device that sudo losetup -Pf DISK makes"
                    .into()
            }
            Advice::Examine(command) => format!("it may be damaged; {command} FILE examines it"),
            Advice::Scan | Advice::Alone => {
                "packfs info --scan FILE searches it for images; --offset reads one".into()
            }
            Advice::Make => "packfs pack SOURCE IMAGE creates an image".into(),
        }
    }
}

/// Returns true if the first name of an archive is that of an OVF description.
fn is_ovf(name: &[u8]) -> bool {
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    name.to_ascii_lowercase().ends_with(b".ovf")
}

/// Returns the kind of a source that is no image.
#[cfg(feature = "pack")]
fn source_kind(beginning: &[u8]) -> Option<&'static str> {
    packfs_source::archive_kind(beginning)
        .map(packfs_source::ArchiveKind::words)
        .or_else(|| packfs_source::looks_like_manifest(beginning).then_some("a manifest"))
}

/// Tells no source, since nothing is packed.
#[cfg(not(feature = "pack"))]
fn source_kind(_: &[u8]) -> Option<&'static str> {
    None
}

/// A kind of file that is told by a magic.
struct Row {
    what: &'static str,
    at: u64,
    magic: &'static [u8],
    advice: Advice,
}

const fn row(what: &'static str, at: u64, magic: &'static [u8], advice: Advice) -> Row {
    Row { what, at, magic, advice }
}

const QEMU: Advice = Advice::Convert("qemu-img convert -O raw FILE disk.img");

/// The first that fits counts, so long magics come before short ones.
const ROWS: &[Row] = &[
    // File systems.
    row("a bcachefs filesystem", 4096 + 24, b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca", Advice::Mount),
    row("an F2FS filesystem", 1024, b"\x10\x20\xf5\xf2", Advice::Mount),
    row("an NTFS filesystem", 3, b"NTFS    ", Advice::Mount),
    row("an exFAT filesystem", 3, b"EXFAT   ", Advice::Mount),
    row("a FAT filesystem (FAT32)", 82, b"FAT32   ", Advice::Mount),
    row("a FAT filesystem (FAT16)", 54, b"FAT16   ", Advice::Mount),
    row("a FAT filesystem (FAT12)", 54, b"FAT12   ", Advice::Mount),
    row("a FAT filesystem", 54, b"FAT     ", Advice::Mount),
    row("a ReiserFS filesystem", 0x10034, b"ReIsEr", Advice::Mount),
    row("a JFS filesystem", 0x8000, b"JFS1", Advice::Mount),
    row("a NILFS2 filesystem", 1024 + 6, b"\x34\x34", Advice::Mount),
    row("an HFS+ filesystem", 1024, b"H+\0\x04", Advice::Mount),
    row("an HFSX filesystem", 1024, b"HX\0\x05", Advice::Mount),
    row("an APFS container", 32, b"NXSB", Advice::Unpack),
    row("a Minix filesystem", 1024 + 16, b"\x7f\x13", Advice::Mount),
    row("a Minix filesystem", 1024 + 16, b"\x8f\x13", Advice::Mount),
    row("a Minix filesystem", 1024 + 16, b"\x68\x24", Advice::Mount),
    row("a Minix filesystem", 1024 + 16, b"\x78\x24", Advice::Mount),
    row("a Minix filesystem", 1024 + 24, b"\x5a\x4d", Advice::Mount),
    row("a UBIFS filesystem", 0, b"\x31\x18\x10\x06", Advice::Scan),
    row("a UBI image", 0, b"UBI#", Advice::Scan),
    row("a JFFS2 filesystem", 0, b"\x85\x19\x03\x20", Advice::Scan),
    row("a JFFS2 filesystem", 0, b"\x85\x19\x01\xe0", Advice::Scan),
    row("a JFFS2 filesystem", 0, b"\x85\x19\x02\xe0", Advice::Scan),
    row("a JFFS2 filesystem", 0, b"\x19\x85\x20\x03", Advice::Scan),
    row("a JFFS2 filesystem", 0, b"\x19\x85\xe0\x01", Advice::Scan),
    row("a JFFS2 filesystem", 0, b"\x19\x85\xe0\x02", Advice::Scan),
    row("swap space", 4096 - 10, b"SWAPSPACE2", Advice::Scan),
    // Disks.
    row("an encrypted disk (LUKS)", 0, b"LUKS\xba\xbe", Advice::Decrypt),
    row("a virtual disk (VMDK)", 0, b"COWD", QEMU),
    row("a virtual disk (VMDK, seSparse)", 0, b"\xbe\xba\xfe\xca\0\0\0\0", QEMU),
    row("a virtual disk (QED)", 0, b"QED\0", QEMU),
    row("a virtual disk (Parallels)", 0, b"WithoutFreeSpace", QEMU),
    row("a virtual disk (Parallels)", 0, b"WithouFreSpacExt", QEMU),
    row("a virtual disk (Bochs)", 0, b"Bochs Virtual HD Image", QEMU),
    row("a physical volume of LVM1", 0, b"HM\x01\0", Advice::Convert("vgconvert -M2 NAME")),
    row("an Android boot image", 0, b"ANDROID!", Advice::Scan),
    row("an Android update payload", 0, b"CrAU", Advice::Unpack),
    row("an Android super image", 4096, b"gDla", Advice::Extract("lpunpack FILE DIR")),
    row("a hash tree of dm-verity", 0, b"verity\0\0", Advice::Scan),
    // What firmware, programs and packages come in.
    row("a U-Boot image", 0, b"\x27\x05\x19\x56", Advice::Scan),
    row("a device tree or FIT image", 0, b"\xd0\x0d\xfe\xed", Advice::Scan),
    row("TRX firmware", 0, b"HDR0", Advice::Scan),
    row("a program for Windows or EFI", 0, b"MZ", Advice::Scan),
    // Archives.
    row("a zip archive", 0, b"PK\x03\x04", Advice::Unpack),
    row("an empty zip archive", 0, b"PK\x05\x06", Advice::Unpack),
    row("a zip archive", 0, b"PK\x07\x08", Advice::Unpack),
    row("a 7z archive", 0, b"7z\xbc\xaf\x27\x1c", Advice::Unpack),
    row("a RAR archive", 0, b"Rar!\x1a\x07", Advice::Unpack),
    row("a Microsoft cabinet", 0, b"MSCF\0\0\0\0", Advice::Unpack),
    row("an xar archive", 0, b"xar!", Advice::Unpack),
    row("an RPM package", 0, b"\xed\xab\xee\xdb", Advice::Unpack),
    row("a Debian package", 0, b"!<arch>\ndebian-binary", Advice::Unpack),
    row("an ar archive", 0, b"!<arch>\n", Advice::Unpack),
    row("a cpio archive", 0, b"070701", Advice::Unpack),
    row("a cpio archive", 0, b"070702", Advice::Unpack),
    row("a cpio archive", 0, b"070707", Advice::Unpack),
    row("a cpio archive", 0, b"\xc7\x71", Advice::Unpack),
    // What is known by more than its beginning, which is damaged.
    row("a damaged tar archive", 257, b"ustar", Advice::Examine("tar -tvf")),
    row("a damaged cramfs image", 16, b"Compressed ROMFS", Advice::Examine("packfs info --scan")),
    row("a damaged ext4 filesystem", 1080, b"\x53\xef", Advice::Examine("e2fsck -fn")),
    row("a damaged ISO 9660 image", 0x8001, b"CD001", Advice::Examine("packfs info --scan")),
    row("a disk with a damaged partition table", 512, b"EFI PART", Advice::Examine("sgdisk --verify")),
    // Files that were compressed as a whole.
    row("a file compressed with gzip", 0, b"\x1f\x8b", Advice::Decompress("gzip")),
    row("a file compressed with xz", 0, b"\xfd7zXZ\0", Advice::Decompress("xz")),
    row("a file compressed with zstd", 0, b"\x28\xb5\x2f\xfd", Advice::Decompress("zstd")),
    row("a file compressed with bzip2", 0, b"BZh", Advice::Decompress("bzip2")),
    row("a file compressed with lz4", 0, b"\x04\x22\x4d\x18", Advice::Decompress("lz4")),
    row("a file compressed with lz4 (legacy)", 0, b"\x02\x21\x4c\x18", Advice::Decompress("lz4")),
    row("a file compressed with lzip", 0, b"LZIP", Advice::Decompress("lzip")),
    row("a file compressed with lzop", 0, b"\x89LZO\0\r\n\x1a\n", Advice::Decompress("lzop")),
    row("a file compressed with compress (.Z)", 0, b"\x1f\x9d", Advice::Decompress("gzip")),
    row("a file compressed with lzma", 0, b"\x5d\0\0", Advice::Decompress("xz")),
    row("a zisofs file", 0, b"\x37\xe4\x53\x96\xc9\xdb\xd6\x07", Advice::Unpack),
    row("a signature of minisign", 0, b"untrusted comment: ", Advice::Alone),
    row("a SQLite database", 0, b"SQLite format 3\0", Advice::Alone),
];

/// The beginning of a file.
struct Head(Vec<u8>);

impl Head {
    const LEN: usize = 4096;

    fn read(image: &dyn Image) -> Self {
        let mut bytes = vec![0; Head::LEN];
        let len = image.read_at(0, &mut bytes).unwrap_or(0);
        bytes.truncate(len);
        Head(bytes)
    }

    /// True if these bytes stand there, in the beginning or behind it.
    fn holds(&self, image: &dyn Image, at: u64, magic: &[u8]) -> bool {
        let start = usize::try_from(at).unwrap_or(usize::MAX);
        if let Some(bytes) = self.0.get(start..start.saturating_add(magic.len())) {
            return bytes == magic;
        }
        let mut bytes = vec![0; magic.len()];
        image.read_at(at, &mut bytes).is_ok_and(|len| len == magic.len()) && bytes == magic
    }
}
