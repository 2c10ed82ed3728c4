//! Images within images: a file system in a partition of a disk in a compressed container opens
//! like any other.

use crate::inner::{find, inner_image, is_one_of_two, known_images, no_such_image};
use crate::layer::{Choice, DEPTH_MAX, Layer, Which};
use crate::{OpenOptions, Opened};
use packfs_core::{ErrorKind, Result};
use std::collections::VecDeque;

/// Goes inwards from a volume as far as `which` says.
///
/// Errors: `Usage` if what was chosen is not there; `Corrupt` and `Io` of the container, and as
/// [`OpenOptions::open_image`].
pub(crate) fn descend(mut opened: Opened, which: &Which, opening: &OpenOptions) -> Result<Opened> {
    if *which == Which::Outermost {
        return Ok(opened);
    }
    let mut chosen: VecDeque<&str> = match which {
        Which::Chosen(names) => names.split('/').collect(),
        _ => VecDeque::new(),
    };
    let (mut choice, mut path, mut containers) = (None, Vec::new(), Vec::new());
    for _ in 0..DEPTH_MAX {
        let inner_images = opened.volume().inner_images()?;
        // With one image there is no choice: another name is that of an image further inside.
        let is_choice = |name: &&str| inner_images.len() > 1 || find(&inner_images, name).is_some();
        let wanted = chosen.front().copied().filter(|_| !inner_images.is_empty()).filter(is_choice);
        let (name, image) = if let Some(wanted) = wanted {
            chosen.pop_front();
            let inner =
                find(&inner_images, wanted).ok_or_else(|| no_such_image(&opened, &inner_images, wanted))?;
            (inner.name.clone(), inner_image(&opened, inner)?)
        } else {
            let (images, only) = known_images(&opened, &inner_images, &opening.with)?;
            let is_known = only.is_some() || images.iter().any(|it| it.1.is_some());
            if images.len() > 1 && is_known {
                let container = opened.image().name();
                let opened = only.as_ref().map(|(name, _)| name.clone());
                let images = images.into_iter().map(|it| (it.0, it.2)).collect();
                choice = Some(Choice { container, opened, images, path: path.clone() });
            }
            let Some(only) = only else { break };
            only
        };
        if inner_images.len() > 1 {
            path.push(name.clone());
        }
        let mut layers = opened.layers().to_vec();
        layers.push(Layer { format: opened.format().name(), file: name });
        let inner = opening.open_layer(image, layers)?.in_container(&opened);
        containers.push(std::mem::replace(&mut opened, inner));
    }
    match chosen.front() {
        Some(wanted) if chosen.len() == 1 && is_one_of_two(&opened, wanted)? => {
            Ok(opened.with_choice(choice))
        }
        Some(wanted) => {
            // What a damaged container lost may be what was chosen.
            let errors = containers.iter().map(|container| no_such_image(container, &[], wanted));
            let damage = errors.into_iter().find(|error| error.kind() == ErrorKind::Corrupt);
            Err(damage.unwrap_or_else(|| no_such_image(&opened, &[], wanted)))
        }
        None => Ok(opened.with_choice(choice)),
    }
}
