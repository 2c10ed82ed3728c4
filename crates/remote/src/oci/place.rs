//! References to images: `oci://REGISTRY/NAME[:TAG|@DIGEST]`, folders with an image layout, and
//! archives.

use super::digest::Digest;
use packfs_core::{Error, Place, PlaceKind, Result};
use std::path::{Path, PathBuf};

/// Name of the file that marks a folder as an image layout.
pub(crate) const LAYOUT_FILE: &str = "oci-layout";
/// Most letters of a repository name, and of a tag (distribution specification).
const NAME_LEN_MAX: usize = 255;
const TAG_LEN_MAX: usize = 128;

/// Place of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OciPlace {
    /// A repository of a registry.
    Registry(RegistryPlace),
    /// A folder with an image layout.
    Layout {
        /// The folder.
        dir: PathBuf,
        /// The image in it; `None` if it is the only one.
        pin: Option<Pin>,
    },
    /// An archive of `docker save`, `podman save`, or of an image layout.
    Archive(ArchivePlace),
}

/// Image in a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistryPlace {
    /// Host and port as written, such as `docker.io`.
    pub registry: String,
    /// Name of the repository.
    pub repository: String,
    /// The image.
    pub pin: Pin,
    /// Set if the reference names the image; otherwise it is `latest`.
    pub is_pinned: bool,
}

/// Archive with images.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchivePlace {
    /// The file.
    pub path: PathBuf,
    /// The image in it; `None` if it is the only one.
    pub pin: Option<Pin>,
}

/// Name of an image in its repository, layout, or archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pin {
    /// Tag, which may be moved.
    Tag(String),
    /// Digest of the manifest or index.
    Digest(Digest),
}

impl std::fmt::Display for Pin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Pin::Tag(tag) => f.write_str(tag),
            Pin::Digest(digest) => digest.fmt(f),
        }
    }
}

impl OciPlace {
    /// Returns the place that a path names: one with a scheme, or a folder with a file
    /// `oci-layout`; `None` for any other path.
    ///
    /// Errors: `Usage` for a reference that is none.
    pub fn of<'a>(place: impl Into<Place<'a>>) -> Result<Option<Self>> {
        let place = place.into();
        let path = place.path();
        if !place.is_oci() {
            let is_layout = path.is_dir() && path.join(LAYOUT_FILE).is_file();
            return Ok(is_layout.then(|| OciPlace::Layout { dir: path.into(), pin: None }));
        }
        OciPlace::parse(place).map(Some)
    }

    /// Parses a reference with its scheme.
    ///
    /// Errors: `Usage`.
    pub fn parse<'a>(place: impl Into<Place<'a>>) -> Result<Self> {
        let place = place.into();
        let shown = place.shown();
        let unknown = || {
            Error::usage(format!("cannot open {shown}: it names no OCI image"))
                .hint("known: oci://REGISTRY/NAME[:TAG|@DIGEST], oci-layout:DIR[:TAG], oci-archive:FILE")
        };
        match place.kind() {
            PlaceKind::Registry(rest) => RegistryPlace::parse(rest, &shown).map(OciPlace::Registry),
            PlaceKind::Layout(rest) => {
                let (dir, pin) = file_and_pin(rest, &shown, |rest| rest.rsplit_once(':'))?;
                Ok(OciPlace::Layout { dir, pin })
            }
            PlaceKind::Archive(rest) => {
                // Names of images in archives have colons themselves.
                let (path, pin) = file_and_pin(rest, &shown, |rest| rest.split_once(':'))?;
                Ok(OciPlace::Archive(ArchivePlace { path, pin }))
            }
            _ => Err(unknown()),
        }
    }
}

