//! EROFS images as the layers of an OCI image.

use crate::config::{ImageConfig, with_layers};
use crate::encode::{EncodedLayer, LayerEncoding, encode};
use packfs_core::{Error, FileImage, Image, Limits, Progress, Result, Stage, usize_of};
use packfs_remote::RemoteOptions;
use packfs_remote::oci::{
    Descriptor, Digest, EROFS, ErofsMedia, ErofsParts, Hashing, Manifest, OciPlace, OciTarget, Unnamed,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Bytes hashed at a time.
const PART_LEN: usize = 1 << 20;

/// Images that are to be pushed.
#[derive(Clone, Debug)]
pub struct Push {
    images: Vec<PathBuf>,
    target: OciPlace,
    media: ErofsMedia,
    encoding: LayerEncoding,
    config: ImageConfig,
    jobs: usize,
    remote: RemoteOptions,
}

/// Pushes EROFS images, the lowest layer first, to a registry or a folder with an image layout,
/// once [`Push::run`] is called.
pub fn push<P: AsRef<Path>>(images: impl IntoIterator<Item = P>, target: OciPlace) -> Push {
    Push {
        images: images.into_iter().map(|image| image.as_ref().to_owned()).collect(),
        target,
        media: ErofsMedia::default(),
        encoding: LayerEncoding::default(),
        config: ImageConfig::default(),
        jobs: 0,
        remote: RemoteOptions::default(),
    }
}

/// Results of a push or conversion.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct OciReport {
    /// Digest of the manifest, or of the index of several images.
    pub digest: String,
    /// Number of images.
    pub images: u64,
    /// Number of layers.
    pub layers: u64,
    /// Number of layers that the target had already.
    pub present: u64,
    /// Length of all layers in bytes.
    pub layer_bytes: u64,
}

impl Push {
    setters! {
        /// Sets the media type of the layers.
        pub media(media: ErofsMedia) => media = media;

        /// Sets the encoding of the layers.
        pub encoding(encoding: LayerEncoding) => encoding = encoding;

        /// Sets the configuration.
        pub config(config: ImageConfig) => config = config;

        /// Threads that hash and compress; 0: one for each processor.
        pub jobs(count: usize) => jobs = count;

        /// Sets platform, credentials, and time limits.
        pub remote(options: RemoteOptions) => remote = options;
    }

    /// Pushes.
    ///
    /// Errors: `Unsupported` for an image that is no EROFS image; `Corrupt` for one whose hash tree
    /// does not match; `Failed` if the target refuses; `Io`, `Cancelled`.
    pub fn run(&self, progress: &dyn Progress) -> Result<OciReport> {
        let mut images = Vec::with_capacity(self.images.len());
        for path in &self.images {
            let image = FileImage::open(path)?;
            let format = packfs_formats::probe(&image)?;
            if format.is_none_or(|format| format.name() != EROFS) {
                let found = format.map_or("unknown", |format| format.name());
                let error =
                    Error::unsupported(format!("layer {path:?}"), format!("format {found}; EROFS is needed"));
                return Err(error.hint(format!("packfs pack {path:?} layer.erofs converts it")));
            }
            images.push(image);
        }
        let config = self.config.made(&self.remote, Limits::default(), progress)?;
        let target = OciTarget::open(&self.target, &self.remote)?;
        let mut layers = Layers::new(&target, self.media, self.encoding, self.jobs);
        for image in &images {
            layers.add(image, progress)?;
            image.check_unchanged()?;
        }
        let config = with_layers(config, &layers.diff_ids)?;
        let mut report = OciReport::default();
        let image = layers.finish(config.as_bytes(), BTreeMap::new(), &mut report)?;
        let digest = target.put_named(image)?.to_string();
        Ok(OciReport { digest, ..report })
    }
}

/// Layers that are written to a target.
pub struct Layers<'a> {
    target: &'a OciTarget,
    media: ErofsMedia,
    encoding: LayerEncoding,
    jobs: usize,
    descriptors: Vec<Descriptor>,
    /// Digests of the decoded layers.
    pub diff_ids: Vec<Digest>,
    present: u64,
}

