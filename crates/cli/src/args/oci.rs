//! Options of OCI images.

use packfs::oci::{OciOptions, Platform};
use packfs::remote::RemoteOptions;

/// Options of every verb that opens an OCI image.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct OciArgs {
    /// Choose the OCI image for this platform, as linux/arm64
    ///
    /// PLATFORM is OS/ARCHITECTURE[/VARIANT]. The default is Linux on the architecture of this
    /// machine.
    #[arg(long, value_name = "PLATFORM")]
    platform: Option<Platform>,

    /// Talk to OCI registries without TLS
    ///
    /// Registries on this machine (localhost, 127.0.0.1, ::1) are always asked without TLS.
    #[arg(long)]
    plain_http: bool,
}

impl OciArgs {
    /// Returns `options` with these.
    pub fn apply(&self, options: RemoteOptions) -> RemoteOptions {
        let oci = OciOptions { platform: self.platform.clone(), plain_http: self.plain_http };
        RemoteOptions { oci, ..options }
    }
}
