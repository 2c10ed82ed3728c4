//! What is asked.

use super::Want;
use super::kernels::Kernel;
use packfs_device::DeviceSpec;
use std::path::PathBuf;

/// What is asked.
#[derive(Clone, Debug)]
pub struct Question {
    /// What is to be packed: a directory, or any other source.
    pub tree: PathBuf,
    /// What the image will lie on.
    pub device: DeviceSpec,
    /// How the user names it.
    pub device_name: String,
    /// What the image is wanted for.
    pub want: Want,
    /// The kernel that is to mount it; none: the running one.
    pub kernel: Option<Kernel>,
    /// Whether less is measured.
    pub quick: bool,
    /// Formats to consider; none: SquashFS and EROFS.
    pub formats: Vec<String>,
    /// A list of the files that are read, for every want but [`Want::Random`], which draws them.
    pub trace: Option<PathBuf>,
    /// Where images are made; none: where temporary files go.
    pub scratch: Option<PathBuf>,
    /// Threads that pack; 0: one a processor.
    pub jobs: usize,
    /// Where random choices begin.
    pub seed: u64,
    /// Whether the first two are made and read, to hold the forecast against.
    pub check: bool,
}
