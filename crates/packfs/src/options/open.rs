//! Options of opening an image.

#[cfg(feature = "remote")]
use super::values::parsed;
use super::values::{SIZE, SWITCH, Values, file, text};
use super::{Mark, Options};
use crate::OpenOptions;
use crate::layer::Which;
#[cfg(feature = "integrity")]
use crate::trust::Trust;
#[cfg(feature = "integrity")]
use packfs_core::from_hex;
use packfs_format::{OpenOption, PartitionTable};
#[cfg(feature = "integrity")]
use packfs_integrity::{root_hash_path, signature_path};
use std::path::{Path, PathBuf};

const MAGIC: Values<Vec<u8>> = Values::new("MAGIC", |text| {
    let known = crate::magics();
    let refuse = || format!("unknown magic; use {}", known.join(", "));
    known.contains(&text).then(|| text.into()).ok_or_else(refuse)
})
.among(crate::magics);

const TABLE: Values<PartitionTable> = super::values::parsed("mbr|gpt");

#[cfg(feature = "integrity")]
const ROOT_HASH: Values<Vec<u8>> = Values::new("HEX", |text| {
    let bytes = from_hex(text).filter(|bytes| matches!(bytes.len(), 32 | 64));
    let needed = "64 hexadecimal digits (sha256) or 128 (sha512) needed";
    bytes.ok_or_else(|| format!("{} characters; {needed}", text.len()))
});

rows! { OpenOptions;
    /// Read the image at this offset in the file
    "offset", SIZE, "Source" { default: "0", marks: &[Mark::Common] },
    |options, bytes| options.offset = bytes;

    /// Read further image data from FILE
    ///
    /// May be given several times, in the order of the image's own list of devices. FILE is a
    /// regular file or a block device.
    "device", file("FILE").many(), "Source" { also: &["devices"] },
    |options, path| options.with.devices.push(path);

    /// Read this part of a disk image, such as p2
    ///
    /// Without it, the only image of a known format is used, else the disk image itself; a warning
    /// lists the images. p2/root is the volume root of an LVM group in partition 2.
    "part", text("NAME"), "Source" { marks: &[Mark::Common] },
    |options, name| options.which = Which::Chosen(name);

    /// Open a cloop or disk image itself, not the image in it
    ///
    /// Refuses images behind a program (AppImage) and in a Singularity image, too.
    "outer", SWITCH, "Source" { conflicts: &["part"] },
    |options, yes| if yes {
        options.which = Which::Outermost;
    };

    /// Read the image as if it started with MAGIC
    ///
    /// For images whose vendor changed the magic: hsqs or shsq for little-endian SquashFS of any
    /// version, sqsh or qshs for big-endian.
    "magic", MAGIC, "Source" {}, |options, magic| options.magic = Some(magic);

    /// Continue if a superblock checksum does not match
    ///
    /// Applies to EROFS, cramfs, romfs, ext4, XFS and btrfs, whose superblock holds a checksum.
    "ignore-checksum", SWITCH, "Source" { marks: &[Mark::Shared] },
    |options, yes| options.read.ignore_checksum = yes;

    /// Read this btrfs subvolume: a path, a number, or /
    ///
    /// The default is the default subvolume of the image, as in Linux. / is the top level, which
    /// shows all subvolumes as directories.
    "subvol", text("PATH|ID"), "Source" { also: &["subvolume"] },
    |options, name| options.with.subvolume = Some(name);

    /// Read ext4, XFS, or btrfs without the changes in its journal
    ///
    /// By default, the journal of an image that was not unmounted is applied in memory, and one
    /// that cannot be read is an error. The image is never written.
    "no-journal", SWITCH, "Source" { aliases: &["ignore-log"] },
    |options, yes| options.with.no_journal = yes;

    /// Read this partition table of a disk
    ///
    /// The default is the table that Linux reads: a GPT only if the MBR has an entry of type 0xee.
    "partition-table", TABLE, "Source" {}, |options, table| options.with.partition_table = Some(table);

    /// Read this internal snapshot of a qcow2 image
    ///
    /// NAME is the name or number of the snapshot. The default is the current state.
    "snapshot", text("NAME"), "Source" {}, |options, name| options.with.snapshot = Some(name);

    /// Read what a qcow2 or differencing VHD image lacks from FILE
    ///
    /// May be given several times, in the order of the chain. Backing files that an image names are
    /// never opened unless given here.
    "allow-backing", file("FILE").many(), "Source" { also: &["backing"] },
    |options, path| options.with.backing.push(path);

    /// Read files of a composefs image from objects below DIR
    ///
    /// May be given several times. The digest of an object is verified before it is read.
    #[cfg(feature = "integrity")]
    "objects", file("DIR").many(), "Source" {}, |options, dir| options.with.objects.push(dir);

    /// Check every block that is read against this root hash
    ///
    /// The image needs a dm-verity hash tree at its end, as packfs verity appends it. A changed
    /// block is an error, and none of its bytes is used.
    #[cfg(feature = "integrity")]
    "root-hash", ROOT_HASH, "Source" { marks: &[Mark::Trust] }, |options, hash| options.trust = Trust::RootHash(hash);

    /// Check every block that is read; KEY signs the root hash
    ///
    /// The root hash is read from IMAGE.roothash, and its signature from IMAGE.roothash.minisig,
    /// as packfs verity --root-hash-file and packfs sign write them. KEY is a public key file.
    #[cfg(feature = "integrity")]
    "trust", file("KEY"), "Source" { conflicts: &["root-hash"], marks: &[Mark::Trust] },
    |options, key| options.trust = Trust::Key(key);

    /// Limit the disk cache for images at URLs to SIZE
    ///
    /// The cache is in $XDG_CACHE_HOME/packfs, or else ~/.cache/packfs. 0 turns it off. The default
    /// is 2 GiB. packfs cache lists and removes its files.
    #[cfg(feature = "remote")]
    "disk-cache", SIZE, "Images at URLs" { env: Some("PACKFS_CACHE_SIZE"), marks: &[Mark::Shared] },
    |options, bytes| options.remote.cache_len = bytes;

    /// Read images at URLs only from the disk cache
    ///
    /// No request is sent. A part that is not in the cache is an error.
    #[cfg(feature = "remote")]
    "offline", SWITCH, "Images at URLs" { marks: &[Mark::Shared] },
    |options, yes| options.remote.is_offline = yes;

    /// Choose the OCI image for this platform, as linux/arm64
    ///
    /// PLATFORM is OS/ARCHITECTURE[/VARIANT]. The default is Linux on the architecture of this
    /// machine.
    #[cfg(feature = "remote")]
    "platform", parsed::<packfs_remote::oci::Platform>("PLATFORM"), "Images at URLs" { marks: &[Mark::Shared, Mark::Registry] },
    |options, platform| options.remote.oci.platform = Some(platform);

    /// Talk to OCI registries without TLS
    ///
    /// Registries on this machine (localhost, 127.0.0.1, ::1) are always asked without TLS.
    #[cfg(feature = "remote")]
    "plain-http", SWITCH, "Images at URLs" { marks: &[Mark::Shared, Mark::Registry] },
    |options, yes| options.remote.oci.plain_http = yes;
}

