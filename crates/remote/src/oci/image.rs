//! An image of a registry, layout, or archive: its manifest, configuration, and layers.

use super::blobs::{BlobFiles, folder_files, read_small};
use super::digest::{Digest, Verified};
use super::erofs::{DECODED_DIGEST, INDEX_DIGEST, INDEX_MEDIA, INDEX_RANGE, INDEX_TARGET};
use super::manifest::{
    Descriptor, Document, JSON_LEN_MAX, LayerKind, Manifest, ROLE, check_manifests, diff_ids,
};
use super::place::{ArchivePlace, OciPlace, Pin};
use super::registry::Registry;
use super::{docker_archive, layout};
use crate::options::RemoteOptions;
use crate::platform::{OciOptions, Platform};
use packfs_core::{Error, Image, Result, printable, usize_of};
use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;

/// Most indexes within each other.
const DEPTH_MAX: usize = 4;
/// Longest chunk index.
const INDEX_LEN_MAX: u64 = 64 << 20;
/// Most platforms listed in a message.
const LISTED_MAX: usize = 20;

/// Image of one platform.
pub struct OciImage {
    /// Digest of its manifest; `None` in an archive of `docker save`.
    pub digest: Option<Digest>,
    /// Configuration, as JSON.
    pub config: Vec<u8>,
    /// Annotations of the manifest.
    pub annotations: BTreeMap<String, String>,
    /// Layers with files, the lowest first.
    pub layers: Vec<OciLayer>,
    /// Choice among several platforms that the user did not name.
    pub choice: Option<String>,
}

/// Layer of an image.
#[derive(Clone)]
pub struct OciLayer {
    /// Kind by the media type.
    pub kind: LayerKind,
    /// Descriptor; `None` in an archive of `docker save`.
    pub descriptor: Option<Descriptor>,
    /// Digest of the decoded layer.
    pub diff_id: Option<Digest>,
    blobs: Blobs,
    /// Path in files, if it does not follow from the digest.
    path: Option<String>,
    /// Layer with the index of its chunks.
    index: Option<Descriptor>,
}

/// Chunk index of a layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkIndexBytes {
    /// The index, without a frame around it.
    pub bytes: Vec<u8>,
    /// End of the chunks in the blob.
    pub blob_end: u64,
}

/// Place of blobs.
#[derive(Clone)]
pub(super) enum Blobs {
    Registry(Arc<Registry>),
    Files(Arc<dyn BlobFiles>),
}

/// Images that a reference names, which are opened one by one.
pub struct OciImages {
    pub(super) blobs: Blobs,
    pub(super) found: Found,
    /// Annotations of the index.
    pub annotations: BTreeMap<String, String>,
}

/// Documents before a platform is chosen.
pub(super) enum Found {
    /// Manifest or index.
    Document(Vec<u8>),
    /// Entries of the index of a layout.
    Entries(Vec<Descriptor>),
    /// The image of an archive of `docker save`.
    Saved(Box<OciImage>),
}

impl OciImages {
    /// Finds the images of a registry or layout.
    ///
    /// Errors: `Failed` if there is none; `Corrupt`, `Unsupported`, `Io`.
    pub fn find(place: &OciPlace, remote: &RemoteOptions) -> Result<Self> {
        match place {
            OciPlace::Registry(place) => {
                let registry = Arc::new(Registry::new(place, remote, "pull")?);
                let found = Found::Document(registry.manifest(&place.pin)?);
                Ok(OciImages { blobs: Blobs::Registry(registry), found, annotations: BTreeMap::new() })
            }
            OciPlace::Layout { dir, pin } => OciImages::in_files(folder_files(dir)?, pin.as_ref()),
            OciPlace::Archive(ArchivePlace { path, .. }) => Err(Error::unsupported(
                format!("{path:?}"),
                "archives are read by packfs pack and oci convert",
            )),
        }
    }

    /// Finds the images among files, such as those of an archive.
    ///
    /// Errors: as [`OciImages::find`].
    pub fn in_files(files: Arc<dyn BlobFiles>, pin: Option<&Pin>) -> Result<Self> {
        let found = match layout::index(&*files)? {
            Some(all) => Found::Entries(layout::select(all, pin, &files.name())?),
            None => Found::Saved(Box::new(saved(&files, pin)?)),
        };
        Ok(OciImages { blobs: Blobs::Files(files), found, annotations: BTreeMap::new() })
    }

