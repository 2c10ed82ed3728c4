//! OCI images of tar layers as images with one EROFS image for each layer.

use super::layers::{once, tree_of, verified_image};
use super::open::image;
use super::push::{Layers, OciReport};
use crate::{OpenOptions, Pack, PackOptions};
use packfs_core::{Error, FileImage, Progress, Result, ResultExt};
use packfs_remote::RemoteOptions;
use packfs_remote::oci::{Digest, EROFS, ErofsMedia, LayerKind, OciLayer, OciPlace, OciTarget};
use serde_json::Value;
use std::sync::Arc;

/// OCI image that is to be converted.
#[derive(Clone, Debug)]
pub struct Convert {
    source: OciPlace,
    target: OciPlace,
    media: ErofsMedia,
    options: PackOptions,
    remote: RemoteOptions,
}

/// Converts an OCI image, once [`Convert::run`] is called: each tar layer becomes an EROFS image
/// with whiteouts of overlayfs, and the configuration keeps all else. Layers that are EROFS images
/// stay.
pub fn convert(source: OciPlace, target: OciPlace) -> Convert {
    Convert {
        source,
        target,
        media: ErofsMedia::default(),
        options: PackOptions::default(),
        remote: RemoteOptions::default(),
    }
}

impl Convert {
    /// Sets the media type of the layers.
    #[must_use]
    pub fn media(mut self, media: ErofsMedia) -> Self {
        self.media = media;
        self
    }

    /// Sets the options of packing. The format is always EROFS.
    #[must_use]
    pub fn options(mut self, options: PackOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets platform, credentials, and time limits.
    #[must_use]
    pub fn remote(mut self, options: RemoteOptions) -> Self {
        self.remote = options;
        self
    }

    /// Converts.
    ///
    /// Errors: those of the source, of packing, and of the target.
    pub fn run(&self, progress: &dyn Progress) -> Result<OciReport> {
        let remote = once(&self.remote);
        let found = image(&self.source, &remote, self.options.limits, false, progress)?;
        found.choice.iter().for_each(|choice| progress.warn(choice));
        let target = OciTarget::open(&self.target, &remote)?;
        let mut layers = Layers::new(&target, self.media, self.options.jobs);
        for layer in &found.layers {
            match (layer.kind, &layer.descriptor, &layer.diff_id) {
                (LayerKind::Erofs | LayerKind::ErofsZstd, Some(descriptor), Some(diff_id)) => {
                    let blob = verified_image(layer, progress)?;
                    layers.put(descriptor.clone(), diff_id.clone(), &*blob, progress)?;
                }
                _ => self.add_packed(layer, &mut layers, progress)?,
            }
        }
        let config = with_layers(&found.config, &layers.diff_ids)?;
        layers.finish(config.as_bytes(), found.annotations)
    }

    fn add_packed(&self, layer: &OciLayer, layers: &mut Layers<'_>, progress: &dyn Progress) -> Result<()> {
        let opening = OpenOptions::new().limits(self.options.limits).remote(once(&self.remote));
        let loaded = Arc::new(tree_of(layer, &opening, None, progress)?);
        let folder = packfs_pack::temporary_folder();
        let dir =
            tempfile::tempdir_in(&folder).or_io(|| format!("cannot create a directory in {folder:?}"))?;
        let path = dir.path().join("layer");
        let options = PackOptions { format: Some(EROFS.into()), sync: false, ..self.options.clone() };
        let report = Pack::of_loaded(loaded, &path).options(options).run_with(progress);
        report.map_err(|error| error.at(format!("layer {}", layer.name())))?;
        layers.add(&FileImage::open(&path)?, progress)
    }
}

/// Replaces the digests of layers in a configuration, and says that it needs EROFS.
fn with_layers(config: &[u8], diff_ids: &[Digest]) -> Result<String> {
    let wrong = || Error::corrupt("configuration of the image", "it is no JSON object");
    let mut config: Value = serde_json::from_slice(config).map_err(|_| wrong())?;
    let object = config.as_object_mut().ok_or_else(wrong)?;
    object.insert("rootfs".into(), serde_json::json!({ "type": "layers", "diff_ids": diff_ids }));
    let features = object.entry("os.features").or_insert_with(|| Value::Array(Vec::new()));
    match features.as_array_mut() {
        Some(all) if all.iter().any(|feature| feature == EROFS) => {}
        Some(all) => all.push(EROFS.into()),
        None => *features = serde_json::json!([EROFS]),
    }
    Ok(config.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_keeps_all_but_its_layers() {
        let id = Digest::of(b"");
        let config =
            br#"{"os":"linux","config":{"Cmd":["sh"]},"rootfs":{"type":"layers","diff_ids":[]},"x":[1]}"#;
        let found: Value =
            serde_json::from_str(&with_layers(config, std::slice::from_ref(&id)).unwrap()).unwrap();
        assert_eq!(found["config"]["Cmd"][0], "sh");
        assert_eq!(found["x"][0], 1);
        assert_eq!(found["rootfs"]["diff_ids"][0], id.to_string());
        assert_eq!(found["os.features"], serde_json::json!(["erofs"]));
        let again = with_layers(found.to_string().as_bytes(), &[id]).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&again).unwrap(), found);
        assert!(with_layers(b"[]", &[]).is_err());
    }
}
