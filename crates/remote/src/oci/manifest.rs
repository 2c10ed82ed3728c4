//! Manifests, indexes, and descriptors: JSON from anywhere, within limits.

use super::digest::Digest;
use crate::platform::Platform;
use packfs_core::{Error, Result, printable};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

/// Longest manifest, index, or configuration in bytes; registries take no longer manifests.
pub(crate) const JSON_LEN_MAX: u64 = 4 << 20;
/// Most layers of an image; Linux stacks 500.
const LAYERS_MAX: usize = 512;
/// Most manifests of an index.
const MANIFESTS_MAX: usize = 4096;

pub(crate) const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// Media type of an index of Docker.
pub(crate) const DOCKER_LIST: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub(crate) const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
/// Value of the header `Accept` for manifests.
pub(crate) const ACCEPT: &str = "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, \
    application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.docker.distribution.manifest.v2+json";
/// Media type of chunk indexes of layers.
pub(crate) const CHUNK_INDEX: &str = "application/vnd.erofs.chunk-index.v1";
/// Annotation with the tag of an image in a layout.
pub const REF_NAME: &str = "org.opencontainers.image.ref.name";
/// Annotation with the whole name of an image in a layout, which Docker and containerd write.
pub(crate) const IMAGE_NAME: &str = "io.containerd.image.name";
/// Annotation with the role of an EROFS layer.
pub(crate) const ROLE: &str = "org.erofs.role";

/// Reference to a blob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Descriptor {
    /// Media type.
    pub media_type: String,
    /// Digest of the blob.
    pub digest: Digest,
    /// Length of the blob in bytes.
    pub size: u64,
    /// Annotations.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Platform of a manifest in an index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<Platform>,
}

impl Descriptor {
    /// Describes bytes.
    pub fn of(media_type: &str, bytes: &[u8]) -> Self {
        Descriptor::new(media_type, Digest::of(bytes), bytes.len() as u64)
    }

    /// Describes a blob without annotations.
    pub fn new(media_type: &str, digest: Digest, size: u64) -> Self {
        Descriptor {
            media_type: media_type.into(),
            digest,
            size,
            annotations: BTreeMap::new(),
            platform: None,
        }
    }

    /// True if it describes an index.
    pub(crate) fn is_index(&self) -> bool {
        [INDEX, DOCKER_LIST].contains(&&*self.media_type)
    }
}

/// Kind of a layer, by its media type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayerKind {
    /// A tar archive, compressed or not.
    Tar,
    /// An EROFS image.
    Erofs,
    /// Zstandard frames that decode to an EROFS image.
    ErofsZstd,
    /// An index of the chunks of another layer, which holds no files.
    ChunkIndex,
    /// A tar archive that registries must not distribute.
    Foreign,
    /// Anything else, such as another filesystem image.
    Other,
}

impl LayerKind {
    /// Returns the kind of a media type.
    pub fn of(media_type: &str) -> Self {
        let (base, suffix) = media_type.split_once('+').unwrap_or((media_type, ""));
        match (base, suffix) {
            ("application/vnd.oci.image.layer.v1.tar", "" | "gzip" | "zstd") => LayerKind::Tar,
            ("application/vnd.docker.image.rootfs.diff.tar", "" | "gzip" | "zstd")
            | ("application/vnd.docker.image.rootfs.diff.tar.gzip", "")
            | ("application/vnd.docker.image.rootfs.diff.tar.zstd", "") => LayerKind::Tar,
            ("application/vnd.erofs" | "application/vnd.erofs.layer.v1", "") => LayerKind::Erofs,
            ("application/vnd.erofs" | "application/vnd.erofs.layer.v1", "zstd") => LayerKind::ErofsZstd,
            (CHUNK_INDEX, "") => LayerKind::ChunkIndex,
            ("application/vnd.oci.image.layer.nondistributable.v1.tar", _)
            | ("application/vnd.docker.image.rootfs.foreign.diff.tar.gzip", _) => LayerKind::Foreign,
            _ => LayerKind::Other,
        }
    }
}

/// Manifest of an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    schema_version: u32,
    media_type: String,
    /// Configuration of the image.
    pub config: Descriptor,
    /// Layers, the lowest first.
    pub layers: Vec<Descriptor>,
    /// Annotations.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

