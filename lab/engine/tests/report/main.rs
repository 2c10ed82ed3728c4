//! Reports of a session that never took place, and the map of an image.

mod browser;
mod files;
mod golden;
mod html;
mod made_up;
mod treemap;
