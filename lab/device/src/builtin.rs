//! The devices that come with packfs, and finding a device by its name or file.

use crate::format::LEN_MAX;
use crate::spec::DeviceSpec;
use packfs_core::{Error, Result, ResultExt};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// One row a device, slowest first.
const DEVICES: [(&str, &str); 8] = [
    ("cdrom-48x", include_str!("../devices/cdrom-48x.toml")),
    ("http-20ms", include_str!("../devices/http-20ms.toml")),
    ("sd", include_str!("../devices/sd.toml")),
    ("hdd", include_str!("../devices/hdd.toml")),
    ("cloud-3000iops", include_str!("../devices/cloud-3000iops.toml")),
    ("emmc", include_str!("../devices/emmc.toml")),
    ("usb3-ssd", include_str!("../devices/usb3-ssd.toml")),
    ("nvme", include_str!("../devices/nvme.toml")),
];

/// Names of the built-in devices, slowest first.
pub fn builtin_names() -> impl Iterator<Item = &'static str> {
    DEVICES.iter().map(|(name, _)| *name)
}

/// The built-in device of this name.
pub fn builtin(name: &str) -> Option<DeviceSpec> {
    let (name, text) = DEVICES.iter().find(|(known, _)| *known == name)?;
    // A test reads them all.
    DeviceSpec::parse(text, name).ok()
}

/// The built-in device of this name, or the one that a file describes: what has a slash or ends in
/// `.toml` is a file.
///
/// Errors: `Usage` if there is no such device or its description is wrong, `Io` if the file cannot
/// be read.
pub fn find(name: &str) -> Result<DeviceSpec> {
    if !name.contains('/') && !name.ends_with(".toml") {
        return builtin(name).ok_or_else(|| {
            let known: Vec<&str> = builtin_names().collect();
            Error::usage(format!("device {name:?}: no such device"))
                .hint(format!("there are {}; a file of your own ends in .toml", known.join(", ")))
        });
    }
    let path = Path::new(name);
    let cannot = || format!("cannot read {path:?}");
    let mut text = String::new();
    let file = File::open(path).or_io(cannot)?;
    file.take(LEN_MAX + 1).read_to_string(&mut text).or_io(cannot)?;
    if text.len() as u64 > LEN_MAX {
        return Err(Error::usage(format!("device {path:?}: longer than {LEN_MAX} bytes, which are allowed")));
    }
    DeviceSpec::parse(&text, &format!("{path:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_device_is_well_described() {
        for (name, text) in DEVICES {
            let spec = DeviceSpec::parse(text, name).unwrap();
            assert_eq!(spec.name, name);
            assert!(!spec.sources.is_empty() && !spec.title.is_empty(), "{name}");
            assert_eq!(find(name).unwrap(), spec);
        }
        assert!(find("floppy").unwrap_err().hints()[0].contains("cdrom-48x"));
    }

    #[test]
    fn a_device_may_come_from_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine.toml");
        let text = DEVICES[2].1.replace("name = \"sd\"", "name = \"mine\"");
        std::fs::write(&path, text).unwrap();
        assert_eq!(find(path.to_str().unwrap()).unwrap().name, "mine");
        std::fs::write(&path, "#".repeat(LEN_MAX as usize + 1)).unwrap();
        assert!(find(path.to_str().unwrap()).unwrap_err().to_string().contains("longer than"));
    }
}
