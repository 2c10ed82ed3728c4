//! Places that images are written to.

use super::manifest::{CONFIG, Descriptor, IMAGE_NAME, INDEX, Index, MANIFEST, Manifest, to_json};
use super::place::{OciPlace, Pin, is_tag};
use super::registry::Registry;
use super::{Digest, layout};
use crate::options::RemoteOptions;
use packfs_core::{Error, Image, Progress, Result, ResultExt, usize_of};
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

/// Bytes copied at a time.
const PART_LEN: usize = 1 << 20;

/// Place that takes blobs and a manifest.
pub struct OciTarget {
    to: To,
    tag: Option<String>,
    /// Whole name of the image in a layout.
    name: Option<String>,
}

enum To {
    Layout(layout::Writer),
    Registry(Arc<Registry>),
}

impl OciTarget {
    /// Opens a repository or a layout, which is created.
    ///
    /// Errors: `Usage` for a place that cannot be written; `Io`, `Failed`.
    pub fn open(place: &OciPlace, options: &RemoteOptions) -> Result<Self> {
        let tag = |pin: Option<&Pin>| match pin {
            Some(Pin::Tag(tag)) if is_tag(tag) => Ok(Some(tag.clone())),
            Some(Pin::Tag(tag)) => {
                Err(Error::usage(format!("tag {tag:?}: letters, digits, and _ . - are allowed")))
            }
            Some(Pin::Digest(_)) => {
                Err(Error::usage("cannot write an image under a digest, which follows from its contents")
                    .hint("name a tag, or nothing"))
            }
            None => Ok(None),
        };
        match place {
            OciPlace::Registry(_) if options.is_offline => {
                Err(Error::usage("cannot write to a registry: --offline is given"))
            }
            OciPlace::Registry(place) => {
                let tag = tag(Some(&place.pin))?;
                let registry = Arc::new(Registry::new(place, options, "pull,push")?);
                Ok(OciTarget { to: To::Registry(registry), tag, name: None })
            }
            OciPlace::Layout { dir, pin } => {
                let tag = tag(pin.as_ref())?;
                Ok(OciTarget { to: To::Layout(layout::Writer::open(dir)?), tag, name: None })
            }
            OciPlace::Archive(_) => Err(Error::usage("cannot write an image to an archive")
                .hint("write it to oci-layout:DIR, and pack this folder with tar")),
        }
    }

    /// Stores a blob unless it is there; returns true if it was sent.
    ///
    /// Errors: `Failed`, `Io`, those of reading `image`.
    pub fn put_blob(
        &self,
        descriptor: &Descriptor,
        image: &dyn Image,
        progress: &dyn Progress,
    ) -> Result<bool> {
        if image.len() != descriptor.size {
            return Err(Error::failed(format!("{}: its length changed", image.name())));
        }
        if self.has_blob(descriptor)? {
            return Ok(false);
        }
        match &self.to {
            To::Registry(registry) => registry.put_blob(descriptor, image, progress).map(|()| true),
            To::Layout(writer) => {
                let path = descriptor.digest.blob_path();
                writer.put(&path, |file| copy(image, &descriptor.digest, file, progress)).map(|()| true)
            }
        }
    }

    /// Sets the whole name that the image has in a layout, beside its tag.
    #[must_use]
    pub fn named(mut self, name: Option<String>) -> Self {
        self.name = name;
        self
    }

    /// True if a blob is there already.
    ///
    /// Errors: `Failed`, `Io`.
    pub(super) fn has_blob(&self, descriptor: &Descriptor) -> Result<bool> {
        match &self.to {
            To::Registry(registry) => registry.has_blob(&descriptor.digest),
            To::Layout(writer) => {
                let found = std::fs::metadata(writer.path(&descriptor.digest.blob_path()));
                Ok(found.is_ok_and(|it| it.len() == descriptor.size))
            }
        }
    }

