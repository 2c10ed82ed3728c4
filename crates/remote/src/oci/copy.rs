//! Copies of images as they are: manifests, configuration, and layers keep their digests.

use super::blobs::{BlobFiles, Folder};
use super::image::{Blobs, Found, OciImages, Resolver};
use super::manifest::{Descriptor, Document, INDEX, MANIFEST, media_type_of};
use super::target::{OciTarget, Unnamed};
use super::{docker_archive, layout};
use crate::platform::OciOptions;
use packfs_core::{Error, Progress, Result, Stage};
use std::path::Path;
use std::sync::Arc;

/// Counts of a copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Images.
    pub images: u64,
    /// Layers.
    pub layers: u64,
    /// Layers that the target had already.
    pub present: u64,
    /// Length of all layers in bytes.
    pub layer_bytes: u64,
}

impl OciImages {
    /// Copies the image of the platform, or those of all platforms with their index. Returns the
    /// document that names it, for [`OciTarget::put_named`], and a warning of the choice.
    ///
    /// Errors: `Failed` if there is none for the platform; `Unsupported` for an archive of `docker
    /// save`, which has no manifest; those of the target.
    pub fn copy_to(
        self,
        target: &OciTarget,
        options: &OciOptions,
        are_all: bool,
        copied: &mut Copied,
        progress: &dyn Progress,
    ) -> Result<(Unnamed, Option<String>)> {
        let resolver = Resolver { blobs: self.blobs, options, prefers_erofs: false };
        let mut copy = Copy { resolver: &resolver, target, copied, progress, are_all };
        match self.found {
            Found::Saved(_) => {
                let error =
                    Error::unsupported(resolver.name(), "it has no manifest, which is what is copied");
                Err(error.hint("packfs oci convert and packfs pack read archives of docker save"))
            }
            Found::Document(bytes) => copy.document(bytes, None, 0),
            Found::Entries(entries) => match &entries[..] {
                [only] => copy.document(resolver.document(only)?, Some(only.clone()), 0),
                _ => copy.chosen(entries, 0),
            },
        }
    }
}

struct Copy<'a> {
    resolver: &'a Resolver<'a>,
    target: &'a OciTarget,
    copied: &'a mut Copied,
    progress: &'a dyn Progress,
    are_all: bool,
}

impl Copy<'_> {
    fn chosen(&mut self, entries: Vec<Descriptor>, depth: usize) -> Result<(Unnamed, Option<String>)> {
        let (chosen, choice) = self.resolver.chosen(&entries, depth)?;
        let bytes = self.resolver.document(&chosen)?;
        let (found, deeper) = self.document(bytes, Some(chosen), depth.saturating_add(1))?;
        Ok((found, choice.or(deeper)))
    }

    /// Copies what a manifest or index names.
    fn document(
        &mut self,
        bytes: Vec<u8>,
        descriptor: Option<Descriptor>,
        depth: usize,
    ) -> Result<(Unnamed, Option<String>)> {
        self.resolver.check_depth(depth)?;
        match Document::parse(&bytes, &self.resolver.name())? {
            Document::Index(index) if !self.are_all => self.chosen(index.manifests, depth),
            Document::Index(index) => {
                for entry in index.manifests {
                    let bytes = self.resolver.document(&entry)?;
                    let (found, _) = self.document(bytes, Some(entry), depth.saturating_add(1))?;
                    self.target.put_unnamed(&found)?;
                }
                Ok((Unnamed::of(bytes, descriptor, INDEX), None))
            }
            Document::Manifest(manifest) => {
                self.blob(&manifest.config)?;
                for layer in &manifest.layers {
                    let is_sent = self.blob(layer)?;
                    self.copied.layers = self.copied.layers.saturating_add(1);
                    self.copied.present = self.copied.present.saturating_add(u64::from(!is_sent));
                    self.copied.layer_bytes = self.copied.layer_bytes.saturating_add(layer.size);
                }
                self.copied.images = self.copied.images.saturating_add(1);
                Ok((Unnamed::of(bytes, descriptor, MANIFEST), None))
            }
        }
    }

    fn blob(&self, descriptor: &Descriptor) -> Result<bool> {
        if self.target.has_blob(descriptor)? {
            return Ok(false);
        }
        let image = self.resolver.blobs.open(descriptor, None)?;
        self.progress.begin(Stage::Data, 1, image.len());
        self.target.put_blob(descriptor, &*image, self.progress)
    }
}

impl Unnamed {
    /// Names a document by the descriptor that led to it, or by its own media type.
    fn of(bytes: Vec<u8>, descriptor: Option<Descriptor>, default: &str) -> Self {
        let described = || {
            let media_type = media_type_of(&bytes).unwrap_or_else(|| default.to_owned());
            Descriptor::of(&media_type, &bytes)
        };
        let descriptor = descriptor.unwrap_or_else(described);
        Unnamed { descriptor, bytes }
    }
}

/// Returns the list of `docker save` for the image in a layout; `None` for an index.
///
/// Errors: `Corrupt`, `Io`.
pub fn saved_list(dir: &Path, name: Option<&str>) -> Result<Option<Vec<u8>>> {
    let files: Arc<dyn BlobFiles> = Arc::new(Folder(dir.to_owned()));
    let Some(entries) = layout::index(&*files)? else { return Ok(None) };
    let [entry] = &entries[..] else { return Ok(None) };
    let options = OciOptions::default();
    let resolver = Resolver { blobs: Blobs::Files(files), options: &options, prefers_erofs: false };
    match Document::parse(&resolver.document(entry)?, &resolver.name())? {
        Document::Index(_) => Ok(None),
        Document::Manifest(manifest) => {
            let layers: Vec<String> = manifest.layers.iter().map(|it| it.digest.blob_path()).collect();
            docker_archive::list_of(&manifest.config.digest.blob_path(), name, &layers).map(Some)
        }
    }
}
