//! Settings of an image, for tests of a format's options.

use packfs_format::PackSettings;

/// Returns settings with these options, and a creation time of 1.
pub fn settings(codec: Option<&str>, block_size: Option<u32>, options: &[(&str, &str)]) -> PackSettings {
    PackSettings {
        codec: codec.map(str::to_owned),
        block_size,
        made_at: 1,
        options: options.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
        ..PackSettings::default()
    }
}
