//! The reader against the world: images of other tools, and damaged images.

mod damage;
mod support;
mod tools;
