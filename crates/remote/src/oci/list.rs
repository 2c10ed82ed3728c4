//! Lists of the images that a registry, a layout, or an archive has.

use super::blobs::BlobFiles;
use super::image::{Blobs, Listing, Resolver};
use super::manifest::{Descriptor, Document, MANIFEST, REF_NAME, check_manifests, media_type_of};
use super::place::{Pin, RegistryPlace};
use super::registry::Registry;
use super::{Digest, docker_archive, layout};
use crate::options::RemoteOptions;
use crate::platform::{OciOptions, Platform};
use packfs_core::{Error, Result};
use serde::Deserialize;
use std::sync::Arc;

/// Most pages of a list of tags.
const PAGES_MAX: usize = 1000;

/// Image of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listed {
    /// Tag, or whole reference where a program wrote one.
    pub name: Option<String>,
    /// Digest of the manifest; `None` where it was not asked for, and in archives of `docker save`.
    pub digest: Option<Digest>,
    /// Media type of the manifest.
    pub media_type: Option<String>,
    /// Platform, where an index tells it.
    pub platform: Option<Platform>,
}

impl Listed {
    fn of(descriptor: Descriptor, name: Option<String>) -> Self {
        let Descriptor { media_type, digest, platform, .. } = descriptor;
        Listed { name, digest: Some(digest), media_type: Some(media_type), platform }
    }
}

#[derive(Deserialize)]
struct Tags {
    #[serde(default)]
    tags: Option<Vec<String>>,
}

/// Lists the tags of a repository, or the images of one that is named.
///
/// Errors: `Failed` if there is none or access is refused; `Corrupt`, `Io`, `Limit`.
pub fn list_registry(place: &RegistryPlace, remote: &RemoteOptions) -> Result<Vec<Listed>> {
    let registry = Arc::new(Registry::new(place, remote, "pull")?);
    if !place.is_pinned {
        let named = |tag| Listed { name: Some(tag), digest: None, media_type: None, platform: None };
        return Ok(tags(&registry)?.into_iter().map(named).collect());
    }
    let bytes = registry.manifest(&place.pin)?;
    let name = match &place.pin {
        Pin::Tag(tag) => Some(tag.clone()),
        Pin::Digest(_) => None,
    };
    let media_type = media_type_of(&bytes).unwrap_or_else(|| MANIFEST.to_owned());
    let options = OciOptions::default();
    let blobs = Blobs::Registry(Arc::clone(&registry));
    let resolver = Resolver { blobs, options: &options, prefers_erofs: false };
    match Document::parse(&bytes, registry.shown())? {
        Document::Manifest(_) => Ok(vec![Listed::of(Descriptor::of(&media_type, &bytes), name)]),
        Document::Index(index) => {
            let mut listing = Listing::default();
            resolver.list(index.manifests, &mut listing, 0)?;
            Ok(listing.manifests.into_iter().map(|it| Listed::of(it, name.clone())).collect())
        }
    }
}

fn tags(registry: &Arc<Registry>) -> Result<Vec<String>> {
    let (mut all, mut last) = (Vec::new(), String::new());
    for _ in 0..PAGES_MAX {
        let (bytes, has_more) = registry.tags(&last)?;
        let page: Tags = serde_json::from_slice(&bytes)
            .map_err(|_| Error::corrupt(format!("list of tags of {}", registry.shown()), "it is no list"))?;
        let page = page.tags.unwrap_or_default();
        let next = page.last().cloned();
        all.extend(page);
        match next {
            Some(next) if has_more && next != last => last = next,
            _ => return Ok(all),
        }
    }
    let fault = format!("more than {PAGES_MAX} pages");
    Err(Error::limit(format!("list of tags of {}", registry.shown()), fault))
}

/// Lists the images of a layout or archive.
///
/// Errors: `Corrupt`, `Io`, `Limit`; `Unsupported` for what holds none.
pub fn list_files(files: Arc<dyn BlobFiles>, pin: Option<&Pin>) -> Result<Vec<Listed>> {
    let Some(all) = layout::index(&*files)? else {
        let names = docker_archive::names(&*files)?;
        let named = |name| Listed { name, digest: None, media_type: None, platform: None };
        return Ok(names.into_iter().map(named).collect());
    };
    let entries = if pin.is_some() { layout::select(all, pin, &files.name())? } else { all };
    check_manifests(entries.len(), &files.name())?;
    let options = OciOptions::default();
    let resolver = Resolver { blobs: Blobs::Files(files), options: &options, prefers_erofs: false };
    let mut found = Vec::new();
    for entry in entries {
        let name = entry.annotations.get(REF_NAME).cloned();
        let mut listing = Listing::default();
        resolver.list(vec![entry], &mut listing, 0)?;
        found.extend(listing.manifests.into_iter().map(|it| Listed::of(it, name.clone())));
    }
    Ok(found)
}
