//! OCI images of tar layers as images with one EROFS image for each layer.

use crate::pack::warn_of_silence;
use crate::{OpenOptions, Pack, PackOptions};
use packfs_core::{Error, FileImage, Progress, Result, ResultExt};
use packfs_oci::{
    LayerEncoding, Layers, Loading, OciReport, images, of_image, once, tree_of, verified_image, with_layers,
};
use packfs_remote::RemoteOptions;
use packfs_remote::oci::{
    Descriptor, EROFS, ErofsMedia, LayerKind, OciImage, OciImages, OciLayer, OciPlace, OciTarget, Platform,
    REF_NAME, Unnamed,
};
use packfs_source::{Loaded, LowerDirs, Notes};
use std::sync::Arc;

/// OCI image that is to be converted.
#[derive(Clone, Debug)]
pub struct ConvertOci {
    source: OciPlace,
    target: OciPlace,
    media: ErofsMedia,
    encoding: LayerEncoding,
    are_all: bool,
    options: PackOptions,
    remote: RemoteOptions,
}

/// Converts an OCI image, once [`ConvertOci::run`] is called: each tar layer becomes an EROFS image
/// with whiteouts of overlayfs, and the configuration keeps all else. Layers that are EROFS images
/// stay.
pub fn convert_oci(source: OciPlace, target: OciPlace) -> ConvertOci {
    ConvertOci {
        source,
        target,
        media: ErofsMedia::default(),
        encoding: LayerEncoding::default(),
        are_all: false,
        options: PackOptions::default(),
        remote: RemoteOptions::default(),
    }
}

impl ConvertOci {
    setters! {
        /// Sets the media type of the layers.
        pub media(media: ErofsMedia) => media = media;

        /// Sets the encoding of the layers that are converted. Without a codec among the options of
        /// packing, the images in compressed layers are not compressed themselves.
        pub encoding(encoding: LayerEncoding) => encoding = encoding;

        /// Sets the options of packing. The format is always EROFS.
        pub options(options: PackOptions) => options = options;

        /// Sets platform, credentials, and time limits.
        pub remote(options: RemoteOptions) => remote = options;

        /// Converts the images of all platforms of an index, which becomes an index again. A
        /// reference to a single image is converted as without it.
        pub all_platforms(are_all: bool) => are_all = are_all;
    }

    /// Converts.
    ///
    /// Errors: those of the source, of packing, and of the target; `Unsupported` for an index
    /// without an image for Linux, if all are converted.
    pub fn run(&self, progress: &dyn Progress) -> Result<OciReport> {
        let remote = once(&self.remote);
        let mut found = images(&self.source, &remote, self.options.limits, progress)?;
        let listed = if self.are_all { found.list()? } else { None };
        let target = OciTarget::open(&self.target, &remote)?;
        let mut report = OciReport::default();
        let digest = match listed {
            Some(listed) => {
                let mut all = Vec::with_capacity(listed.len());
                for manifest in listed {
                    all.extend(self.listed(&found, manifest, &target, &mut report, progress)?);
                }
                if all.is_empty() {
                    let error = Error::unsupported("index of the image", "it has no image for Linux");
                    return Err(error.hint("EROFS layers are for Linux alone"));
                }
                target.put_index(all, found.annotations)?
            }
            None => {
                let image = found.open(&remote.oci, false)?;
                image.choice.iter().for_each(|choice| progress.warn(choice));
                target.put_named(self.image(image, &target, &mut report, progress)?)?
            }
        };
        report.digest = digest.to_string();
        Ok(report)
    }

    /// Converts an image of an index, and describes it as that did; `None` for what is no image for
    /// Linux, such as an attestation.
    fn listed(
        &self,
        found: &OciImages,
        manifest: Descriptor,
        target: &OciTarget,
        report: &mut OciReport,
        progress: &dyn Progress,
    ) -> Result<Option<Unnamed>> {
        let is_linux = |platform: &Platform| platform.os == "linux";
        let left_out = |platform: &Platform| {
            progress.warn(&format!("{platform} ({}) is left out: it is no image for Linux", manifest.digest));
        };
        if let Some(platform) = manifest.platform.as_ref().filter(|it| !is_linux(it)) {
            left_out(platform);
            return Ok(None);
        }
        let place = || format!("image {}", manifest.digest);
        let image = found.open_listed(&manifest).map_err(|error| error.at(place()))?;
        // Fields of a configuration that are wrong are those of the image, not of this program.
        let own = || serde_json::from_slice::<Platform>(&image.config).unwrap_or_default();
        let mut platform = manifest.platform.clone().unwrap_or_else(own);
        if !is_linux(&platform) {
            left_out(&platform);
            return Ok(None);
        }
        let mut made = self.image(image, target, report, progress).map_err(|error| error.at(place()))?;
        if !platform.needs_erofs() {
            platform.os_features.get_or_insert_default().push(EROFS.into());
        }
        made.descriptor.platform = Some(platform);
        made.descriptor.annotations = manifest.annotations.clone();
        made.descriptor.annotations.remove(REF_NAME);
        Ok(Some(made))
    }

