//! Programs that pretend to be root by answering for the C library: fakeroot, pseudo, fakechroot.
//!
//! Their pretence reaches this program only if their library is loaded into it. A static program
//! loads none, and then the owners, permissions and devices it sees are the real ones: that has to
//! be said.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

/// Beginnings of the names of their libraries, with their usual names.
const LIBRARIES: [(&str, &str); 3] =
    [("libfakeroot", "fakeroot"), ("libpseudo", "pseudo"), ("libfakechroot", "fakechroot")];

/// The warning about an interposer that was asked for, but is not loaded.
pub fn not_honoured() -> Option<String> {
    let (library, name) = asked_for(std::env::var_os("LD_PRELOAD"), std::env::var_os("FAKEROOTKEY"))?;
    // Where /proc is missing it cannot be told.
    let maps = std::fs::read("/proc/self/maps").ok()?;
    (!names(&maps, library)).then(|| {
        format!(
            "{name} is not honoured, since its library is not loaded (is this packfs linked statically?): \
             owners, permissions and devices are the real ones"
        )
    })
}

/// True if fakeroot is asked for.
pub fn fakeroot_answers() -> bool {
    std::env::var_os("FAKEROOTKEY").is_some()
}

fn asked_for(preload: Option<OsString>, key: Option<OsString>) -> Option<(&'static str, &'static str)> {
    let preload = preload.unwrap_or_default();
    let named = LIBRARIES.into_iter().find(|(library, _)| names(preload.as_bytes(), library));
    named.or(key.map(|_| LIBRARIES[0]))
}

fn names(text: &[u8], library: &str) -> bool {
    text.windows(library.len()).any(|part| part == library.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interposer_is_known_by_the_library_or_by_its_key() {
        let of = |preload: &str, key: Option<&str>| {
            asked_for(Some(preload.into()), key.map(OsString::from)).map(|(_, name)| name)
        };
        assert_eq!(of("/usr/lib/libfakeroot/libfakeroot-sysv.so", None), Some("fakeroot"));
        assert_eq!(of("libjemalloc.so libpseudo.so", None), Some("pseudo"));
        assert_eq!(of("", Some("12345")), Some("fakeroot"));
        assert_eq!(of("libjemalloc.so", None), None);
    }
}