    /// Stores configuration and manifest, without a name. Returns a description of the manifest.
    ///
    /// Errors: as [`OciTarget::put_blob`].
    pub fn put_manifest(
        &self,
        config: &[u8],
        manifest: impl FnOnce(Descriptor) -> Manifest,
    ) -> Result<Unnamed> {
        let described = Descriptor::of(CONFIG, config);
        self.put_bytes(&described, config)?;
        let bytes = to_json(&manifest(described))?;
        Ok(Unnamed { descriptor: Descriptor::of(MANIFEST, &bytes), bytes })
    }

    /// Stores an index of images, which are stored first.
    ///
    /// Errors: as [`OciTarget::put_blob`].
    pub fn put_index(&self, images: Vec<Unnamed>, annotations: BTreeMap<String, String>) -> Result<Digest> {
        let mut manifests = Vec::with_capacity(images.len());
        for image in images {
            self.put_unnamed(&image)?;
            manifests.push(image.descriptor);
        }
        let bytes = to_json(&Index::new(manifests, annotations))?;
        self.put_named(Unnamed { descriptor: Descriptor::of(INDEX, &bytes), bytes })
    }

    /// Stores a manifest or index that another one names.
    pub(super) fn put_unnamed(&self, image: &Unnamed) -> Result<()> {
        self.put_document(&image.descriptor, &image.bytes, &image.descriptor.digest.to_string())
    }

    /// Stores a manifest, and gives the image its tag. Returns its digest.
    ///
    /// Errors: as [`OciTarget::put_blob`].
    pub fn put_named(&self, image: Unnamed) -> Result<Digest> {
        let Unnamed { descriptor, bytes } = image;
        let digest = descriptor.digest.clone();
        self.put_document(&descriptor, &bytes, &self.tag.clone().unwrap_or_else(|| digest.to_string()))?;
        if let To::Layout(writer) = &self.to {
            let name = self.name.iter().map(|name| (IMAGE_NAME.to_owned(), name.clone()));
            let annotations = name.collect();
            writer.name(Descriptor { annotations, ..descriptor }, self.tag.as_deref())?;
        }
        Ok(digest)
    }

    fn put_document(&self, descriptor: &Descriptor, bytes: &[u8], name: &str) -> Result<()> {
        match &self.to {
            To::Registry(registry) => registry.put_manifest(bytes, &descriptor.media_type, name),
            To::Layout(_) => self.put_bytes(descriptor, bytes),
        }
    }

    fn put_bytes(&self, descriptor: &Descriptor, bytes: &[u8]) -> Result<()> {
        let image = packfs_core::MemoryImage::from(bytes.to_vec());
        self.put_blob(descriptor, &image, &packfs_core::Silent).map(|_| ())
    }
}

/// Manifest that is to be stored.
pub struct Unnamed {
    /// Its description, to which an index adds the platform.
    pub descriptor: Descriptor,
    pub(super) bytes: Vec<u8>,
}

/// Copies an image to a file, and compares its digest.
fn copy(image: &dyn Image, digest: &Digest, mut file: &std::fs::File, progress: &dyn Progress) -> Result<()> {
    let (mut hashing, mut at, mut part) = (digest.hashing(), 0_u64, vec![0; PART_LEN]);
    while at < image.len() {
        if progress.cancelled() {
            return Err(Error::cancelled());
        }
        let len = usize_of(image.len().saturating_sub(at)).min(PART_LEN);
        let part = part.get_mut(..len).unwrap_or_default();
        image.read_exact_at(at, part)?;
        hashing.update(part);
        file.write_all(part).or_io(|| "cannot write a blob")?;
        at = at.saturating_add(len as u64);
        progress.advance(0, 0, len as u64);
    }
    let found = hashing.finish();
    if found != *digest {
        return Err(Error::corrupt(image.name(), format!("its digest is {found}, {digest} is expected")));
    }
    Ok(())
}
