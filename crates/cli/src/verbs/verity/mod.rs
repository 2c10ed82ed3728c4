//! `packfs verity`: hash trees by which Linux checks an image while it is read.

mod verify;

#[cfg(test)]
pub use verify::Verified;

use crate::args::SandboxArg;
use crate::out::json;
use crate::out::report::Out;
use crate::out::{Outcome, text};
use packfs::FileImage;
use packfs::integrity::{self, FsVerityOptions, HashAlgorithm, Replacement, VerityOptions, VerityParams};
use packfs::{Error, Image, Progress, Result, ResultExt, escaped, from_hex, to_hex, uuid_text};
use packfs_sandbox::Sandbox;
use packfs_terminal::work::Work;
use serde::Serialize;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Add or verify dm-verity hash trees; print fs-verity digests
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    /// Image; with --fs any files
    #[arg(value_name = "IMAGE", required = true)]
    pub images: Vec<PathBuf>,

    /// Write the hash tree to FILE
    ///
    /// The image stays unchanged. Without --hash-file the tree is appended to it. With --verify the
    /// tree is read from FILE.
    #[arg(long, value_name = "FILE", conflicts_with = "fs")]
    pub hash_file: Option<PathBuf>,

    /// Verify the image and its hash tree
    #[arg(long, conflicts_with_all = ["fs", "salt", "uuid", "block_size", "hash_block_size", "algorithm"])]
    pub verify: bool,

    /// With --verify: expect this root hash
    #[arg(long, value_name = "HEX", requires = "verify", conflicts_with = "root_hash_file")]
    pub root_hash: Option<String>,

    /// Write the root hash to FILE, as hexadecimal digits
    ///
    /// With --verify the root hash is read from FILE.
    #[arg(long, value_name = "FILE", conflicts_with = "fs")]
    pub root_hash_file: Option<PathBuf>,

    /// With --verify: read the superblock at this offset
    ///
    /// Needed if the superblock is neither at the end of the image nor at the start of --hash-file.
    #[arg(long, value_name = "SIZE", value_parser = text::parse_size, requires = "verify")]
    pub hash_offset: Option<u64>,

    /// Print the fs-verity digest of each file
    ///
    /// The digests are those of `fsverity digest`.
    #[arg(long)]
    pub fs: bool,

    /// Set the hash function
    #[arg(long, value_name = "NAME", default_value = "sha256", value_parser = ["sha256", "sha512"])]
    pub algorithm: String,

    /// Set the size of data and hash blocks: 512 to 64K
    #[arg(long, value_name = "SIZE", default_value = "4096", value_parser = text::parse_block_len)]
    pub block_size: u32,

    /// Set the size of hash blocks (default: --block-size)
    #[arg(long, value_name = "SIZE", value_parser = text::parse_block_len, conflicts_with = "fs")]
    pub hash_block_size: Option<u32>,

    /// Set the salt, as hexadecimal digits; - for none
    ///
    /// The default is 32 bytes derived from the image; with --fs none.
    #[arg(long, value_name = "HEX", allow_hyphen_values = true)]
    pub salt: Option<String>,

    /// Set the UUID of the hash tree
    ///
    /// The default is derived from the image.
    #[arg(long, value_name = "UUID", conflicts_with = "fs")]
    pub uuid: Option<String>,

    /// Print a JSON object; with --fs an array
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub sandbox: SandboxArg,

    #[command(flatten)]
    pub work: Work,
}

const EXAMPLES: &str = "\
Examples:
  packfs verity root.erofs --root-hash-file root.roothash
  packfs verity root.sqfs --hash-file root.verity
  packfs verity --verify root.erofs --root-hash-file root.roothash
  packfs verity --fs --salt 0102 app.erofs

The output ends with the veritysetup command that opens the image. With
--verify exit code 3 if image, hash tree and root hash do not agree.";

/// Reads hexadecimal digits; `-` is nothing.
pub fn parse_hex(what: &str, typed: &str) -> Result<Vec<u8>> {
    match typed {
        "-" => Ok(Vec::new()),
        _ => from_hex(typed).ok_or_else(|| {
            Error::usage(format!("invalid {what} {typed:?}: not an even number of hexadecimal digits"))
        }),
    }
}

