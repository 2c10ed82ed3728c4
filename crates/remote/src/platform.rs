//! Platforms of OCI images, and the settings of such images.

use packfs_core::{Error, Result, printable};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Name of the format of EROFS layers, and of the feature that a configuration says to need.
pub const EROFS: &str = "erofs";

/// Settings of OCI images.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OciOptions {
    /// Platform to choose from an index; `None`: Linux on the architecture of this machine.
    pub platform: Option<Platform>,
    /// Set to talk to registries without TLS; loopback addresses never have it.
    pub plain_http: bool,
}

/// Operating system and architecture that an image is for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Platform {
    /// Architecture in the words of Go, such as `amd64`.
    #[serde(default)]
    pub architecture: String,
    /// Operating system, such as `linux`.
    #[serde(default)]
    pub os: String,
    /// Variant of the architecture, such as `v8`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// Features that the image needs, such as [`EROFS`].
    #[serde(default, rename = "os.features", skip_serializing_if = "Option::is_none")]
    pub os_features: Option<Vec<String>>,
}

impl Platform {
    /// Returns Linux on the architecture of this machine.
    pub fn of_machine() -> Self {
        let architecture = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "x86" => "386",
            "aarch64" => "arm64",
            "loongarch64" => "loong64",
            "powerpc64" if cfg!(target_endian = "little") => "ppc64le",
            "powerpc64" => "ppc64",
            other => other,
        };
        Platform { architecture: architecture.into(), os: "linux".into(), ..Platform::default() }
    }

    /// True if an image for `offered` runs on this platform. A variant counts only if this platform
    /// names one.
    pub fn takes(&self, offered: &Platform) -> bool {
        let variant = |platform: &Platform| match (&*platform.architecture, &platform.variant) {
            // The first of each is what images without a variant are for.
            ("arm64", None) => Some("v8".to_owned()),
            ("arm", None) => Some("v7".to_owned()),
            (_, variant) => variant.clone(),
        };
        (&self.os, &self.architecture) == (&offered.os, &offered.architecture)
            && (self.variant.is_none() || variant(self) == variant(offered))
    }

    /// True if the image needs a kernel that mounts EROFS layers.
    pub fn needs_erofs(&self) -> bool {
        self.os_features.iter().flatten().any(|feature| feature == EROFS)
    }
}

impl FromStr for Platform {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut parts = text.split('/');
        let (os, architecture, variant) = (parts.next(), parts.next(), parts.next());
        let is_word = |word: &&str| {
            !word.is_empty()
                && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
        };
        let variant = variant.map(|variant| Some(variant).filter(is_word));
        match (os.filter(is_word), architecture.filter(is_word), variant, parts.next()) {
            (Some(os), Some(architecture), None | Some(Some(_)), None) => Ok(Platform {
                architecture: architecture.into(),
                os: os.into(),
                variant: variant.flatten().map(str::to_owned),
                os_features: None,
            }),
            _ => Err(Error::usage(format!(
                "platform {text:?}: OS/ARCHITECTURE[/VARIANT] is allowed, such as linux/arm64/v8"
            ))),
        }
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", printable(&self.os), printable(&self.architecture))?;
        if let Some(variant) = &self.variant {
            write!(f, "/{}", printable(variant))?;
        }
        match &self.os_features {
            Some(features) if !features.is_empty() => write!(f, " (+{})", printable(&features.join(",+"))),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn platforms_are_parsed_and_matched() {
        let parsed = |text: &str| text.parse::<Platform>().unwrap();
        assert_eq!(parsed("linux/arm64/v8").to_string(), "linux/arm64/v8");
        for wrong in ["", "linux", "linux/", "/amd64", "linux/arm/v7/x", "linux/a b", "linux/arm/"] {
            assert!(wrong.parse::<Platform>().is_err(), "{wrong}");
        }
        let takes = |asked: &str, offered: &str| parsed(asked).takes(&parsed(offered));
        assert!(takes("linux/arm64", "linux/arm64/v8") && takes("linux/arm64/v8", "linux/arm64"));
        assert!(takes("linux/arm", "linux/arm/v6") && !takes("linux/arm/v7", "linux/arm/v6"));
        assert!(!takes("linux/amd64", "linux/arm64") && !takes("linux/amd64", "windows/amd64"));
    }
}
