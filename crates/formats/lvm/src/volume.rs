//! The opened group as a [`Container`].

use crate::corruption::Corruption;
use crate::given::Given;
use crate::group::{Group, Kind, Logical, Segment};
use crate::label::Physical;
use packfs_core::{Error, Image, JoinedImage, Result, len_of, range_at};
use packfs_format::check::Report;
use packfs_format::{
    ContainedFiles, Container, Extent, Extents, FactValue, Facts, Finding, SpaceOwner, space_owners, units::*,
};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

pub(crate) struct LvmVolume {
    image: Arc<dyn Image>,
    own: Physical,
    pub(crate) group: Group,
    /// Range of each physical volume in the concatenated images; `None` if it is not given.
    places: Vec<Option<Range<u64>>>,
    joined: Option<Arc<JoinedImage>>,
    files: ContainedFiles,
    /// Warnings about damaged or old texts.
    doubts: Vec<String>,
}

/// Position of a readable segment.
struct Place {
    at: u64,
    /// Number of its bytes within the file.
    there: u64,
    /// Fault of the missing bytes.
    beyond: Option<Corruption>,
}

impl LvmVolume {
    pub(crate) fn open(image: Arc<dyn Image>, devices: Vec<Arc<dyn Image>>) -> Result<Self> {
        let mut images = vec![Arc::clone(&image)];
        images.extend(devices);
        let Given { group, mut physicals, doubts } = Given::read(&images)?;
        let joined =
            (images.len() > 1).then(|| JoinedImage::new(images.clone()).map(Arc::new)).transpose()?;
        let mut places = Vec::new();
        for member in &group.members {
            let given = physicals.iter().position(|physical| physical.uuid == member.uuid);
            let place = given.and_then(|index| Some((index, images.get(index)?))).map(|(index, image)| {
                let start = joined.as_ref().and_then(|joined| joined.start_of(index)).unwrap_or(0);
                range_at(start, image.len())
            });
            places.push(place);
        }
        let mut files = ContainedFiles::new();
        for logical in &group.logicals {
            files.push(&logical.name, logical.len);
        }
        let own = physicals.swap_remove(0);
        Ok(LvmVolume { image, own, group, places, joined, files, doubts })
    }

    /// Locates a segment.
    ///
    /// Errors: `Unsupported` if it is not linear, `Failed` if its physical volume is not given.
    fn place(&self, volume: &str, segment: &Segment) -> Result<Place> {
        let (physical, at) = match &segment.kind {
            Kind::Linear { physical, at } => (*physical, *at),
            Kind::Other(kind) => {
                let what = format!("volume {volume:?} is of the type {kind}, linear volumes are supported");
                return Err(Error::unsupported("lvm image", what).hint(
                    "vgchange -ay activates the group on a loop device, and /dev/GROUP/VOLUME is an image",
                ));
            }
        };
        let Some(range) = self.places.get(physical).and_then(Option::as_ref) else {
            let name =
                self.group.members.get(physical).map(|member| member.name.as_str()).unwrap_or_default();
            let what = format!("volume {volume:?} is on the physical volume {name:?}, which is not given");
            return Err(Error::failed(what).hint("--device FILE adds a physical volume of the group"));
        };
        let (len, limit) = (segment.len, len_of(range));
        let there = left(limit, at).min(len);
        let beyond = (there < len).then_some(Corruption::Beyond { at, len, limit });
        Ok(Place { at: end_of(range.start, at), there, beyond })
    }

    /// Passes on the extents of a volume that exist.
    fn push_extents(&self, logical: &Logical, extents: &mut Extents<'_>) -> Result<()> {
        let range = extents.range();
        let first = logical.segments.partition_point(|segment| segment.end() <= range.start);
        for segment in logical.segments.iter().skip(first) {
            if segment.start >= range.end {
                return Ok(());
            }
            let Place { at, there, beyond } = self.place(&logical.name, segment)?;
            if extents.stored(range_at(segment.start, there), at).is_break() {
                return Ok(());
            }
            match beyond {
                Some(fault) if end_of(segment.start, there) < range.end => return Err(fault.into()),
                _ => {}
            }
        }
        let end = logical.segments.last().map_or(0, Segment::end);
        match logical.fault {
            Some(fault) if end < range.end => Err(fault.into()),
            _ => Ok(()),
        }
    }
}

impl Container for LvmVolume {
    fn format(&self) -> &'static packfs_format::FormatInfo {
        &crate::INFO
    }

    fn files(&self) -> &ContainedFiles {
        &self.files
    }

    fn file_extents(
        &self,
        index: usize,
        range: Range<u64>,
        visit: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()> {
        let logical = self.group.logicals.get(index);
        let logical = logical.ok_or_else(|| Error::failed(format!("no volume {index}")))?;
        let mut extents = Extents::new(range, visit);
        let pushed = self.push_extents(logical, &mut extents);
        extents.finish(pushed)
    }

    fn warnings(&self) -> Vec<String> {
        self.doubts.clone()
    }

    fn data_image(&self) -> Option<Arc<dyn Image>> {
        self.joined.clone().map(|joined| joined as Arc<dyn Image>)
    }

    fn image_len(&self) -> Option<u64> {
        Some(self.image.len().min(self.own.device_len))
    }

    fn facts(&self) -> Result<Facts> {
        let mut facts = Facts::default();
        facts.push("format", "Format", FactValue::Text("lvm".into()));
        facts.push("group", "Volume group", FactValue::Text(self.group.name.clone()));
        facts.push("sequence", "Sequence number", FactValue::Count(self.group.sequence));
        facts.push("extent_len", "Extent size", FactValue::Bytes(self.group.extent_len));
        let words = self.group.members.iter().zip(&self.places).map(|(member, place)| {
            let given = if place.is_some() { "" } else { ", not given" };
            format!("{}: {}{given}", member.name, member.uuid)
        });
        facts.push("physical_volumes", "Physical volumes", FactValue::List(words.collect()));
        let words = self.group.logicals.iter();
        let words = words.map(|it| format!("{}: {}, {} bytes", it.name, it.kind(), it.len));
        facts.push("volumes", "Volumes", FactValue::List(words.collect()));
        facts.push("image_len", "Image length", FactValue::Bytes(self.image.len()));
        Ok(facts)
    }

    fn space(&self) -> Result<Vec<SpaceOwner>> {
        let mut claims = vec![(self.own.label.clone(), "label")];
        claims.extend(self.own.areas().iter().map(|area| (area.clone(), "metadata")));
        for logical in &self.group.logicals {
            // Unreadable segments own nothing here.
            let places =
                logical.segments.iter().filter_map(|segment| self.place(&logical.name, segment).ok());
            claims.extend(places.map(|place| (range_at(place.at, place.there), "volume")));
        }
        claims.sort_by_key(|(range, _)| range.start);
        Ok(space_owners(claims, self.image.len()))
    }

    fn check(&self, found: &mut dyn FnMut(Finding)) -> Result<()> {
        let mut report = Report::new("lvm", found);
        if let Some(fault) = self.own.label_fault {
            report.error("label", fault);
        }
        self.doubts.iter().for_each(|doubt| report.warn("metadata", doubt));
        for logical in &self.group.logicals {
            if let Some(fault) = logical.fault {
                report.error(&logical.name, fault);
            }
            for segment in &logical.segments {
                match self.place(&logical.name, segment) {
                    Ok(Place { beyond: Some(fault), .. }) => report.error(&logical.name, fault),
                    Ok(_) => {}
                    // Valid, but not readable here.
                    Err(error) => report.note(&logical.name, error),
                }
            }
        }
        Ok(())
    }
}