fn parse_uuid(typed: &str) -> Result<[u8; 16]> {
    let bytes = from_hex(typed.replace('-', "")).and_then(|bytes| <[u8; 16]>::try_from(bytes).ok());
    bytes
        .filter(|_| matches!(typed.len(), 32 | 36))
        .ok_or_else(|| Error::usage(format!("invalid UUID {typed:?}")))
}

/// A hash tree that was written.
struct Made {
    params: VerityParams,
    hash_offset: u64,
    root_hash: String,
}

impl Opts {
    /// Does what is asked for.
    pub fn run(self) -> Outcome {
        self.enter_sandbox()?;
        self.work.shown(self.json, |bars| match &self.images[..] {
            _ if self.fs => self.measure(bars),
            [image] if self.verify => verify::run(&self, image, bars),
            [image] => {
                let made = self.add(image, bars)?;
                bars.finish();
                self.tell(image, &made)?;
                Ok(ExitCode::SUCCESS)
            }
            _ => Err(Error::usage("cannot process several images at once; only --fs accepts more than one")),
        })
    }

    /// Gives up all but what is hashed and compared, if that is asked for.
    fn enter_sandbox(&self) -> Result<()> {
        if self.sandbox.is_wanted() && !self.verify && !self.fs {
            let error =
                Error::usage("cannot write a hash tree in a sandbox; --sandbox needs --verify or --fs");
            return Err(error.hint("verify the tree afterwards with --verify --sandbox"));
        }
        self.sandbox.enter(|sandbox| {
            let read = self.images.iter().chain(&self.hash_file).chain(&self.root_hash_file);
            read.fold(sandbox, Sandbox::read)
        })
    }

    fn algorithm(&self) -> HashAlgorithm {
        HashAlgorithm::by_name(&self.algorithm).unwrap_or_default()
    }

