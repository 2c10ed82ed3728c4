//! Drivers of the running kernel.

/// Its version, as `uname -r` has it.
pub(super) fn kernel_release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

/// True if a file system's driver is loaded, or can be: the kernel loads it when it is first asked
/// for.
pub(super) fn has_driver(name: &str) -> bool {
    let loaded = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    if loaded.lines().any(|line| line.split_whitespace().last() == Some(name)) {
        return true;
    }
    has_module(if name == "iso9660" { "isofs" } else { name })
}

/// True if the kernel has this module, loaded or not.
pub(super) fn has_module(name: &str) -> bool {
    let list = format!("/lib/modules/{}/modules.dep", kernel_release());
    let modules = std::fs::read_to_string(list).unwrap_or_default();
    let file = format!("/{name}.ko");
    modules.lines().any(|line| line.split(':').next().is_some_and(|path| path.contains(&file)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinguishes_present_from_missing_drivers() {
        assert!(has_driver("proc"));
        assert!(!has_driver("no-such-fs"));
    }
}