impl Manifest {
    /// Creates a manifest.
    pub fn new(config: Descriptor, layers: Vec<Descriptor>, annotations: BTreeMap<String, String>) -> Self {
        Manifest { schema_version: 2, media_type: MANIFEST.into(), config, layers, annotations }
    }
}

/// Index: images for several platforms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Index {
    schema_version: u32,
    media_type: &'static str,
    /// Manifests, or further indexes.
    pub manifests: Vec<Descriptor>,
    /// Annotations.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

impl Index {
    /// Creates an index.
    pub fn new(manifests: Vec<Descriptor>, annotations: BTreeMap<String, String>) -> Self {
        Index { schema_version: 2, media_type: INDEX, manifests, annotations }
    }
}

/// Manifest or index.
pub(crate) enum Document {
    Manifest(Box<Manifest>),
    Index(Index),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw {
    schema_version: Option<u32>,
    media_type: Option<String>,
    config: Option<Descriptor>,
    layers: Option<Vec<Descriptor>>,
    manifests: Option<Vec<Descriptor>>,
    #[serde(default, deserialize_with = "or_default")]
    annotations: BTreeMap<String, String>,
}

impl Document {
    /// Parses JSON; `name` is for messages.
    ///
    /// Errors: `Corrupt`, `Unsupported` for manifests of schema 1 and artifacts.
    pub(crate) fn parse(bytes: &[u8], name: &str) -> Result<Self> {
        let subject = || format!("manifest of {name}");
        let raw: Raw = serde_json::from_slice(bytes).map_err(|error| {
            // Its words may quote the text.
            let place = format!("line {}, column {}", error.line(), error.column());
            let fault = printable(&error.to_string()).chars().take(200).collect::<String>();
            Error::corrupt(subject(), format!("at {place}: {fault}"))
        })?;
        if raw.schema_version != Some(2) {
            let version = raw.schema_version.map_or("none".into(), |version| version.to_string());
            let error = Error::unsupported(subject(), format!("schema version {version}; 2 is known"));
            return Err(error.hint("push the image again with a newer tool"));
        }
        match (raw.manifests, raw.config, raw.layers) {
            // Two readings of one document would have one digest (CVE-2021-41190).
            (Some(_), Some(_), _) | (Some(_), _, Some(_)) => {
                Err(Error::corrupt(subject(), "it is both a manifest and an index"))
            }
            (Some(manifests), None, None) if manifests.len() > MANIFESTS_MAX => {
                Err(too_many(&subject(), "manifests", manifests.len(), MANIFESTS_MAX))
            }
            (Some(manifests), None, None) => Ok(Document::Index(Index::new(manifests, raw.annotations))),
            (None, Some(config), layers) => {
                let layers = layers.unwrap_or_default();
                if layers.len() > LAYERS_MAX {
                    return Err(too_many(&subject(), "layers", layers.len(), LAYERS_MAX));
                }
                let media_type = raw.media_type.unwrap_or_else(|| MANIFEST.into());
                let annotations = raw.annotations;
                Ok(Document::Manifest(Box::new(Manifest {
                    schema_version: 2,
                    media_type,
                    config,
                    layers,
                    annotations,
                })))
            }
            _ => Err(Error::corrupt(subject(), "it has neither a configuration nor manifests")),
        }
    }
}

/// Returns the media type that a document names itself.
pub(crate) fn media_type_of(bytes: &[u8]) -> Option<String> {
    serde_json::from_slice::<Raw>(bytes).ok()?.media_type
}

/// Returns the error for an index with more manifests than are allowed.
pub(crate) fn check_manifests(count: usize, name: &str) -> Result<()> {
    if count > MANIFESTS_MAX {
        Err(too_many(&format!("index of {name}"), "manifests", count, MANIFESTS_MAX))
    } else {
        Ok(())
    }
}

fn too_many(subject: &str, what: &str, count: usize, most: usize) -> Error {
    Error::limit(subject, format!("{count} {what}, {most} are allowed"))
}

/// Returns a document as JSON.
///
/// Errors: `Failed`.
pub(crate) fn to_json(document: &impl Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(document)
        .map_err(|error| Error::failed(format!("internal: cannot write a manifest: {error}")))
}

/// Digests of the decoded layers in a configuration; empty if it has none.
///
/// Errors: `Corrupt`.
pub(crate) fn diff_ids(config: &[u8], name: &str) -> Result<Vec<Digest>> {
    #[derive(Default, Deserialize)]
    struct RootFs {
        #[serde(default, deserialize_with = "or_default")]
        diff_ids: Vec<Digest>,
    }
    #[derive(Deserialize)]
    struct Config {
        #[serde(default, deserialize_with = "or_default")]
        rootfs: RootFs,
    }
    let config: Config = serde_json::from_slice(config).map_err(|error| {
        let fault = format!("it is no configuration of an image, line {}", error.line());
        Error::corrupt(format!("configuration of {name}"), fault)
    })?;
    Ok(config.rootfs.diff_ids)
}

/// Reads a value that may be `null`, as programs in Go write empty ones.
pub(crate) fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> std::result::Result<T, D::Error> {
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_core::ErrorKind;

    fn parse(text: &str) -> Result<Document> {
        Document::parse(text.as_bytes(), "test")
    }

    fn descriptor(media_type: &str) -> String {
        serde_json::to_string(&Descriptor::of(media_type, b"")).unwrap()
    }

    #[test]
    fn manifests_and_indexes_are_told_apart() {
        let one = descriptor(CONFIG);
        let manifest = format!(r#"{{"schemaVersion":2,"config":{one},"layers":[{one}],"annotations":null}}"#);
        assert!(matches!(parse(&manifest), Ok(Document::Manifest(found)) if found.layers.len() == 1));
        let index = format!(r#"{{"schemaVersion":2,"manifests":[{one},{one}]}}"#);
        assert!(matches!(parse(&index), Ok(Document::Index(found)) if found.manifests.len() == 2));
    }

    #[test]
    fn hostile_manifests_are_refused() {
        let one = descriptor(CONFIG);
        let many = vec![one.as_str(); 513].join(",");
        let negative = one.replace("\"size\":0", "\"size\":-1");
        assert_ne!(negative, one);
        for (text, kind) in [
            (String::new(), ErrorKind::Corrupt),
            ("[".repeat(100_000), ErrorKind::Corrupt),
            (r#"{"schemaVersion":1,"fsLayers":[]}"#.into(), ErrorKind::Unsupported),
            (r#"{"schemaVersion":2}"#.into(), ErrorKind::Corrupt),
            (format!(r#"{{"schemaVersion":2,"config":{one},"manifests":[]}}"#), ErrorKind::Corrupt),
            (r#"{"schemaVersion":2,"layers":[],"manifests":[]}"#.to_owned(), ErrorKind::Corrupt),
            (format!(r#"{{"schemaVersion":2,"config":{one},"layers":[{many}]}}"#), ErrorKind::Limit),
            (
                r#"{"schemaVersion":2,"config":{"mediaType":"a","digest":"sha256:../x","size":1}}"#.into(),
                ErrorKind::Corrupt,
            ),
            (format!(r#"{{"schemaVersion":2,"config":{negative},"layers":[]}}"#), ErrorKind::Corrupt),
        ] {
            let error = parse(&text).err().unwrap();
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.to_string().len() < 500);
        }
    }

    #[test]
    fn media_types_tell_the_kind() {
        for (media_type, kind) in [
            ("application/vnd.oci.image.layer.v1.tar", LayerKind::Tar),
            ("application/vnd.oci.image.layer.v1.tar+zstd", LayerKind::Tar),
            ("application/vnd.docker.image.rootfs.diff.tar.gzip", LayerKind::Tar),
            ("application/vnd.erofs", LayerKind::Erofs),
            ("application/vnd.erofs.layer.v1+zstd", LayerKind::ErofsZstd),
            ("application/vnd.erofs.chunk-index.v1", LayerKind::ChunkIndex),
            ("application/vnd.oci.image.layer.nondistributable.v1.tar+gzip", LayerKind::Foreign),
            ("application/vnd.oci.image.layer.v1.tar+br", LayerKind::Other),
            ("text/plain", LayerKind::Other),
        ] {
            assert_eq!(LayerKind::of(media_type), kind, "{media_type}");
        }
    }

    #[test]
    fn configurations_without_layers_have_no_digests() {
        assert_eq!(diff_ids(br#"{"rootfs":null}"#, "test").unwrap(), []);
        let digest = Digest::of(b"");
        let text = format!(r#"{{"rootfs":{{"type":"layers","diff_ids":["{digest}"]}}}}"#);
        assert_eq!(diff_ids(text.as_bytes(), "test").unwrap(), [digest]);
        assert!(diff_ids(br#"{"rootfs":{"diff_ids":["x"]}}"#, "test").is_err());
    }
}
