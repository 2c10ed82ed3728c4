//! mksquashfs of squashfs-tools.

use std::ffi::OsString;

use super::{Codec, DebianProgram, Format, Rival, Task, words};
use crate::failure::Result;

pub struct Mksquashfs(DebianProgram);

impl Mksquashfs {
    pub fn find() -> Result<Self> {
        DebianProgram::find("mksquashfs").map(Self)
    }

    /// The words that run it, before any option.
    pub fn start(&self) -> &[OsString] {
        &self.0.command
    }
}

impl Rival for Mksquashfs {
    fn name(&self) -> &'static str {
        "mksquashfs"
    }

    fn version(&self) -> &str {
        &self.0.version
    }

    fn command(&self, task: &Task) -> Option<Vec<OsString>> {
        let Task::Pack { source, image, format: Format::Squashfs, codec, block_len, jobs, .. } = task else {
            return None;
        };
        let (block_len, jobs) = (block_len.to_string(), jobs.to_string());
        let mut command = words(&self.0.command, &[source, image, &"-noappend"]);
        command.extend(codec_options(*codec));
        let rest: [&dyn AsRef<_>; 6] = [&"-b", &block_len, &"-processors", &jobs, &"-no-progress", &"-quiet"];
        Some(words(&command, &rest))
    }
}

/// LZ4 in its thorough mode is an option of LZ4 here, and always at its highest level.
fn codec_options(codec: Codec) -> Vec<OsString> {
    let (name, thorough) = if codec.name == "lz4hc" { ("lz4", true) } else { (codec.name, false) };
    let mut options = vec!["-comp".into(), name.into()];
    if thorough {
        options.push("-Xhc".into());
    } else if let Some(level) = codec.level {
        options.extend(["-Xcompression-level".into(), level.to_string().into()]);
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spells_levels_and_the_thorough_mode_of_lz4() {
        let gzip = codec_options(Codec { name: "gzip", level: Some(9) });
        assert_eq!(gzip, ["-comp", "gzip", "-Xcompression-level", "9"]);
        let lz4hc = codec_options(Codec { name: "lz4hc", level: Some(12) });
        assert_eq!(lz4hc, ["-comp", "lz4", "-Xhc"]);
    }
}