/// Splits `FILE[:TAG|@DIGEST]`. The name of an existing file may contain colons; `split` is
/// for one that does not exist.
fn file_and_pin(
    rest: &str,
    shown: &str,
    split: impl FnOnce(&str) -> Option<(&str, &str)>,
) -> Result<(PathBuf, Option<Pin>)> {
    let missing = || Error::usage(format!("cannot open {shown}: a file or folder is needed"));
    if rest.is_empty() {
        return Err(missing().hint("form: oci-layout:DIR[:TAG|@DIGEST]"));
    }
    if Path::new(rest).exists() {
        return Ok((rest.into(), None));
    }
    if let Some((file, digest)) = rest.rsplit_once('@')
        && let Ok(digest) = digest.parse()
    {
        return Ok((file.into(), Some(Pin::Digest(digest))));
    }
    // Tags of archives may have the form NAME:TAG, with slashes in the name.
    let colons = rest.match_indices(':').map(|(at, _)| rest.split_at(at));
    let mut splits = colons.map(|(file, tag)| (file, tag.trim_start_matches(':')));
    match splits.find(|(file, _)| Path::new(file).exists()).or_else(|| split(rest)) {
        Some((file, tag)) if !tag.is_empty() && !file.is_empty() => {
            Ok((file.into(), Some(Pin::Tag(tag.into()))))
        }
        _ => Ok((rest.into(), None)),
    }
}

impl RegistryPlace {
    /// Parses `REGISTRY/NAME[:TAG][@DIGEST]`.
    fn parse(rest: &str, shown: &str) -> Result<Self> {
        let wrong = |why: &str| {
            Error::usage(format!("cannot open {shown}: {why}"))
                .hint("form: oci://REGISTRY/NAME[:TAG|@DIGEST]")
        };
        let (registry, rest) =
            rest.split_once('/').ok_or_else(|| wrong("a registry and a name are needed"))?;
        if registry.contains('@') {
            return Err(wrong("it contains a user or password").hint(
                "registries take those of ~/.docker/config.json: docker login, podman login, or skopeo login",
            ));
        }
        let is_host = |letter: u8| letter.is_ascii_alphanumeric() || b".-:[]_".contains(&letter);
        if registry.is_empty() || !registry.bytes().all(is_host) {
            return Err(wrong("the registry is no HOST[:PORT]"));
        }
        let (rest, digest) = match rest.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest.parse::<Digest>()?)),
            None => (rest, None),
        };
        let (name, tag) = match rest.split_once(':') {
            Some((name, tag)) => (name, Some(tag)),
            None => (rest, None),
        };
        if name.len() > NAME_LEN_MAX || !name.split('/').all(is_component) {
            return Err(wrong(
                "the name is wrong: lower-case letters, digits, and . _ - between slashes are allowed",
            ));
        }
        if tag.is_some_and(|tag| !is_tag(tag)) {
            return Err(wrong("the tag is wrong: up to 128 letters, digits, and _ . - are allowed"));
        }
        // The names of Docker Hub's own images are short for those of `library`.
        let is_hub = matches!(registry, "docker.io" | "index.docker.io");
        let repository =
            if is_hub && !name.contains('/') { format!("library/{name}") } else { name.to_owned() };
        let is_pinned = digest.is_some() || tag.is_some();
        let pin = match digest {
            Some(digest) => Pin::Digest(digest),
            None => Pin::Tag(tag.unwrap_or("latest").to_owned()),
        };
        let registry = if is_hub { "docker.io" } else { registry };
        Ok(RegistryPlace { registry: registry.into(), repository, pin, is_pinned })
    }
}

fn is_component(name: &str) -> bool {
    let is_end = |byte: Option<&u8>| byte.is_some_and(|it| it.is_ascii_lowercase() || it.is_ascii_digit());
    let bytes = name.as_bytes();
    let is_inside = |byte: &u8| is_end(Some(byte)) || b"._-".contains(byte);
    is_end(bytes.first()) && is_end(bytes.last()) && bytes.iter().all(is_inside) && !name.contains("..")
}

