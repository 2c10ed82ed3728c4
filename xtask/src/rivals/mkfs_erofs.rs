//! mkfs.erofs of erofs-utils.

use std::ffi::OsString;

use super::{Codec, DebianProgram, Format, Rival, Sharing, Task, words};
use crate::failure::Result;

pub struct MkfsErofs(DebianProgram);

impl MkfsErofs {
    pub fn find() -> Result<Self> {
        DebianProgram::find("mkfs.erofs").map(Self)
    }

    /// The words that run it, before any option.
    pub fn start(&self) -> &[OsString] {
        &self.0.command
    }
}

impl Rival for MkfsErofs {
    fn name(&self) -> &'static str {
        "mkfs.erofs"
    }

    fn version(&self) -> &str {
        &self.0.version
    }

    fn command(&self, task: &Task) -> Option<Vec<OsString>> {
        let Task::Pack { source, image, format: Format::Erofs, sharing, codec, block_len, jobs } = task
        else {
            return None;
        };
        let (codec, cluster, workers) =
            (codec_option(*codec), format!("-C{block_len}"), format!("--workers={jobs}"));
        let mut rest: Vec<&dyn AsRef<_>> = vec![&codec, &cluster, &workers, &"--quiet"];
        match sharing {
            Sharing::Plain => {}
            Sharing::InlineTails => rest.push(&"-Eztailpacking"),
            Sharing::Fragments => rest.push(&"-Efragments"),
            Sharing::Dedupe => rest.push(&"-Ededupe"),
        }
        rest.extend([image as &dyn AsRef<_>, source]);
        Some(words(&self.0.command, &rest))
    }
}

fn codec_option(codec: Codec) -> String {
    codec.level.map_or_else(|| format!("-z{}", codec.name), |level| format!("-z{},level={level}", codec.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spells_levels() {
        assert_eq!(codec_option(Codec { name: "zstd", level: Some(3) }), "-zzstd,level=3");
        assert_eq!(codec_option(Codec { name: "lz4", level: None }), "-zlz4");
    }
}
