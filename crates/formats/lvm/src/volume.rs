//! The opened group: hands the answers of the read modules out as a [`Container`].

use crate::corruption::Corruption;
use crate::group::{Group, Kind, Segment};
use crate::label::Physical;
use packfs_core::{Error, Image, JoinedImage, Result, len_of, range_at};
use packfs_format::check::Report;
use packfs_format::{
    ContainedFiles, Container, Extent, ExtentFrom, Extents, FactValue, Facts, Finding, SpaceOwner,
    space_owners,
};
use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// An opened group.
pub(crate) struct LvmVolume {
    image: Arc<dyn Image>,
    own: Physical,
    pub(crate) group: Group,
    /// Bytes of each physical volume that is there, in all of them in a row.
    places: BTreeMap<String, Range<u64>>,
    joined: Option<Arc<JoinedImage>>,
    files: ContainedFiles,
}

impl LvmVolume {
    /// Opens a physical volume, and further ones of its group.
    pub(crate) fn open(image: Arc<dyn Image>, devices: Vec<Arc<dyn Image>>) -> Result<Self> {
        let own = Physical::read(&*image)?;
        let mut group = own.text(&*image)?.map(|text| Group::parse(&text)).transpose()?;
        let mut images = vec![Arc::clone(&image)];
        let mut uuids = vec![own.uuid.clone()];
        for device in devices {
            let at = |error: Error| error.at(device.name());
            let physical = Physical::read(&*device).map_err(at)?;
            let text = physical.text(&*device).map_err(at)?;
            let other = text.map(|text| Group::parse(&text)).transpose()?;
            // Of several texts the newest counts.
            if let Some(other) = other
                && group.as_ref().is_none_or(|group| group.sequence < other.sequence)
            {
                group = Some(other);
            }
            uuids.push(physical.uuid);
            images.push(device);
        }
        let group = group.ok_or(Corruption::NoText)?;
        for (index, uuid) in uuids.iter().enumerate() {
            if !group.physicals.values().any(|own| own == uuid) {
                let name = images.get(index).map(|image| image.name()).unwrap_or_default();
                return Err(Error::usage(format!(
                    "{name} is no physical volume of the group {:?}",
                    group.name
                )));
            }
        }
        let joined =
            (images.len() > 1).then(|| JoinedImage::new(images.clone()).map(Arc::new)).transpose()?;
        let mut places = BTreeMap::new();
        for (index, (uuid, image)) in uuids.iter().zip(&images).enumerate() {
            let start = joined.as_ref().and_then(|joined| joined.start_of(index)).unwrap_or(0);
            places.insert(uuid.clone(), range_at(start, image.len()));
        }
        let mut files = ContainedFiles::new();
        for logical in &group.logicals {
            files.push(&logical.name, logical.len);
        }
        Ok(LvmVolume { image, own, group, places, joined, files })
    }

    /// The place of a segment's first byte.
    fn place(&self, volume: &str, segment: &Segment) -> Result<u64> {
        let (physical, at) = match &segment.kind {
            Kind::Linear { physical, at } => (physical, *at),
            Kind::Other(kind) => {
                let what = format!("volume {volume:?} is of the type {kind}, linear volumes are supported");
                return Err(Error::unsupported("lvm image", what).hint(
                    "vgchange -ay activates the group on a loop device, and /dev/GROUP/VOLUME is an image",
                ));
            }
        };
        let uuid = self.group.physicals.get(physical);
        let Some(range) = uuid.and_then(|uuid| self.places.get(uuid)) else {
            let what =
                format!("volume {volume:?} lies on the physical volume {physical:?}, which is not given");
            return Err(Error::failed(what).hint("--device FILE adds a physical volume of the group"));
        };
        let limit = len_of(range);
        if range_at(at, segment.len).end > limit {
            return Err(Corruption::Beyond { at, len: segment.len, limit }.into());
        }
        Ok(range.start.saturating_add(at))
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
        let mut extents = Extents::new(range.clone(), visit);
        for segment in &logical.segments {
            if segment.start >= range.end {
                break;
            }
            if segment.start.saturating_add(segment.len) <= range.start {
                continue;
            }
            let at = match self.place(&logical.name, segment) {
                Ok(at) => at,
                Err(error) => {
                    extents.finish();
                    return Err(error);
                }
            };
            let extent = Extent { offset: segment.start, len: segment.len, from: ExtentFrom::Stored(at) };
            if extents.push(extent).is_break() {
                break;
            }
        }
        extents.finish();
        Ok(())
    }

    fn data_image(&self) -> Option<Arc<dyn Image>> {
        self.joined.clone().map(|joined| joined as Arc<dyn Image>)
    }

    fn image_len(&self) -> Option<u64> {
        Some(self.image.len())
    }

    fn facts(&self) -> Result<Facts> {
        let mut facts = Facts::default();
        facts.push("format", "Format", FactValue::Text("lvm".into()));
        facts.push("group", "Volume group", FactValue::Text(self.group.name.clone()));
        facts.push("sequence", "Sequence number", FactValue::Count(self.group.sequence));
        facts.push("extent_len", "Extent size", FactValue::Bytes(self.group.extent_len));
        let given = |uuid: &String| if self.places.contains_key(uuid) { "" } else { ", not given" };
        let words = self.group.physicals.iter().map(|(name, uuid)| format!("{name}: {uuid}{}", given(uuid)));
        facts.push("physical_volumes", "Physical volumes", FactValue::List(words.collect()));
        let kind = |segments: &[Segment]| match segments.first().map(|segment| &segment.kind) {
            Some(Kind::Other(kind)) => kind.clone(),
            _ => "linear".into(),
        };
        let words = self.group.logicals.iter();
        let words = words.map(|it| format!("{}: {}, {} bytes", it.name, kind(&it.segments), it.len));
        facts.push("volumes", "Volumes", FactValue::List(words.collect()));
        facts.push("image_len", "Image length", FactValue::Bytes(self.image.len()));
        Ok(facts)
    }

    fn space(&self) -> Result<Vec<SpaceOwner>> {
        let mut claims = vec![(self.own.label.clone(), "label")];
        claims.extend(self.own.areas().iter().map(|area| (area.clone(), "metadata")));
        for logical in &self.group.logicals {
            // What lies elsewhere, or cannot be read, owns nothing here.
            let own = logical
                .segments
                .iter()
                .filter_map(|segment| Some(range_at(self.place(&logical.name, segment).ok()?, segment.len)));
            claims.extend(own.map(|range| (range, "volume")));
        }
        claims.sort_by_key(|(range, _)| range.start);
        Ok(space_owners(claims, self.image.len()))
    }

    fn check(&self, found: &mut dyn FnMut(Finding)) -> Result<()> {
        let mut report = Report::new("lvm", found);
        for logical in &self.group.logicals {
            for segment in &logical.segments {
                match (self.place(&logical.name, segment), &segment.kind) {
                    (Ok(_), _) => {}
                    (Err(error), Kind::Other(_)) => report.note(&logical.name, error),
                    (Err(error), _) => report.error(&logical.name, error),
                }
            }
        }
        Ok(())
    }
}