    /// Opens the image of one platform. If there are several, `prefers_erofs` chooses.
    ///
    /// Errors: `Failed` if there is none for the platform; `Corrupt`, `Unsupported`, `Io`.
    pub fn open(self, options: &OciOptions, prefers_erofs: bool) -> Result<OciImage> {
        let resolver = Resolver { blobs: self.blobs, options, prefers_erofs };
        match self.found {
            Found::Document(bytes) => resolver.follow(bytes, 0),
            Found::Entries(entries) => resolver.index(entries, 0),
            Found::Saved(image) => Ok(*image),
        }
    }

    /// Returns the manifests of all platforms; `None` if the reference names a single image. The
    /// annotations are those of the index.
    ///
    /// Errors: `Corrupt`, `Limit`, `Io`.
    pub fn list(&mut self) -> Result<Option<Vec<Descriptor>>> {
        let options = OciOptions::default();
        let resolver = Resolver { blobs: self.blobs.clone(), options: &options, prefers_erofs: false };
        let mut listing = Listing::default();
        match &self.found {
            Found::Saved(_) => return Ok(None),
            Found::Document(bytes) => match Document::parse(bytes, &resolver.name())? {
                Document::Manifest(_) => return Ok(None),
                Document::Index(index) => {
                    self.annotations = index.annotations;
                    resolver.list(index.manifests, &mut listing, 0)?;
                }
            },
            Found::Entries(entries) => match &entries[..] {
                [only] if !only.is_index() => return Ok(None),
                [only] => self.annotations = resolver.list_of(only, &mut listing, 0)?,
                _ => resolver.list(entries.clone(), &mut listing, 0)?,
            },
        }
        Ok(Some(listing.manifests))
    }

    /// Opens one of the images listed.
    ///
    /// Errors: as [`OciImages::open`].
    pub fn open_listed(&self, manifest: &Descriptor) -> Result<OciImage> {
        let options = OciOptions::default();
        let resolver = Resolver { blobs: self.blobs.clone(), options: &options, prefers_erofs: false };
        let bytes = resolver.document(manifest)?;
        match Document::parse(&bytes, &resolver.name())? {
            Document::Manifest(found) => resolver.image(*found, manifest.digest.clone()),
            Document::Index(_) => {
                let fault = "it is an index, its media type is that of a manifest";
                Err(Error::corrupt(format!("manifest {}", manifest.digest), fault))
            }
        }
    }
}

/// Manifests of an index and of those in it.
#[derive(Default)]
pub(super) struct Listing {
    pub(super) manifests: Vec<Descriptor>,
    /// Entries so far, those that are indexes included.
    seen: usize,
}

/// Opens the image of an archive of `docker save`.
fn saved(files: &Arc<dyn BlobFiles>, pin: Option<&Pin>) -> Result<OciImage> {
    let Some(saved) = docker_archive::find(&**files, pin)? else {
        let error = Error::unsupported(files.name(), "it holds neither index.json nor manifest.json");
        return Err(error.hint("image layouts, and archives of docker save and podman save are read"));
    };
    let name = files.name();
    let config = read_small(&**files, &saved.config, JSON_LEN_MAX)?;
    let config = config.ok_or_else(|| missing(&name, &saved.config))?;
    let ids = diff_ids(&config, &name)?;
    let layers = saved.layers.iter().map(|path| OciLayer {
        kind: LayerKind::Tar,
        descriptor: None,
        diff_id: None,
        blobs: Blobs::Files(Arc::clone(files)),
        path: Some(path.clone()),
        index: None,
    });
    let layers = with_diff_ids(layers.collect(), ids, &name)?;
    Ok(OciImage { digest: None, config, annotations: BTreeMap::new(), layers, choice: None })
}

impl OciImage {
    /// Opens the image of a registry or layout.
    ///
    /// Errors: `Failed` if there is none, or none for the platform; `Corrupt`, `Unsupported`, `Io`.
    pub fn open(place: &OciPlace, remote: &RemoteOptions, prefers_erofs: bool) -> Result<Self> {
        OciImages::find(place, remote)?.open(&remote.oci, prefers_erofs)
    }
}