impl OpenOptions {
    /// Returns options of names and texts, as [`Options::with_texts`] takes them.
    ///
    /// Errors: `Usage`.
    pub fn of_texts<T: AsRef<std::ffi::OsStr>>(
        texts: impl IntoIterator<Item = (impl AsRef<str>, T)>,
    ) -> packfs_core::Result<Self> {
        OpenOptions::new().with_texts(texts)
    }

    /// Returns the offset of the image in its file.
    pub fn image_offset(&self) -> u64 {
        self.offset
    }

    /// Returns the further files that hold data of the image.
    pub fn devices(&self) -> &[PathBuf] {
        &self.with.devices
    }

    /// Returns how images at URLs are read.
    #[cfg(feature = "remote")]
    pub fn remote_options(&self) -> &packfs_remote::RemoteOptions {
        &self.remote
    }

    /// Returns the directories with objects of a composefs image.
    #[cfg(feature = "integrity")]
    pub fn object_dirs(&self) -> &[PathBuf] {
        &self.with.objects
    }

    /// Returns the files and directories that are read beside an image.
    #[doc(hidden)]
    pub fn files_beside(&self, image: &Path) -> Vec<PathBuf> {
        let with = &self.with;
        let files = [&with.devices, &with.backing, &with.objects].into_iter().flatten().cloned();
        let files = files.chain(self.files_of_trust(image));
        files.collect()
    }

    #[cfg(feature = "integrity")]
    fn files_of_trust(&self, image: &Path) -> Vec<PathBuf> {
        let Trust::Key(key) = &self.trust else { return Vec::new() };
        let hash = root_hash_path(image);
        vec![key.clone(), signature_path(&hash), hash]
    }

    #[cfg(not(feature = "integrity"))]
    fn files_of_trust(&self, _image: &Path) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Returns true if every block is checked against a root hash while it is read.
    #[doc(hidden)]
    pub fn is_checked(&self) -> bool {
        #[cfg(feature = "integrity")]
        let is_checked = self.trust.is_given();
        #[cfg(not(feature = "integrity"))]
        let is_checked = false;
        is_checked
    }

    /// Returns true if the image is read as something else than it is in its file, or in spite of
    /// what it is, which no kernel can do.
    #[doc(hidden)]
    pub fn is_altered(&self) -> bool {
        let layers = OpenOption::ALL.into_iter().filter(|option| *option != OpenOption::Devices);
        self.magic.is_some() || self.read.ignore_checksum || layers.into_iter().any(|it| self.with.gives(it))
    }
}
