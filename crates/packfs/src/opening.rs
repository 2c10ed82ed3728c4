//! Opens one image, whatever it lies in, with the options that its format takes.

use crate::foreign::Foreign;
use crate::inner::{format_of, inner_image, unshown};
use crate::layer::{DEPTH_MAX, Layer};
#[cfg(feature = "integrity")]
use crate::objects::ObjectDirs;
use crate::open_with::is_taken;
use crate::{OpenOptions, Opened, Reader};
use packfs_core::{BeginningImage, Error, Image, Result, SliceImage};
use packfs_format::{Format, Inside, Objects, OpenOption, Opening, Volume};
use packfs_read::{CountedImage, ReadEngine};
use std::path::PathBuf;
use std::sync::Arc;

/// Faults of an image that are warnings when it is opened.
const FAULTS_MAX: usize = 16;

impl OpenOptions {
    /// The image, or the one that it holds compressed, with its layers.
    #[cfg(feature = "pack")]
    pub(crate) fn decompressed(&self, image: Arc<dyn Image>) -> Result<(Arc<dyn Image>, Vec<Layer>)> {
        crate::compressed::decompressed(image, self.read.limits, self.watcher.progress())
    }

    /// The image as it is, since nothing can be decompressed.
    #[cfg(not(feature = "pack"))]
    pub(crate) fn decompressed(&self, image: Arc<dyn Image>) -> Result<(Arc<dyn Image>, Vec<Layer>)> {
        Ok((image, Vec::new()))
    }

    /// The image in a file: where it begins and ends, and what it begins with.
    pub(crate) fn image_in(&self, file: Arc<dyn Image>) -> Result<Arc<dyn Image>> {
        let image: Arc<dyn Image> = match (self.offset, self.len) {
            (0, None) => file,
            (offset, len) => Arc::new(SliceImage::new(file, offset, len)?),
        };
        #[cfg(feature = "integrity")]
        let image = self.trust.of(image)?;
        Ok(match &self.magic {
            None => image,
            Some(magic) => Arc::new(BeginningImage::new(image, magic.clone())),
        })
    }

    /// Opens an image that lies within such others.
    pub(crate) fn open_layer(&self, image: Arc<dyn Image>, layers: Vec<Layer>) -> Result<Opened> {
        let probed = format_of(&*image, &self.which)?;
        let Some(format) = self.with.format(probed, &layers) else {
            return Err(Foreign::refuse(&image));
        };
        let counted = CountedImage::new(Arc::clone(&image));
        let (opening, mut warnings) = self.opening_of(format, &layers, &counted)?;
        let volume = format.open_with(Arc::clone(&counted) as Arc<dyn Image>, opening)?;
        warnings.extend(volume.warnings());
        warnings.extend(unshown(&*image, format, &self.which)?);
        let faults = volume.inside().map_or_else(Vec::new, Inside::known_faults);
        let told = faults.iter().take(FAULTS_MAX);
        warnings.extend(told.map(|finding| format!("{}: {}", image.name(), finding.fault)));
        if let Some(more) = faults.len().checked_sub(FAULTS_MAX + 1) {
            warnings.push(format!("{}: {} more faults, which check --outer lists", image.name(), more + 1));
        }
        let opened = self.opened(image, counted, format, Arc::from(volume))?;
        Ok(Opened { layers, warnings, ..opened })
    }

    /// Returns an opened volume, without warnings.
    ///
    /// Errors: a fault of the whole image, unless it is ignored.
    pub(crate) fn opened(
        &self,
        image: Arc<dyn Image>,
        counted: Arc<CountedImage>,
        format: &'static dyn Format,
        volume: Arc<dyn Volume>,
    ) -> Result<Opened> {
        if let Some(fault) = volume.fault().filter(|_| !self.read.ignore_checksum) {
            return Err(fault);
        }
        let engine = ReadEngine::counting(counted, Arc::clone(&volume), self.read.clone());
        let reader = Reader { volume, engine, limits: self.read.limits, watcher: self.watcher.clone() };
        let (layers, containers, warnings) = Default::default();
        Ok(Opened { image, format, reader, layers, containers, choice: None, warnings })
    }

    /// True if the image is a part of its bytes, or has to be that of a root hash.
    #[cfg(feature = "oci")]
    pub(crate) fn wants_one_image(&self) -> bool {
        let is_part = (self.offset, self.len) != (0, None) || self.magic.is_some();
        #[cfg(feature = "integrity")]
        let is_part = is_part || self.trust.is_given();
        is_part
    }

