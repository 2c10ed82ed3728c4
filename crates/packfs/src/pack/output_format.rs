//! The format of an image that is to be made: the one named, else what the extension of its file
//! means.

use packfs_core::{Error, Result, escaped};
use packfs_format::{Format, Makes};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Extensions that images of every format have.
const GENERIC: [&str; 4] = ["img", "image", "bin", "raw"];

/// Picks the format of an image at `output`: the one `named`, else what the extension means, else
/// that of the image it is made of (`again`), else the default, for a file without an extension or
/// with one that any image may have.
///
/// # Errors
/// `Usage`: an unknown name, or an extension that no format has.
pub(crate) fn choose(
    named: Option<&str>,
    output: &Path,
    again: Option<&'static dyn Format>,
) -> Result<&'static dyn Format> {
    if let Some(name) = named {
        return packfs_formats::by_name(name)
            .ok_or_else(|| Error::usage(format!("unknown format {name:?}; packfs writes {}", names())));
    }
    let default = || {
        let default = again.or_else(|| packfs_formats::by_name(packfs_formats::DEFAULT));
        default.ok_or_else(|| {
            Error::usage("cannot choose a format").hint(format!("use --format NAME, with one of {}", names()))
        })
    };
    let Some(extension) = output.extension() else { return default() };
    let text = extension.to_str().unwrap_or_default();
    match packfs_formats::by_extension(text) {
        Some(format) => Ok(format),
        None if again.is_some() || GENERIC.iter().any(|known| known.eq_ignore_ascii_case(text)) => default(),
        None => Err(unknown(extension.as_bytes(), output)),
    }
}

fn unknown(extension: &[u8], output: &Path) -> Error {
    let name = escaped(output.as_os_str().as_bytes());
    let error =
        Error::usage(format!("cannot choose a format for {name}: unknown extension .{}", escaped(extension)));
    let known = packed().flat_map(|format| format.info().extensions);
    let known: Vec<String> = known.map(|extension| format!(".{extension}")).collect();
    let error = error.hint(format!("use --format NAME, with one of {}", names()));
    let error = error.hint(format!("known extensions: {}", known.join(", ")));
    match extension.to_ascii_lowercase().as_slice() {
        b"tar" => error.hint("packfs tar writes an image as a tar"),
        _ => error,
    }
}

fn names() -> String {
    packed().map(|format| format.name()).collect::<Vec<_>>().join(", ")
}

/// Formats that images can be made in.
fn packed() -> impl Iterator<Item = &'static dyn Format> {
    packfs_formats::all().iter().copied().filter(|format| format.info().makes != Makes::Nothing)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(named: Option<&str>, output: &str, again: Option<&str>) -> Result<&'static str> {
        let again = again.and_then(packfs_formats::by_name);
        choose(named, Path::new(output), again).map(|format| format.name())
    }

    #[test]
    fn a_name_goes_before_the_extension_and_that_before_the_image_it_is_made_of() {
        assert_eq!(chosen(Some("cramfs"), "a.sqfs", Some("erofs")).unwrap(), "cramfs");
        assert_eq!(chosen(None, "a.sqfs", Some("erofs")).unwrap(), "squashfs");
        assert_eq!(chosen(None, "a.EROFS", None).unwrap(), "erofs");
        assert_eq!(chosen(None, "core-image.rootfs.erofs-lz4hc", None).unwrap(), "erofs");
        assert_eq!(chosen(None, "a.img", Some("erofs")).unwrap(), "erofs");
        assert_eq!(chosen(None, "a.old", Some("erofs")).unwrap(), "erofs");
    }

    #[test]
    fn files_without_an_extension_and_with_that_of_any_image_are_squashfs() {
        for output in ["-", "/dev/sda", "a", ".hidden", "a.img", "a.IMG", "a.bin", "a.raw", "a.squashfs-xz"] {
            assert_eq!(chosen(None, output, None).unwrap(), "squashfs", "{output}");
        }
    }

    #[test]
    fn an_extension_that_means_no_format_is_refused_with_what_would_do() {
        for output in ["a.hfs", "a.tar", "a.sqfs.tmp", "root-1.2", "a.zip", "a.x-sqfs"] {
            let error = chosen(None, output, None).unwrap_err();
            assert_eq!(error.kind(), packfs_core::ErrorKind::Usage, "{output}");
            assert!(error.hints()[0].contains("--format") && error.hints()[1].contains(".erofs"), "{output}");
            assert!(!error.hints()[0].contains("partitions"), "{error:?}");
        }
    }
}
