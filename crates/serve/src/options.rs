//! Settings of a site.

use packfs::Error;
use packfs::sink::Row;

/// Texts and decisions of the caller.
pub struct SiteOptions {
    /// Name of the image, the heading of listings.
    pub title: String,
    /// Identity of the image's bytes: entity tags differ for images with different identities.
    pub identity: u64,
    /// Returns an entry of a listing as a JSON object.
    pub json_of: fn(&Row) -> String,
    /// Receives errors of reading.
    pub on_fault: Box<dyn Fn(&Error) + Send + Sync>,
}