/// True for a tag as the distribution specification allows it.
pub(crate) fn is_tag(tag: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    tag.len() <= TAG_LEN_MAX
        && tag.bytes().next().is_some_and(is_word)
        && tag.bytes().all(|byte| is_word(byte) || b".-".contains(&byte))
}

/// True for a name that ends with the wanted one: programs write whole references, such as
/// `docker.io/library/box:v1`.
pub(crate) fn is_named(name: &str, wanted: &str) -> bool {
    name.strip_suffix(wanted).is_some_and(|start| start.is_empty() || start.ends_with(['/', ':']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registry(text: &str) -> Result<RegistryPlace> {
        match OciPlace::parse(Path::new(text))? {
            OciPlace::Registry(place) => Ok(place),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn references_to_registries_are_parsed() {
        let shown = |text| registry(text).map(|it| format!("{} {} {}", it.registry, it.repository, it.pin));
        assert_eq!(shown("oci://host:5000/a/b-c:v1.0").unwrap(), "host:5000 a/b-c v1.0");
        assert_eq!(shown("oci://docker.io/alpine").unwrap(), "docker.io library/alpine latest");
        assert_eq!(shown("oci://[::1]:80/a").unwrap(), "[::1]:80 a latest");
        let digest = Digest::of(b"");
        assert_eq!(shown(&format!("oci://h/a:v@{digest}")).unwrap(), format!("h a {digest}"));
        for wrong in [
            "oci://host",
            "oci:///a",
            "oci://host/",
            "oci://host/A",
            "oci://host/a//b",
            "oci://host/../a",
            "oci://host/a:",
            "oci://host/a:b:c",
            "oci://host/a:.x",
            "oci://host/a@sha256:12",
            "oci://ho st/a",
            "oci://host?x/a",
        ] {
            assert!(registry(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn passwords_in_references_are_refused_and_not_shown() {
        let error = registry("oci://user:secret@host/a").unwrap_err();
        assert!(error.hints()[1].contains("docker login"), "{:?}", error.hints());
        assert!(!error.to_string().contains("secret"), "{error}");
    }

    #[test]
    fn folders_and_archives_are_split_from_their_tags() {
        let digest = Digest::of(b"");
        let parsed = |text: &str| OciPlace::parse(Path::new(text)).unwrap();
        let tag = |tag: &str| Some(Pin::Tag(tag.into()));
        let layout = |dir: &str, pin| OciPlace::Layout { dir: dir.into(), pin };
        assert_eq!(parsed("oci-layout:none/a"), layout("none/a", None));
        assert_eq!(parsed("oci-layout:none/a:v1"), layout("none/a", tag("v1")));
        assert_eq!(parsed(&format!("oci-layout:a@{digest}")), layout("a", Some(Pin::Digest(digest))));
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a:b.tar");
        std::fs::write(&file, "").unwrap();
        let file = file.to_str().unwrap();
        let archive = |pin| OciPlace::Archive(ArchivePlace { path: file.into(), pin });
        assert_eq!(parsed(&format!("docker-archive:{file}")), archive(None));
        assert_eq!(parsed(&format!("oci-archive:{file}:local/box:v1")), archive(tag("local/box:v1")));
        let new = OciPlace::Archive(ArchivePlace { path: "new.tar".into(), pin: tag("local/box:v1") });
        assert_eq!(parsed("docker-archive:new.tar:local/box:v1"), new);
        assert!(OciPlace::parse(Path::new("oci-layout:")).is_err());
    }

    #[test]
    fn a_folder_with_an_image_layout_is_an_image() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(OciPlace::of(dir.path()).unwrap(), None);
        std::fs::write(dir.path().join(LAYOUT_FILE), "{}").unwrap();
        assert!(matches!(OciPlace::of(dir.path()), Ok(Some(OciPlace::Layout { .. }))));
        assert_eq!(OciPlace::of(Path::new("https://host/a")).unwrap(), None);
    }
}