    fn measure<'a>(&'a self, bars: &dyn Progress) -> Outcome {
        let salt = self.salt.as_deref().map(|salt| parse_hex("salt", salt)).transpose()?.unwrap_or_default();
        let options = FsVerityOptions { algorithm: self.algorithm(), block_len: self.block_size, salt };
        let mut rows = Vec::new();
        for path in &self.images {
            let digest =
                integrity::fs_verity_digest(&FileImage::open(path)?, &options, self.work.jobs(), bars)?;
            rows.push((path, format!("{}:{}", self.algorithm, to_hex(&digest))));
        }
        if self.json {
            let document = |(path, digest): &(&'a PathBuf, String)| Measured {
                file: json::Bytes::from(*path),
                fs_verity: digest.clone(),
            };
            json::print(&rows.iter().map(document).collect::<Vec<_>>())?;
        } else {
            let mut out = Out::stdout();
            for (path, digest) in &rows {
                out.line(format_args!("{digest} {}", escaped(path.as_os_str().as_bytes())))?;
            }
            out.finish()?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn add(&self, path: &Path, bars: &dyn Progress) -> Result<Made> {
        let options = VerityOptions {
            algorithm: self.algorithm(),
            data_block_len: self.block_size,
            hash_block_len: self.hash_block_size.unwrap_or(self.block_size),
            salt: self.salt.as_deref().map(|salt| parse_hex("salt", salt)).transpose()?,
            uuid: self.uuid.as_deref().map(parse_uuid).transpose()?,
        };
        let image = FileImage::open(path)?;
        let made = match &self.hash_file {
            Some(hash_file) => {
                let params = options.params(&image, image.len())?;
                let out = Replacement::create(hash_file)?;
                let root = integrity::write_verity(&image, &params, out.file(), 0, self.work.jobs(), bars)?;
                image.check_unchanged()?;
                out.finish()?;
                Made { params, hash_offset: 0, root_hash: to_hex(&root) }
            }
            None => self.append(path, &image, &options, bars)?,
        };
        if let Some(file) = &self.root_hash_file {
            let out = Replacement::create(file)?;
            std::io::Write::write_all(&mut out.file(), made.root_hash.as_bytes())
                .or_io(|| format!("cannot write {file:?}"))?;
            out.finish()?;
        }
        Ok(made)
    }

    fn append(
        &self,
        path: &Path,
        image: &FileImage,
        options: &VerityOptions,
        bars: &dyn Progress,
    ) -> Result<Made> {
        let cannot = || format!("cannot write to {path:?}");
        if std::fs::metadata(path).or_io(cannot)?.file_type().is_block_device() {
            return Err(Error::usage(format!("cannot append a hash tree to {path:?}: it is a block device"))
                .hint("use --hash-file FILE"));
        }
        if let Some((at, _)) = integrity::find_appended(image)? {
            let error =
                Error::failed(format!("cannot append a hash tree to {path:?}: it has one at {at:#x}"));
            return Err(error.hint(format!("truncate -s {at} removes it")));
        }
        let out = File::options().write(true).open(path).or_io(cannot)?;
        let block_len = u64::from(options.data_block_len.max(options.hash_block_len).max(512));
        let data_len = image.len().next_multiple_of(block_len);
        let written = (|| {
            out.set_len(data_len).or_io(cannot)?;
            // Opened anew, since it is longer now.
            let image = FileImage::open(path)?;
            let params = options.params(&image, data_len)?;
            let root = integrity::write_verity(&image, &params, &out, data_len, self.work.jobs(), bars)?;
            Ok(Made { params, hash_offset: data_len, root_hash: to_hex(&root) })
        })();
        if written.is_err() {
            // What the image was is all before that.
            out.set_len(image.len()).or_io(cannot)?;
        }
        written
    }

    fn tell(&self, path: &Path, made: &Made) -> Result<()> {
        let Made { params, hash_offset, root_hash } = made;
        let hash_path = self.hash_file.as_deref().unwrap_or(path);
        let hash_name = escaped(hash_path.as_os_str().as_bytes());
        let name = escaped(path.as_os_str().as_bytes());
        let offset = match self.hash_file {
            Some(_) => String::new(),
            None => format!(" --hash-offset={hash_offset}"),
        };
        let command = format!("veritysetup open '{name}' NAME '{hash_name}' {root_hash}{offset}");
        if self.json {
            return json::print(&Document {
                image: json::Bytes::from(path),
                hash_file: json::Bytes::from(hash_path),
                root_hash,
                algorithm: params.algorithm.name(),
                salt: to_hex(&params.salt),
                uuid: uuid_text(&params.uuid),
                data_block_size: params.data_block_len,
                hash_block_size: params.hash_block_len,
                data_blocks: params.data_blocks,
                hash_offset: *hash_offset,
                hash_size: params.hash_len(),
                open: command,
            });
        }
        let mut out = Out::stdout();
        if self.work.quiet {
            out.line(root_hash)?;
            return out.finish();
        }
        out.line(format_args!("root hash: {root_hash}"))?;
        let (covered, tree) = (text::size(params.data_len()), text::size(params.hash_len()));
        out.line(format_args!(
            "covers {covered}; the tree takes {tree} of {hash_name}, from {hash_offset:#x} on"
        ))?;
        out.line(format_args!("open with: {command}"))?;
        out.finish()
    }
}

/// Document of `verity --json`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Document<'a> {
    #[serde(flatten)]
    image: json::Bytes<'a, json::Image>,
    #[serde(flatten)]
    hash_file: json::Bytes<'a, HashFile>,
    /// Root hash in hexadecimal.
    root_hash: &'a str,
    /// `sha256` or `sha512`.
    algorithm: &'static str,
    /// Salt in hexadecimal.
    salt: String,
    /// UUID of the hash tree.
    uuid: String,
    /// Length of a data block.
    data_block_size: u32,
    /// Length of a hash block.
    hash_block_size: u32,
    /// Number of data blocks.
    data_blocks: u64,
    /// Offset of the superblock in `hash_file`.
    hash_offset: u64,
    /// Length of superblock and tree.
    hash_size: u64,
    /// `veritysetup` command that opens the image.
    open: String,
}

json::byte_key!(HashFile, "hash_file", "Path of the file with the hash tree: the image, if appended.");
json::byte_key!(FileKey, "file", "Path of the file.");

/// Entry of `verity --fs --json`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Measured<'a> {
    #[serde(flatten)]
    file: json::Bytes<'a, FileKey>,
    /// The fs-verity digest, as `ALGORITHM:HEX`.
    fs_verity: String,
}
