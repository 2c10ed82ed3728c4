//! Images to mount, made by the formats' own tools and kept in `target/images`: some take minutes.

use std::path::{Path, PathBuf};

use super::case::MountCase;
use crate::bench::measure;
use crate::bench::scratch::Scratch;
use crate::corpus::Corpus;
use crate::failure::{Failure, Result};
use crate::rivals::{Format, MkfsErofs, Mksquashfs, Rival, Sharing, Task};
use crate::workspace;

/// Makes images and copies them to where they are read.
pub struct Images {
    mksquashfs: Mksquashfs,
    mkfs_erofs: MkfsErofs,
    jobs: usize,
}

impl Images {
    pub fn new(jobs: usize) -> Result<Self> {
        Ok(Self { mksquashfs: Mksquashfs::find()?, mkfs_erofs: MkfsErofs::find()?, jobs })
    }

    /// The image of a case below `scratch`; the one that was there before makes room.
    pub fn provide(&self, case: &MountCase, scratch: &Scratch) -> Result<PathBuf> {
        let kept = self.kept(case.workload.corpus(), case)?;
        let name = kept.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let copy = scratch.path(&name);
        if !copy.exists() {
            remove_images(&scratch.dir)?;
            std::fs::copy(&kept, &copy).map_err(|error| Failure::io("copy", &kept, error))?;
        }
        Ok(copy)
    }

    /// Its name tells all it depends on but the corpus's contents: a newer corpus removes it.
    fn kept(&self, corpus: Corpus, case: &MountCase) -> Result<PathBuf> {
        let packer = self.packer(case.format);
        let name = format!(
            "{}-{}-{}-{}-{}.{}",
            corpus.name(),
            case.codec.label().replace(':', "-"),
            crate::bench::case::spell_block_len(case.block_len),
            packer.name(),
            packer.version(),
            case.format.name()
        );
        let dir = workspace::target().join("images");
        let (image, made) = (dir.join(&name), dir.join(format!("{name}.new")));
        if is_newer(&image, &corpus.stamp_path()) {
            return Ok(image);
        }
        eprintln!("making image {name}");
        workspace::make_dir(&dir)?;
        let task = Task::Pack {
            source: corpus.path(),
            image: made.clone(),
            format: case.format,
            sharing: Sharing::Plain,
            codec: case.codec,
            block_len: case.block_len,
            jobs: self.jobs,
        };
        let command = packer
            .command(&task)
            .ok_or_else(|| Failure::new(format!("{} packs no {name}", packer.name())))?;
        measure::run(&command, None)?;
        std::fs::rename(&made, &image).map_err(|error| Failure::io("move", &made, error))?;
        Ok(image)
    }

    pub fn packer(&self, format: Format) -> &dyn Rival {
        match format {
            Format::Squashfs => &self.mksquashfs,
            Format::Erofs => &self.mkfs_erofs,
        }
    }
}

fn is_newer(path: &Path, than: &Path) -> bool {
    let changed = |path: &Path| path.metadata().and_then(|meta| meta.modified());
    matches!((changed(path), changed(than)), (Ok(path), Ok(than)) if path > than)
}

/// Memory is dear: one image at a time.
fn remove_images(dir: &Path) -> Result<()> {
    let entries = std::fs::read_dir(dir).map_err(|error| Failure::io("list", dir, error))?;
    let is_image = |path: &PathBuf| {
        let suffix = path.extension().and_then(|suffix| suffix.to_str());
        Format::ALL.iter().any(|format| suffix == Some(format.name()))
    };
    for path in entries.flatten().map(|entry| entry.path()).filter(is_image) {
        std::fs::remove_file(&path).map_err(|error| Failure::io("remove", &path, error))?;
    }
    Ok(())
}
