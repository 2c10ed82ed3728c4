//! Libraries of C that codecs call.

/// Returns names and versions of the libraries of C that this build calls, as they state them.
/// libdeflate states none.
pub fn libraries() -> Vec<(&'static str, String)> {
    Vec::from([
        #[cfg(feature = "xz")]
        ("liblzma", crate::lzma::coders::ffi::version()),
        #[cfg(feature = "lz4")]
        ("lz4", crate::lz4::coders::ffi::version()),
        #[cfg(feature = "zstd")]
        ("zstd", zstd_safe::version_string().to_owned()),
    ])
}
