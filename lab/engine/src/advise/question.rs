//! The question.

use super::Want;
use super::kernels::Kernel;
use packfs_device::DeviceSpec;
use std::path::PathBuf;

/// The question.
#[derive(Clone, Debug)]
pub struct Question {
    /// Source of the image: a directory, or any other.
    pub tree: PathBuf,
    /// Device below the image.
    pub device: DeviceSpec,
    /// The user's name for it.
    pub device_name: String,
    /// Purpose of the image.
    pub want: Want,
    /// The kernel that is to mount it; none: the running one.
    pub kernel: Option<Kernel>,
    /// True if less is measured.
    pub quick: bool,
    /// Most bytes that the image may have.
    pub max_size: Option<u64>,
    /// Formats to consider; none: SquashFS and EROFS.
    pub formats: Vec<String>,
    /// A list of the files that are read, for every want but [`Want::Random`], which draws them.
    pub trace: Option<PathBuf>,
    /// Folder of images; none for that of temporary files.
    pub scratch: Option<PathBuf>,
    /// Threads that pack; 0: one a processor.
    pub jobs: usize,
    /// Seed of random choices.
    pub seed: u64,
    /// True if the first two are made and read, to hold the forecast against.
    pub check: bool,
}
