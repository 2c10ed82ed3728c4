//! Paths and hosts of requests.

use packfs::ImagePath;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};

/// Bytes of a path that need no escape (RFC 3986, unreserved).
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// `None` if the path is invalid.
pub(crate) fn image_path(path: &str) -> Option<ImagePath> {
    let bytes: Vec<u8> = percent_decode_str(path).collect();
    ImagePath::parse(&bytes).ok()
}

pub(crate) fn segment(name: &[u8]) -> String {
    percent_encode(name, ESCAPED).to_string()
}

pub(crate) fn of_directory(path: &ImagePath) -> String {
    let names = path.names().map(|name| format!("/{}", segment(name.as_bytes())));
    names.collect::<String>() + "/"
}

/// A loopback server answers only such hosts: a page of another site whose name was pointed here
/// names that site (DNS rebinding).
pub(crate) fn is_this_machine(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let is_loopback = name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    is_loopback || name.eq_ignore_ascii_case("localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_byte_of_a_name_survives_the_way_there_and_back() {
        let name: Vec<u8> = (1..=255).filter(|&byte| byte != b'/').collect();
        let path = image_path(&format!("/a/{}", segment(&name))).unwrap();
        assert_eq!(path.file_name().unwrap().as_bytes(), name);
        assert_eq!(image_path(&of_directory(&path)).unwrap(), path);
    }

    #[test]
    fn paths_stay_in_the_image() {
        for outside in ["/a/../../etc", "/..", "/%2e%2e/a", "/a%00b"] {
            assert_eq!(image_path(outside), None, "{outside}");
        }
        assert_eq!(of_directory(&image_path("//evil.example//x").unwrap()), "/evil.example/x/");
    }

    #[test]
    fn only_names_of_this_machine_are_local() {
        for local in ["localhost", "LOCALHOST:80", "127.0.0.1:8000", "[::1]:8000", "[::1]", "127.9.9.9"] {
            assert!(is_this_machine(local), "{local}");
        }
        for other in ["", "example.org", "localhost.example.org:80", "10.0.0.1", "[2001:db8::1]:80"] {
            assert!(!is_this_machine(other), "{other}");
        }
    }
}
