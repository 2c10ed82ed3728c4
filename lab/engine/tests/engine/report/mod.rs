//! Reports of a session that never took place, and the map of an image.

mod browser;
mod golden;
mod html;
mod made_up;
mod treemap;
