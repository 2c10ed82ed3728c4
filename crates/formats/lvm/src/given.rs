//! The given physical volumes, and the newest text of their group.

use crate::corruption::Corruption;
use crate::group::Group;
use crate::label::Physical;
use packfs_core::{Error, Image, Result};
use std::sync::Arc;

/// A group, and its given physical volumes.
pub(crate) struct Given {
    pub(crate) group: Group,
    /// One for each image.
    pub(crate) physicals: Vec<Physical>,
    /// Warnings about damaged or old texts.
    pub(crate) doubts: Vec<String>,
}

impl Given {
    /// Reads the labels and texts of images, the first of which is opened.
    ///
    /// Errors: `Corrupt` if no text is valid, `Usage` for an image of another group, `Io`.
    pub(crate) fn read(images: &[Arc<dyn Image>]) -> Result<Given> {
        let mut physicals = Vec::new();
        let mut groups = Vec::new();
        let mut doubts = Vec::new();
        let mut fault = None;
        for (index, image) in images.iter().enumerate() {
            let at = |error: Error| if index == 0 { error } else { error.at(image.name()) };
            let physical = Physical::read(&**image).map_err(at)?;
            for text in physical.texts(&**image).map_err(at)? {
                match text.and_then(|text| Ok(Group::parse(&text)?)) {
                    Ok(group) => groups.push((index, group)),
                    Err(error) => {
                        doubts.push(format!("{}: {error}; another copy is used", image.name()));
                        fault = fault.or(Some(at(error)));
                    }
                }
            }
            physicals.push(physical);
        }
        let uuid = |index: usize| physicals.get(index).map(|it| it.uuid.as_str()).unwrap_or_default();
        let stranger = |index: usize, name: &str| {
            let image = images.get(index).map(|image| image.name()).unwrap_or_default();
            let message = format!("{image} is no physical volume of the group {name:?}");
            // The opened image may have its own group, and a valid label identifies its volume.
            if index == 0 || physicals.get(index).is_some_and(|it| it.label_fault.is_some()) {
                Error::corrupt("lvm image", message).hint("its label or its metadata is damaged")
            } else {
                Error::usage(message)
            }
        };
        // The group is that of the first image, even if its own text is missing.
        let own = groups.iter().filter(|(_, group)| group.has(uuid(0)));
        let Some((_, newest)) = own.max_by_key(|(index, group)| (*index == 0, group.sequence)) else {
            return Err(match groups.first() {
                Some((_, group)) => stranger(0, &group.name),
                None => fault.unwrap_or(Corruption::NoText.into()),
            });
        };
        let id = newest.id.clone();
        let same = groups.iter().filter(|(_, group)| group.id == id && group.has(uuid(0)));
        let Some((_, group)) = same.max_by_key(|(_, group)| group.sequence) else {
            return Err(Corruption::NoText.into());
        };
        let group = group.clone();
        if let Some(index) = (1..images.len()).find(|index| !group.has(uuid(*index))) {
            return Err(stranger(index, &group.name));
        }
        let newest = group.sequence;
        for (index, old) in groups.iter().filter(|(_, other)| other.id == id && other.sequence != newest) {
            let name = images.get(*index).map(|image| image.name()).unwrap_or_default();
            let sequence = old.sequence;
            doubts
                .push(format!("{name}: a text has the sequence number {sequence}; that of {newest} is used"));
        }
        Ok(Given { group, physicals, doubts })
    }
}
