//! `packfs verify`: verifies the signature of an image, or the shards of a plan.

mod shards;

#[cfg(test)]
pub use shards::Document as ShardsDocument;

use crate::args::{SandboxArg, read_text};
use crate::out::report::Out;
use crate::out::{Outcome, json};
use owo_colors::OwoColorize;
use packfs::FileImage;
use packfs::integrity::{self, Replacement, VerifyingKey};
use packfs::{Error, Progress, Result};
use packfs_sandbox::Sandbox;
use packfs_terminal::work::Answering;
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;

/// Verify the signature of an image, or the shards of a plan
///
/// PLAN is the folder of a plan, for --from: each shard in STORE is compared with its SHA-256, and
/// all its data is decoded.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    /// Image to verify; with --from the folder of a plan
    #[arg(value_name = "IMAGE|PLAN")]
    image: PathBuf,

    /// Read the public key of the signer from FILE
    #[arg(short, long, value_name = "FILE", required_unless_present_any = ["key", "from"])]
    public_key: Option<PathBuf>,

    /// Set the public key: the second line of a key file
    #[arg(short = 'P', long, value_name = "BASE64", conflicts_with = "public_key")]
    key: Option<String>,

    /// Read the signature from FILE (default: IMAGE.minisig)
    #[arg(long, value_name = "FILE")]
    signature: Option<PathBuf>,

    /// Copy the image to FILE while it is verified
    ///
    /// The copy is removed if the signature is wrong.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Verify the shards of a plan in this store
    ///
    /// A directory, or s3://BUCKET/PREFIX.
    #[arg(long, value_name = "STORE", conflicts_with_all = ["public_key", "key", "signature", "output", "sandbox"])]
    from: Option<PathBuf>,

    /// Verify only shard N, such as one job of many
    #[arg(long, value_name = "N", requires = "from")]
    shard: Option<usize>,

    /// Verify names and metadata of a merged image, too
    ///
    /// Its structure is checked, and its entries are compared with the lists of the plan. Its data
    /// is that of the shards.
    #[arg(long = "image", value_name = "FILE", requires = "from")]
    merged: Option<PathBuf>,

    #[command(flatten)]
    sandbox: SandboxArg,

    #[command(flatten)]
    answering: Answering,
}

const EXAMPLES: &str = "\
Examples:
  packfs verify root.erofs --public-key release.key.pub
  packfs verify root.erofs -p release.key.pub --signature root.minisig
  packfs verify downloads/root.erofs -p release.key.pub -o /images/root.erofs
  packfs verify plan --from /shared/store --image data.erofs

Exit code 3 if the image differs from the signed one, 1 if another key signed
it. The image may change after it was verified if others can write to it;
--output makes a copy of exactly the verified bytes.

For a plan, exit code 3 if a shard or the image is damaged, 1 if one is missing.";

impl Opts {
    /// Verifies.
    pub fn run(self) -> Outcome {
        if let Some(store) = &self.from {
            let request = shards::Request {
                plan: &self.image,
                store,
                shard: self.shard,
                image: self.merged.as_deref(),
                answering: &self.answering,
            };
            return request.run();
        }
        let copy = self.output.as_deref().map(Replacement::create).transpose()?;
        self.enter_sandbox(copy.as_ref())?;
        self.answering.shown(|bars| {
            let (key, comment) = self.verify(copy, bars)?;
            bars.finish();
            self.tell(&key, &comment)?;
            Ok(ExitCode::SUCCESS)
        })
    }

    /// Gives up all but image, signature and key, and the name of the copy, which is open already.
    fn enter_sandbox(&self, copy: Option<&Replacement>) -> Result<()> {
        self.sandbox.enter(|sandbox| {
            let sandbox = sandbox.read(&self.image).read(self.signature_path());
            let sandbox = self.public_key.iter().fold(sandbox, Sandbox::read);
            copy.into_iter().fold(sandbox, |sandbox, copy| sandbox.name_in(copy.folder()))
        })
    }

    fn signature_path(&self) -> PathBuf {
        self.signature.clone().unwrap_or_else(|| integrity::signature_path(&self.image))
    }

    /// Number of the key, and what was signed with the image.
    fn verify(&self, copy: Option<Replacement>, bars: &dyn Progress) -> Result<(String, String)> {
        let text = match (&self.key, &self.public_key) {
            (Some(key), _) => key.clone(),
            (None, Some(path)) => read_text(path)?,
            (None, None) => return Err(Error::usage("a public key is needed")),
        };
        let key = VerifyingKey::read(&text)?;
        let signature = read_text(&self.signature_path())?;
        let image = FileImage::open(&self.image)?;
        let comment = key.verify(&image, &signature, copy.as_ref().map(Replacement::file), bars)?;
        if let Some(copy) = copy {
            copy.finish()?;
        }
        Ok((key.id(), comment))
    }

    fn tell(&self, key: &str, comment: &str) -> Result<()> {
        if self.answering.json {
            let image = json::Bytes::from(&self.image);
            return json::print(&Document { image, verified: true, key, comment });
        }
        if self.answering.work.quiet {
            return Ok(());
        }
        let comment = comment.replace('\t', "  ");
        let mut out = Out::stdout();
        out.line(format_args!("{}: signed with key {key}: {comment}", "verified".green().bold()))?;
        out.finish()
    }
}

/// Document of `verify --json`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Document<'a> {
    #[serde(flatten)]
    image: json::Bytes<'a, json::Image>,
    /// True; everything else is an error.
    verified: bool,
    /// Number of the key.
    key: &'a str,
    /// Comment that was signed with the image.
    comment: &'a str,
}
