//! Simulated devices: their descriptions, and as root has them.

mod attached;
mod description;
