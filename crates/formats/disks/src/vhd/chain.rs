//! A disk and its parents: each provides the sectors that those before it lack.
//!
//! Owns the chain. The caller determines its length: no path of an image is opened, and a cyclic
//! chain needs one more file than any caller gives.

use super::{Blocks, INFO};
use crate::volume::{Map, Place, Visit};
use packfs_core::{Error, Image, JoinedImage, Result, to_hex};
use packfs_format::check::Report;
use packfs_format::{Facts, FormatInfo, not_given, too_many_given, units::*};
use std::ops::Range;
use std::sync::Arc;

pub(super) struct Chain {
    top: Blocks,
    /// Parents, starting with that of the disk, each with the name of its file.
    below: Vec<(String, Blocks)>,
    /// The concatenated files, if there are several.
    joined: Option<Arc<JoinedImage>>,
}

impl Chain {
    /// Opens a disk and its parents, which the caller gives in order.
    ///
    /// Errors: `Unsupported` if a parent is not given; `Usage` if too many are given, or others
    /// than the disk names; as [`Blocks::read`].
    pub(super) fn open(image: &Arc<dyn Image>, given: Vec<Arc<dyn Image>>) -> Result<Chain> {
        let mut chain = Chain { top: Blocks::read(image)?, below: Vec::new(), joined: None };
        for file in &given {
            let Some(parent) = chain.lowest().parent() else {
                return Err(too_many_given(given.len(), chain.below.len()));
            };
            let name = file.name();
            let blocks = Blocks::read(file).map_err(|error| error.at(format!("backing file {name}")))?;
            if blocks.uuid != parent.uuid {
                let (found, wanted) = (to_hex(&blocks.uuid), to_hex(&parent.uuid));
                let what = format!("backing file {name}: its disk is {found}, but {wanted} is wanted");
                return Err(Error::usage(what).hint(format!("the image names it \"{}\"", parent.name)));
            }
            chain.below.push((name, blocks));
        }
        if let Some(parent) = chain.lowest().parent() {
            return Err(not_given("vhd image", "backing file", &parent.name, given.len()));
        }
        if !given.is_empty() {
            chain.joined = Some(Arc::new(JoinedImage::new(std::iter::once(image).chain(&given).cloned())?));
        }
        Ok(chain)
    }

    fn lowest(&self) -> &Blocks {
        self.below.last().map_or(&self.top, |(_, blocks)| blocks)
    }

    /// Maps a range of the disk with this index; holes are those of the disk below. The recursion
    /// is as deep as the number of given files.
    fn each_from(&self, index: usize, range: Range<u64>, visit: &mut Visit<'_>) -> Result<bool> {
        let blocks = match index.checked_sub(1) {
            None => &self.top,
            Some(below) => match self.below.get(below) {
                Some((_, blocks)) => blocks,
                None => return visit(range, Place::Hole),
            },
        };
        let base = self.joined.as_ref().and_then(|joined| joined.start_of(index)).unwrap_or(0);
        // A parent may be shorter than the disk.
        let part = range.start..range.end.min(blocks.disk_len);
        let rest = range.start.max(blocks.disk_len)..range.end;
        let mut goes_on = true;
        if !part.is_empty() {
            blocks.each(part, &mut |part, place| {
                goes_on = match place {
                    Place::Hole => self.each_from(index.plus(1), part, visit)?,
                    Place::Stored(at) => visit(part, Place::Stored(base.plus(at)))?,
                    place => visit(part, place)?,
                };
                Ok(goes_on)
            })?;
        }
        Ok(goes_on && (rest.is_empty() || visit(rest, Place::Hole)?))
    }

    /// Faults of footers, with the position of each.
    fn faults(&self) -> impl Iterator<Item = (String, &'static str)> {
        let below = self.below.iter().map(|(name, blocks)| (format!("backing file {name}: footer"), blocks));
        let all = std::iter::once(("footer".to_owned(), &self.top)).chain(below);
        all.filter_map(|(place, blocks)| Some((place, blocks.fault?)))
    }
}

impl Map for Chain {
    fn format(&self) -> &'static FormatInfo {
        &INFO
    }

    fn disk_len(&self) -> u64 {
        self.top.disk_len
    }

    fn each(&self, range: Range<u64>, visit: &mut Visit<'_>) -> Result<()> {
        self.each_from(0, range, visit).map(drop)
    }

    fn each_stored(&self, range: Range<u64>, visit: &mut Visit<'_>) -> Result<()> {
        self.top.each_whole(range, visit)
    }

    fn owned(&self, at: u64, len: u64) -> Range<u64> {
        self.top.owned(at, len)
    }

    fn add_facts(&self, facts: &mut Facts) {
        self.top.add_facts(facts);
    }

    fn structures(&self) -> Vec<(Range<u64>, &'static str)> {
        self.top.structures()
    }

    fn data_image(&self) -> Option<Arc<dyn Image>> {
        self.joined.clone().map(|joined| joined as Arc<dyn Image>)
    }

    fn warnings(&self) -> Vec<String> {
        self.faults().map(|(place, fault)| format!("{place}: {fault}")).collect()
    }

    fn check(&self, report: &mut Report<'_>) -> Result<()> {
        for (place, fault) in self.faults() {
            report.error(place, fault);
        }
        if self.top.copy_fault {
            report.warn("copy of the footer", "it is damaged or missing");
        }
        Ok(())
    }
}