fn missing(place: &str, what: &str) -> Error {
    Error::corrupt(place, format!("the file {} is missing", printable(what)))
}

/// Gives each layer the digest of its decoded form.
fn with_diff_ids(mut layers: Vec<OciLayer>, ids: Vec<Digest>, name: &str) -> Result<Vec<OciLayer>> {
    if layers.len() != ids.len() {
        let fault = format!("{} layers, but {} diff_ids", layers.len(), ids.len());
        return Err(Error::corrupt(format!("configuration of {name}"), fault));
    }
    layers.iter_mut().zip(ids).for_each(|(layer, id)| layer.diff_id = Some(id));
    Ok(layers)
}

/// Way from an index to the manifest of a platform.
pub(super) struct Resolver<'a> {
    pub(super) blobs: Blobs,
    pub(super) options: &'a OciOptions,
    pub(super) prefers_erofs: bool,
}

impl Resolver<'_> {
    /// Reads a manifest or index, and compares it with its descriptor.
    pub(super) fn document(&self, descriptor: &Descriptor) -> Result<Vec<u8>> {
        let bytes = match &self.blobs {
            Blobs::Registry(registry) => registry.manifest(&Pin::Digest(descriptor.digest.clone()))?,
            Blobs::Files(_) => return self.small(descriptor),
        };
        verified(&bytes, descriptor, &self.name())?;
        Ok(bytes)
    }

    /// Lists the manifests of an index, with those of indexes in it.
    pub(super) fn list(&self, entries: Vec<Descriptor>, listing: &mut Listing, depth: usize) -> Result<()> {
        for entry in entries {
            listing.seen = listing.seen.saturating_add(1);
            check_manifests(listing.seen, &self.name())?;
            if entry.is_index() {
                self.list_of(&entry, listing, depth)?;
            } else if !listing.manifests.contains(&entry) {
                listing.manifests.push(entry);
            }
        }
        Ok(())
    }

    /// Lists the manifests of an index by its descriptor; returns its annotations.
    fn list_of(
        &self,
        entry: &Descriptor,
        listing: &mut Listing,
        depth: usize,
    ) -> Result<BTreeMap<String, String>> {
        self.check_depth(depth)?;
        match Document::parse(&self.document(entry)?, &self.name())? {
            Document::Index(index) => {
                self.list(index.manifests, listing, depth.saturating_add(1))?;
                Ok(index.annotations)
            }
            Document::Manifest(_) => {
                let fault = "it is a manifest, its media type is that of an index";
                Err(Error::corrupt(format!("index {}", entry.digest), fault))
            }
        }
    }

    pub(super) fn check_depth(&self, depth: usize) -> Result<()> {
        if depth >= DEPTH_MAX {
            let fault = format!("more than {DEPTH_MAX} indexes within each other");
            Err(Error::limit(format!("index of {}", self.name()), fault))
        } else {
            Ok(())
        }
    }

    /// Reads a small blob, and compares it with its descriptor.
    fn small(&self, descriptor: &Descriptor) -> Result<Vec<u8>> {
        if descriptor.size > JSON_LEN_MAX {
            let fault = format!("{} bytes, {JSON_LEN_MAX} are allowed", descriptor.size);
            return Err(Error::limit(format!("blob {}", descriptor.digest), fault));
        }
        let image = self.blobs.open(descriptor, None)?;
        let mut bytes = vec![0; usize_of(image.len())];
        image.read_exact_at(0, &mut bytes)?;
        verified(&bytes, descriptor, &self.name())?;
        Ok(bytes)
    }

    pub(super) fn name(&self) -> String {
        match &self.blobs {
            Blobs::Registry(registry) => registry.shown().to_owned(),
            Blobs::Files(files) => files.name(),
        }
    }

    /// Follows a manifest or index.
    fn follow(&self, bytes: Vec<u8>, depth: usize) -> Result<OciImage> {
        match Document::parse(&bytes, &self.name())? {
            Document::Index(index) => self.index(index.manifests, depth),
            Document::Manifest(manifest) => self.image(*manifest, Digest::of(&bytes)),
        }
    }

    fn index(&self, all: Vec<Descriptor>, depth: usize) -> Result<OciImage> {
        let (chosen, choice) = self.chosen(&all, depth)?;
        let bytes = self.document(&chosen)?;
        let image = self.follow(bytes, depth.saturating_add(1))?;
        Ok(OciImage { choice: choice.or(image.choice), ..image })
    }

    /// Chooses the manifest of the platform; also returns a warning of a choice that the user did
    /// not make.
    pub(super) fn chosen(&self, all: &[Descriptor], depth: usize) -> Result<(Descriptor, Option<String>)> {
        self.check_depth(depth)?;
        let wanted = self.options.platform.clone().unwrap_or_else(Platform::of_machine);
        let is_only = all.len() == 1;
        let fits = |it: &&Descriptor| it.platform.as_ref().is_none_or(|offered| wanted.takes(offered));
        let fitting: Vec<&Descriptor> = all.iter().filter(fits).collect();
        let has_erofs = |it: &&&Descriptor| it.platform.as_ref().is_some_and(Platform::needs_erofs);
        let best = fitting.iter().find(|it| has_erofs(it) == self.prefers_erofs).or_else(|| fitting.first());
        let Some(chosen) = best.copied() else {
            let platforms: Vec<String> = all
                .iter()
                .filter_map(|it| Some(it.platform.as_ref()?.to_string()))
                .take(LISTED_MAX)
                .collect();
            let error = Error::failed(format!("cannot open {}: it has no image for {wanted}", self.name()));
            return Err(error.hint(format!("--platform chooses one of: {}", platforms.join(", "))));
        };
        let is_default = self.options.platform.is_none() && !is_only;
        let choice = chosen.platform.as_ref().filter(|_| is_default).map(|platform| {
            format!("{}: {platform} of {} images; --platform chooses another", self.name(), all.len())
        });
        Ok((chosen.clone(), choice))
    }

    fn image(&self, manifest: Manifest, digest: Digest) -> Result<OciImage> {
        let kinds: Vec<LayerKind> = manifest.layers.iter().map(|it| LayerKind::of(&it.media_type)).collect();
        let mut layers: Vec<OciLayer> = Vec::with_capacity(kinds.len());
        for (descriptor, kind) in manifest.layers.into_iter().zip(kinds.iter().copied()) {
            match (kind, layers.last_mut()) {
                (LayerKind::ChunkIndex, Some(indexed)) => indexed.take_index(descriptor)?,
                (LayerKind::ChunkIndex, None) => {}
                _ => layers.push(OciLayer {
                    kind,
                    descriptor: Some(descriptor),
                    diff_id: None,
                    blobs: self.blobs.clone(),
                    path: None,
                    index: None,
                }),
            }
        }
        // Images are opened at once: the configuration adds nothing that reading them needs.
        let is_image = |it: &OciLayer| it.kind.is_mountable() || it.kind == LayerKind::ErofsZstd;
        let is_direct = self.prefers_erofs && !layers.is_empty() && layers.iter().all(is_image);
        let (config, layers) = if is_direct {
            (Vec::new(), layers)
        } else {
            let config = self.small(&manifest.config)?;
            let mut ids = diff_ids(&config, &self.name())?;
            if ids.len() == kinds.len() {
                // Indexes of chunks have digests, too.
                let mut kinds = kinds.iter();
                ids.retain(|_| kinds.next() != Some(&LayerKind::ChunkIndex));
            }
            // Images may state the digests of their layers in annotations alone.
            let is_annotated = ids.is_empty() && layers.iter().all(|it| it.kind.is_erofs());
            let layers = if is_annotated {
                layers.into_iter().map(OciLayer::with_annotated_digest).collect::<Result<_>>()?
            } else {
                with_diff_ids(layers, ids, &self.name())?
            };
            (config, layers)
        };
        Ok(OciImage { digest: Some(digest), config, annotations: manifest.annotations, layers, choice: None })
    }
}

