//! Attributes of a device's queue in sysfs.

use crate::spec::DeviceSpec;
use std::fs;
use std::path::PathBuf;

/// Sets them as the real device has them; what comes back are those that the kernel refuses, each
/// with its value.
pub(crate) fn set(number: u32, spec: &DeviceSpec) -> Vec<String> {
    let folder = PathBuf::from(format!("/sys/block/loop{number}/queue"));
    let attributes = [
        ("scheduler", spec.queue.scheduler.word().to_owned()),
        ("rotational", u32::from(spec.medium.rotational).to_string()),
        ("read_ahead_kb", spec.queue.read_ahead_kib.to_string()),
        ("max_sectors_kb", spec.queue.request_kib_max.to_string()),
        // What takes random figures from the times of requests would take them from our model.
        ("add_random", "0".to_owned()),
    ];
    attributes
        .into_iter()
        .filter_map(|(name, value)| {
            let error = fs::write(folder.join(name), &value).err()?;
            Some(format!("{name} = {value}: {error}"))
        })
        .collect()
}