    /// Returns the options that a format takes within such layers, and warnings about containers of
    /// devices: of several layers that take an option, the outermost has it. Files are counted
    /// among the reads of the image.
    fn opening_of(
        &self,
        format: &dyn Format,
        layers: &[Layer],
        counted: &Arc<CountedImage>,
    ) -> Result<(Opening, Vec<String>)> {
        let open = |paths: &[PathBuf]| -> Result<Vec<Arc<dyn Image>>> {
            paths.iter().map(|path| Ok(counted.beside(self.bytes_at(path)?) as Arc<dyn Image>)).collect()
        };
        let with = &self.with;
        let mut warnings = Vec::new();
        let mut opening = Opening::default();
        for &option in format.info().opens_with.iter().filter(|option| !is_taken(**option, layers)) {
            match option {
                OpenOption::Devices => {
                    for file in open(&with.devices)? {
                        // Files that a disk image names are taken as they are.
                        let is_named = format.info().opens_with.contains(&OpenOption::Backing);
                        let (device, found) = if is_named {
                            (file, Vec::new())
                        } else {
                            OpenOptions::new().unwrapped(file, format)?
                        };
                        opening.devices.push(device);
                        warnings.extend(found);
                    }
                }
                OpenOption::Subvolume => opening.subvolume.clone_from(&with.subvolume),
                OpenOption::Journal => opening.no_journal = with.no_journal,
                OpenOption::PartitionTable => opening.partition_table = with.partition_table,
                OpenOption::Snapshot => opening.snapshot.clone_from(&with.snapshot),
                OpenOption::Backing => opening.backing = open(&with.backing)?,
                OpenOption::Objects => opening.objects = self.opened_objects()?,
            }
        }
        Ok((opening, warnings))
    }

    #[cfg(feature = "integrity")]
    fn opened_objects(&self) -> Result<Option<Arc<dyn Objects>>> {
        match &self.with.objects[..] {
            [] => Ok(None),
            dirs => Ok(Some(Arc::new(ObjectDirs::open(dirs)?))),
        }
    }

    #[cfg(not(feature = "integrity"))]
    fn opened_objects(&self) -> Result<Option<Arc<dyn Objects>>> {
        Ok(None)
    }

    /// Refuses an option that no layer of the image takes.
    pub(crate) fn check_taken(&self, opened: &Opened) -> Result<()> {
        let takes = |option| {
            let outer = opened.layers().iter().filter_map(|layer| packfs_formats::by_name(layer.format));
            outer.chain([opened.format()]).any(|format| format.info().opens_with.contains(&option))
        };
        match OpenOption::ALL.into_iter().find(|&option| self.with.gives(option) && !takes(option)) {
            None => Ok(()),
            Some(option) => Err(Error::usage(format!(
                "{} is a {} image, which has no {}",
                opened.image().name(),
                opened.format().name(),
                option.things()
            ))),
        }
    }

    /// Returns the disk in containers, such as a qcow2 image, with their warnings: of several
    /// images in one, the only one of this format. A filesystem, or an image of no known format,
    /// stays as it is.
    ///
    /// Errors: as [`OpenOptions::open_image`].
    fn unwrapped(&self, image: Arc<dyn Image>, wanted: &dyn Format) -> Result<(Arc<dyn Image>, Vec<String>)> {
        let (mut image, _) = self.decompressed(image)?;
        let mut warnings = Vec::new();
        for _ in 0..DEPTH_MAX {
            let format = packfs_formats::probe(&*image)?;
            if wanted.probe(&*image)? || format.is_none_or(|format| format.info().driver.is_some()) {
                break;
            }
            let opened = self.open_layer(Arc::clone(&image), Vec::new())?;
            let inner_images = opened.volume().inner_images()?;
            let mut inner =
                inner_images.iter().map(|inner| inner_image(&opened, inner)).collect::<Result<Vec<_>>>()?;
            if inner.len() > 1 {
                inner.retain(|image| wanted.probe(&**image).unwrap_or(false));
            }
            let Some(only) = inner.pop().filter(|_| inner.is_empty()) else { break };
            image = only;
            warnings.extend(opened.own_warnings());
        }
        Ok((image, warnings))
    }
}