impl LayerKind {
    /// True if a blob of this kind can be opened where it is.
    pub fn is_mountable(self) -> bool {
        matches!(self, LayerKind::Erofs | LayerKind::Other)
    }

    /// True for EROFS images, compressed or not.
    pub(crate) fn is_erofs(self) -> bool {
        matches!(self, LayerKind::Erofs | LayerKind::ErofsZstd)
    }
}

/// Reads an index of chunks.
///
/// Errors: `Limit`; those of reading.
fn index_bytes(image: &dyn Image, start: u64, len: u64) -> Result<Vec<u8>> {
    if len > INDEX_LEN_MAX {
        let fault = format!("{len} bytes, {INDEX_LEN_MAX} are allowed");
        return Err(Error::limit(format!("chunk index of {}", image.name()), fault));
    }
    let mut bytes = vec![0; usize_of(len)];
    image.read_exact_at(start, &mut bytes)?;
    Ok(bytes)
}

/// Returns the contents of a skippable frame of Zstandard.
fn skippable_payload(frame: Vec<u8>) -> Option<Vec<u8>> {
    let (magic, rest) = frame.split_first_chunk::<4>()?;
    let (len, payload) = rest.split_first_chunk::<4>()?;
    let is_frame = u32::from_le_bytes(*magic) >> 4 == 0x0184_d2a5;
    (is_frame && u32::from_le_bytes(*len) as usize == payload.len()).then(|| payload.to_vec())
}

