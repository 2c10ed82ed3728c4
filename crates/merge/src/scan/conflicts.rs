//! Names in several inputs that are not all directories.

use crate::MergeInput;
use packfs_core::{Error, Result};

/// Most paths named in the error.
const TOLD_MAX: u64 = 10;

#[derive(Default)]
pub(super) struct Conflicts {
    told: Vec<(String, Vec<u32>)>,
    count: u64,
}

impl Conflicts {
    pub(super) fn add(&mut self, path: String, inputs: &[u32]) {
        if self.count < TOLD_MAX {
            self.told.push((path, inputs.to_vec()));
        }
        self.count = self.count.saturating_add(1);
    }

    /// Names the first paths, and the images that contain them.
    pub(super) fn into_result(self, inputs: &[MergeInput]) -> Result<()> {
        if self.count == 0 {
            return Ok(());
        }
        let name = |index: &u32| inputs.get(*index as usize).map_or("", |input| &input.name);
        let line = |(path, inputs): &(String, Vec<u32>)| {
            let names: Vec<&str> = inputs.iter().map(name).collect();
            format!("{path} is in {}", names.join(" and "))
        };
        let lines: Vec<String> = self.told.iter().map(line).collect();
        let more = self.count.saturating_sub(self.told.len() as u64);
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        let what = if self.count == 1 { "path is" } else { "paths are" };
        let message =
            format!("cannot merge: {} {what} in several images: {}{more}", self.count, lines.join("; "));
        Err(Error::failed(message)
            .hint("--on-conflict last keeps what the last image has; --at PREFIX=IMAGE mounts one elsewhere"))
    }
}