impl<'a> Layers<'a> {
    /// Begins without layers.
    pub fn new(target: &'a OciTarget, media: ErofsMedia, encoding: LayerEncoding, jobs: usize) -> Self {
        let (descriptors, diff_ids) = (Vec::new(), Vec::new());
        Layers { target, media, encoding, jobs, descriptors, diff_ids, present: 0 }
    }

    /// Adds an EROFS image, encoded, with the root hash of a hash tree that is appended to it.
    ///
    /// Errors: `Corrupt` if the hash tree does not match; `Usage` for a wrong level; those of the
    /// target.
    pub fn add(&mut self, image: &dyn Image, progress: &dyn Progress) -> Result<()> {
        let verity = verity_of(image, self.jobs, progress)?;
        let level = match self.encoding {
            LayerEncoding::Plain => {
                let digest = digest_of(image, progress)?;
                let parts = ErofsParts { verity, ..ErofsParts::default() };
                let descriptor = self.media.layer(digest.clone(), image.len(), &parts);
                return self.put(descriptor, digest, image, progress);
            }
            LayerEncoding::Indexed => None,
            LayerEncoding::Zstd { level } => Some(level),
        };
        let EncodedLayer { file, digest, diff_id, index, index_digest } =
            encode(image, level, self.jobs, progress)?;
        let decoded = level.map(|_| diff_id.clone());
        let parts = ErofsParts { decoded, verity, index: Some((index, index_digest)) };
        let descriptor = self.media.layer(digest, file.len(), &parts);
        self.put(descriptor, diff_id, &file, progress)
    }

    /// Adds a blob as it is.
    ///
    /// Errors: those of the target.
    pub fn put(
        &mut self,
        descriptor: Descriptor,
        diff_id: Digest,
        image: &dyn Image,
        progress: &dyn Progress,
    ) -> Result<()> {
        progress.begin(Stage::Data, 1, image.len());
        let is_sent = self.target.put_blob(&descriptor, image, progress)?;
        self.present = self.present.saturating_add(u64::from(!is_sent));
        self.descriptors.push(descriptor);
        self.diff_ids.push(diff_id);
        Ok(())
    }

    /// Writes the configuration, and returns the manifest.
    ///
    /// Errors: those of the target.
    pub fn finish(
        self,
        config: &[u8],
        annotations: BTreeMap<String, String>,
        report: &mut OciReport,
    ) -> Result<Unnamed> {
        report.images += 1;
        report.layers += self.descriptors.len() as u64;
        report.present += self.present;
        let bytes = self.descriptors.iter().map(|it| it.size);
        report.layer_bytes = bytes.fold(report.layer_bytes, u64::saturating_add);
        let descriptors = self.descriptors;
        self.target.put_manifest(config, |config| Manifest::new(config, descriptors, annotations))
    }
}

fn digest_of(image: &dyn Image, progress: &dyn Progress) -> Result<Digest> {
    progress.begin(Stage::Hash, 1, image.len());
    let (mut hashing, mut at, mut part) = (Hashing::sha256(), 0_u64, vec![0; PART_LEN]);
    while at < image.len() {
        if progress.cancelled() {
            return Err(Error::cancelled());
        }
        let len = usize_of(image.len() - at).min(PART_LEN);
        image.read_exact_at(at, &mut part[..len])?;
        hashing.update(&part[..len]);
        at += len as u64;
        progress.advance(0, len as u64, 0);
    }
    Ok(hashing.finish())
}

/// Returns place, block length, and root hash of an appended hash tree, which is compared with the
/// data; `None` if there is none.
fn verity_of(image: &dyn Image, jobs: usize, progress: &dyn Progress) -> Result<Option<(u64, u32, Digest)>> {
    let Some((offset, params)) = packfs_integrity::find_appended(image)? else { return Ok(None) };
    let report = packfs_integrity::verify_verity(image, &params, image, offset, jobs, progress)?;
    if !report.is_sound(&report.root_hash) {
        let fault = "its dm-verity hash tree does not match its data";
        return Err(Error::corrupt(image.name(), fault).hint("packfs verity --verify lists the blocks"));
    }
    let root = format!("{}:{}", params.algorithm.name(), packfs_core::to_hex(&report.root_hash));
    Ok(Some((offset, params.data_block_len, root.parse()?)))
}