/// Compares bytes with their descriptor.
fn verified(bytes: &[u8], descriptor: &Descriptor, name: &str) -> Result<()> {
    let name = format!("blob of {name}");
    let mut reader = Verified::new(bytes, descriptor.digest.clone(), Some(descriptor.size), name);
    match std::io::copy(&mut reader, &mut std::io::sink()) {
        Ok(_) => Ok(()),
        Err(error) => Err(inner(error, "manifest")),
    }
}

/// Returns the error of this program inside that of a reader, such as [`Verified`].
pub fn inner(error: std::io::Error, what: &str) -> Error {
    match error.get_ref().and_then(|source| source.downcast_ref::<Error>()) {
        Some(error) => error.clone(),
        None => Error::io(format!("cannot read {what}"), error),
    }
}

impl Blobs {
    pub(super) fn open(&self, descriptor: &Descriptor, path: Option<&str>) -> Result<Arc<dyn Image>> {
        match self {
            Blobs::Registry(registry) => registry.blob(descriptor),
            Blobs::Files(files) => {
                let name = path.map_or_else(|| descriptor.digest.blob_path(), str::to_owned);
                let image = files.open(&name)?.ok_or_else(|| missing(&files.name(), &name))?;
                if image.len() != descriptor.size {
                    let fault = format!("it has {} bytes, {} are expected", image.len(), descriptor.size);
                    return Err(Error::corrupt(format!("{name} of {}", files.name()), fault));
                }
                Ok(image)
            }
        }
    }
}

impl OciLayer {
    /// Opens the blob. Its length is compared with the descriptor, its digest by
    /// [`OciLayer::reader`] alone.
    ///
    /// Errors: `Corrupt` if it is missing or has another length, `Io`, `Failed`.
    pub fn open(&self) -> Result<Arc<dyn Image>> {
        match (&self.descriptor, &self.blobs, &self.path) {
            (Some(descriptor), blobs, path) => blobs.open(descriptor, path.as_deref()),
            (None, Blobs::Files(files), Some(path)) => {
                files.open(path)?.ok_or_else(|| missing(&files.name(), path))
            }
            (None, ..) => Err(Error::failed("internal: a layer without a place")),
        }
    }

    /// Reads the blob from start to end, and verifies it.
    ///
    /// Errors: as [`OciLayer::open`].
    pub fn reader(&self) -> Result<Box<dyn Read + Send>> {
        let image = self.open()?;
        let name = image.name();
        let reader = packfs_core::ImageReader::new(image);
        Ok(match &self.descriptor {
            Some(it) => Box::new(Verified::new(reader, it.digest.clone(), Some(it.size), name)),
            None => Box::new(reader),
        })
    }

    /// Takes the layer with the index of its chunks.
    ///
    /// Errors: `Corrupt` for the index of another layer.
    fn take_index(&mut self, index: Descriptor) -> Result<()> {
        let own = self.name();
        if let Some(target) = index.annotations.get(INDEX_TARGET).filter(|target| **target != own) {
            let fault = format!("it is that of {}, the layer before it is {own}", printable(target));
            return Err(Error::corrupt(format!("chunk index {}", index.digest), fault));
        }
        self.index = Some(index);
        Ok(())
    }