    fn image(
        &self,
        image: OciImage,
        target: &OciTarget,
        report: &mut OciReport,
        progress: &dyn Progress,
    ) -> Result<Unnamed> {
        let mut layers = Layers::new(target, self.media, self.encoding, self.options.jobs);
        let open = |image| self.opening().loaded_layer(image, progress);
        let loading = Loading { limits: self.options.limits, image: &open };
        let shape = &self.options.shape;
        let mut dirs = LowerDirs::new(shape.implied.meta(shape.mtime_max), self.options.limits)?;
        let mut notes = Notes::default();
        for (index, layer) in image.layers.iter().enumerate() {
            match (layer.kind, &layer.descriptor, &layer.diff_id) {
                (LayerKind::Erofs | LayerKind::ErofsZstd, Some(descriptor), Some(diff_id)) => {
                    let blob = verified_image(layer, progress)?;
                    layers.put(descriptor.clone(), diff_id.clone(), &*blob, progress)?;
                    if image.layers[index..].iter().any(|above| above.kind == LayerKind::Tar) {
                        dirs.describe(of_image(layer, blob, &loading, progress)?)?;
                    }
                }
                _ => {
                    let loaded =
                        dirs.describe(self.loaded(&image.layers[..=index], &loading, progress)?)?;
                    notes.implied += loaded.notes.implied;
                    notes.replaced_links.extend(loaded.notes.replaced_links.iter().cloned());
                    self.add_packed(layer, loaded, &mut layers, progress)?;
                }
            }
        }
        warn_of_silence(&notes, progress);
        let wrong = |_| Error::corrupt("configuration of the image", "it is no JSON");
        let config = with_layers(serde_json::from_slice(&image.config).map_err(wrong)?, &layers.diff_ids)?;
        layers.finish(config.as_bytes(), image.annotations, report)
    }

    fn opening(&self) -> OpenOptions {
        OpenOptions::new().limits(self.options.limits)
    }

    /// Loads the highest of the layers, with copies of lower files that it has hard links to.
    fn loaded(&self, all: &[OciLayer], loading: &Loading<'_>, progress: &dyn Progress) -> Result<Loaded> {
        let Some((layer, below)) = all.split_last() else { return Err(Error::failed("internal: no layers")) };
        let loaded = tree_of(layer, loading, progress)?;
        if !packfs_source::has_links_below(&loaded.tree) {
            return Ok(loaded);
        }
        // Rare, so the layers are read again rather than held.
        let below = below.iter().map(|layer| tree_of(layer, loading, progress));
        let all = below.chain([Ok(loaded)]).collect::<Result<_>>()?;
        packfs_source::with_linked_files(all, self.options.limits)
    }

    fn add_packed(
        &self,
        layer: &OciLayer,
        loaded: Loaded,
        layers: &mut Layers<'_>,
        progress: &dyn Progress,
    ) -> Result<()> {
        let loaded = Arc::new(Loaded { notes: Notes::default(), ..loaded });
        let folder = packfs_pack::temporary_folder();
        let dir =
            tempfile::tempdir_in(&folder).or_io(|| format!("cannot create a directory in {folder:?}"))?;
        let path = dir.path().join("layer");
        let own_codec = matches!(self.encoding, LayerEncoding::Zstd { .. }).then(|| "none".into());
        let codec = self.options.codec.clone().or(own_codec);
        let options = PackOptions { format: Some(EROFS.into()), codec, sync: false, ..self.options.clone() };
        let report = Pack::of_loaded(loaded, &path).options(options).run_with(progress);
        report.map_err(|error| error.at(format!("layer {}", layer.name())))?;
        layers.add(&FileImage::open(&path)?, progress)
    }
}
