//! Options that several verbs have, and what they mean.

use crate::args::{Limiting, Opening, SandboxArg, Texts};
use crate::out::{json, report};
use packfs::sink::Pattern;
use packfs::{OpenOptions, Opened, Result};
use packfs_sandbox::Sandbox;
use std::borrow::Cow;
use std::ffi::OsString;
use std::ops::Deref;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

/// The image that is read.
#[derive(clap::Args)]
pub struct ImageInput {
    /// Image to read: a file, a block device, or a URL
    ///
    /// URLs are http://, https://, s3://BUCKET/KEY, and oci://REGISTRY/NAME[:TAG|@DIGEST] for an
    /// OCI image with one EROFS layer, which may also be in oci-layout:DIR[:TAG].
    #[arg(value_name = "IMAGE")]
    pub image: PathBuf,

    #[command(flatten)]
    pub opening: Texts<Opening>,

    /// Print read statistics as JSON to standard error
    ///
    /// The object counts requests, bytes read, decoded blocks and cache hits. It is printed at the
    /// end.
    #[arg(long)]
    pub stats: bool,

    #[command(flatten)]
    pub sandbox: SandboxArg,

    #[command(flatten)]
    pub limits: Texts<Limiting>,
}

impl ImageInput {
    /// Opens the image, to be decoded on so many threads (0: all processors). With a sandbox,
    /// nothing else can be opened from then on.
    pub fn open(&self, jobs: usize) -> Result<ImageWithStats> {
        self.open_reaching(jobs, |sandbox| sandbox)
    }

    /// The same, for a verb that reaches more than the image.
    pub fn open_reaching(
        &self,
        jobs: usize,
        reach: impl FnOnce(Sandbox) -> Sandbox,
    ) -> Result<ImageWithStats> {
        self.enter_sandbox(reach)?;
        self.open_with(&self.options(jobs)?)
    }

    /// Gives up all but the image and what `reach` adds, if that is asked for.
    pub fn enter_sandbox(&self, reach: impl FnOnce(Sandbox) -> Sandbox) -> Result<()> {
        let options = self.options(0)?;
        self.sandbox.enter(|sandbox| {
            let beside = options.files_beside(&self.image);
            let sandbox = [&self.image].into_iter().chain(&beside).fold(sandbox, Sandbox::read);
            // A compressed disk is decoded there.
            let is_compressed = options.is_compressed(&self.image);
            reach(if is_compressed { sandbox.scratch(packfs::temporary_folder()) } else { sandbox })
        })
    }

    /// Returns the path or URL for documents, without secrets.
    pub fn shown(&self) -> Cow<'_, str> {
        match packfs::without_secrets(&self.image) {
            Cow::Borrowed(path) => path.to_string_lossy(),
            Cow::Owned(path) => Cow::Owned(path.to_string_lossy().into_owned()),
        }
    }

    /// Options to open the image.
    pub fn options(&self, jobs: usize) -> Result<OpenOptions> {
        Ok(OpenOptions::of_texts(self.opening.iter())?.jobs(jobs).limits(self.limits.limits()?))
    }

    /// Opens the image with options, in the sandbox that was entered, if any.
    pub fn open_with(&self, options: &OpenOptions) -> Result<ImageWithStats> {
        let opened = options.open(&self.image)?;
        report::opened(&opened);
        Ok(ImageWithStats { opened: Arc::new(opened), prints_stats: self.stats })
    }
}

/// An opened image that tells at its end what reading it has cost, if that is wanted.
pub struct ImageWithStats {
    opened: Arc<Opened>,
    prints_stats: bool,
}

impl ImageWithStats {
    /// Returns the image, to be shared.
    pub fn shared(&self) -> Arc<Opened> {
        Arc::clone(&self.opened)
    }
}

impl Deref for ImageWithStats {
    type Target = Opened;

    fn deref(&self) -> &Opened {
        &self.opened
    }
}

impl Drop for ImageWithStats {
    fn drop(&mut self) {
        if self.prints_stats {
            let counters = self.opened.counters().rows().into_iter();
            let object: json::Object = counters.map(|(name, count)| (name.into(), count.into())).collect();
            report::note(json::Value::Object(object));
        }
    }
}

/// Paths and globs as typed.
pub fn patterns(typed: &[OsString]) -> Result<Vec<Pattern>> {
    typed.iter().map(|text| Pattern::parse(text.as_bytes())).collect()
}