    /// Reads the index of its chunks, verified; `None` if it has none. `blob` is the layer, opened.
    ///
    /// Errors: `Corrupt`, `Limit`; those of reading.
    pub fn chunk_index(&self, blob: &dyn Image) -> Result<Option<ChunkIndexBytes>> {
        if !self.kind.is_erofs() {
            return Ok(None);
        }
        let annotation = |name| self.annotation(name);
        if let Some(range) = annotation(INDEX_RANGE) {
            if annotation(INDEX_MEDIA).is_some_and(|media| LayerKind::of(media) != LayerKind::ChunkIndex) {
                return Ok(None);
            }
            let wrong =
                |fault: String| Error::corrupt(format!("chunk index of layer {}", self.name()), fault);
            let (start, end) = range.split_once(':').unzip();
            let start: Option<u64> = start.unwrap_or(range).parse().ok();
            let end: Option<u64> = end.map_or(Some(blob.len()), |end| end.parse().ok());
            let (Some(start), Some(end)) = (start, end.filter(|&end| end <= blob.len())) else {
                return Err(wrong(format!("its place is {:?}", printable(range))));
            };
            let Some(len) = end.checked_sub(start) else {
                return Err(wrong(format!("its place is {:?}", printable(range))));
            };
            let mut bytes = index_bytes(blob, start, len)?;
            if self.kind == LayerKind::ErofsZstd {
                bytes = skippable_payload(bytes)
                    .ok_or_else(|| wrong("it lies in no skippable frame of Zstandard".into()))?;
            }
            if let Some(digest) = annotation(INDEX_DIGEST) {
                let digest: Digest =
                    digest.parse().map_err(|_| wrong(format!("its digest is {:?}", printable(digest))))?;
                let found = digest.found_in(&bytes);
                if found != digest {
                    return Err(wrong(format!("its digest is {found}, {digest} is expected")));
                }
            }
            return Ok(Some(ChunkIndexBytes { bytes, blob_end: start }));
        }
        let Some(index) = &self.index else { return Ok(None) };
        let image = self.blobs.open(index, None)?;
        let bytes = index_bytes(&*image, 0, image.len())?;
        verified(&bytes, index, &format!("chunk index {}", index.digest))?;
        Ok(Some(ChunkIndexBytes { bytes, blob_end: blob.len() }))
    }

    /// Returns a name for messages.
    pub fn name(&self) -> String {
        match (&self.descriptor, &self.path) {
            (Some(descriptor), _) => descriptor.digest.to_string(),
            (None, Some(path)) => printable(path).into_owned(),
            _ => String::new(),
        }
    }

    fn annotation(&self, name: &str) -> Option<&str> {
        self.descriptor.as_ref()?.annotations.get(name).map(String::as_str)
    }

    /// True if the blob is the decoded layer and nothing more, so that both have one digest.
    pub fn is_plain(&self) -> bool {
        self.kind == LayerKind::Erofs && self.annotation(INDEX_RANGE).is_none()
    }

    /// Takes the digest of the decoded layer from its annotations, if they have it.
    ///
    /// Errors: `Corrupt`.
    fn with_annotated_digest(mut self) -> Result<Self> {
        if let Some(text) = self.annotation(DECODED_DIGEST) {
            let wrong = |_| {
                let fault = format!("its annotation {DECODED_DIGEST} is {:?}", printable(text));
                Error::corrupt(format!("layer {}", self.name()), fault)
            };
            self.diff_id = Some(text.parse().map_err(wrong)?);
        } else if self.kind == LayerKind::Erofs {
            self.diff_id = self.descriptor.as_ref().map(|it| it.digest.clone());
        }
        Ok(self)
    }

    /// Checks that an EROFS layer can be mounted by itself.
    ///
    /// Errors: `Unsupported`.
    pub fn check_role(&self) -> Result<()> {
        match self.annotation(ROLE).filter(|role| *role != "overlay-lower") {
            Some(role) => {
                let what = format!("its role is {:?}; a layer of its own is needed", printable(role));
                Err(Error::unsupported("EROFS layer", what))
            }
            None => Ok(()),
        }
    }
}
