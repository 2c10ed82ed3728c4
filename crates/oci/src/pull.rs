//! Copies of images, as they are: to a layout, an archive, or a registry.

use crate::images::images;
use crate::layers::once;
use crate::push::OciReport;
use packfs_core::new_file::NewFile;
use packfs_core::{Error, FileImage, Image, ImageReader, Limits, Progress, Result, ResultExt};
use packfs_remote::RemoteOptions;
use packfs_remote::oci::{ArchivePlace, Copied, OciPlace, OciTarget, Pin, saved_list};
use packfs_sink::{file_header, padding};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Image that is to be copied.
#[derive(Clone, Debug)]
pub struct Pull {
    source: OciPlace,
    target: OciPlace,
    are_all: bool,
    remote: RemoteOptions,
}

/// Copies an OCI image with its layers as they are, once [`Pull::run`] is called. An archive is an
/// image layout, with the list of `docker save` beside it.
pub fn pull(source: OciPlace, target: OciPlace) -> Pull {
    Pull { source, target, are_all: false, remote: RemoteOptions::default() }
}

impl Pull {
    setters! {
        /// Sets platform, credentials, and time limits.
        pub remote(options: RemoteOptions) => remote = options;

        /// Copies the images of all platforms, and their index.
        pub all_platforms(are_all: bool) => are_all = are_all;
    }

    /// Copies.
    ///
    /// Errors: those of the source and of the target.
    pub fn run(&self, progress: &dyn Progress) -> Result<OciReport> {
        let OciPlace::Archive(ArchivePlace { path, pin }) = &self.target else {
            return self.copied(&self.target, None, progress);
        };
        let beside = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let beside = beside.unwrap_or(Path::new("."));
        let folder = tempfile::Builder::new().prefix(".packfs-").tempdir_in(beside);
        let folder = folder.or_io(|| format!("cannot create a directory in {beside:?}"))?;
        let name = self.name_in_archive(pin.as_ref());
        // Tags of layouts have no slash, names in archives have.
        let tag = name.as_deref().map(|name| name.rsplit(['/', ':']).next().unwrap_or(name));
        let pin = tag.map(|tag| Pin::Tag(tag.to_owned()));
        let report =
            self.copied(&OciPlace::Layout { dir: folder.path().into(), pin }, name.clone(), progress)?;
        if let Some(list) = saved_list(folder.path(), name.as_deref())? {
            std::fs::write(folder.path().join("manifest.json"), list)
                .or_io(|| "cannot write manifest.json")?;
        }
        write_archive(folder.path(), path, progress)?;
        Ok(report)
    }

    /// Returns the name of the image in an archive: the one given, or that in the registry.
    fn name_in_archive(&self, pin: Option<&Pin>) -> Option<String> {
        match (pin, &self.source) {
            (Some(Pin::Tag(tag)), _) => Some(tag.clone()),
            (_, OciPlace::Registry(place)) => match &place.pin {
                Pin::Tag(tag) => Some(format!("{}/{}:{tag}", place.registry, place.repository)),
                Pin::Digest(_) => None,
            },
            (_, OciPlace::Layout { pin: Some(Pin::Tag(tag)), .. }) => Some(tag.clone()),
            _ => None,
        }
    }

    fn copied(&self, target: &OciPlace, name: Option<String>, progress: &dyn Progress) -> Result<OciReport> {
        let remote = once(&self.remote);
        let found = images(&self.source, &remote, Limits::default(), progress)?;
        let target = OciTarget::open(target, &remote)?.named(name);
        let mut counts = Copied::default();
        let (image, choice) = found.copy_to(&target, &remote.oci, self.are_all, &mut counts, progress)?;
        choice.iter().for_each(|choice| progress.warn(choice));
        let digest = target.put_named(image)?.to_string();
        let Copied { images, layers, present, layer_bytes } = counts;
        Ok(OciReport { digest, images, layers, present, layer_bytes })
    }
}

/// Writes the files below a folder as a tar archive.
fn write_archive(folder: &Path, to: &Path, progress: &dyn Progress) -> Result<()> {
    let cannot = || format!("cannot write {to:?}");
    let new = NewFile::create(to, 0o666)?;
    let mut out = BufWriter::with_capacity(1 << 20, new.file());
    for path in files_below(folder)? {
        if progress.cancelled() {
            return Err(Error::cancelled());
        }
        let name = path.strip_prefix(folder).unwrap_or(&path).as_os_str();
        let image: Arc<dyn Image> = Arc::new(FileImage::open(&path)?);
        let len = image.len();
        out.write_all(&file_header(name.as_encoded_bytes(), len)).or_io(cannot)?;
        let copied = std::io::copy(&mut ImageReader::new(image), &mut out).or_io(cannot)?;
        if copied != len {
            return Err(Error::failed(format!("cannot write {to:?}: {path:?} changed meanwhile")));
        }
        out.write_all(&vec![0; padding(len)]).or_io(cannot)?;
    }
    out.write_all(&[0; 1024]).and_then(|()| out.flush()).or_io(cannot)?;
    drop(out);
    new.finish(true)
}

/// Returns the files below a folder, sorted.
fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let (mut found, mut open) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = open.pop() {
        let cannot = || format!("cannot read {folder:?}");
        for entry in std::fs::read_dir(&folder).or_io(cannot)? {
            let path = entry.or_io(cannot)?.path();
            if path.is_dir() { open.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    Ok(found)
}
