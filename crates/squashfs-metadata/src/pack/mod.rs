//! What writers of all generations have in common: streams and tables of metadata blocks, the order of inodes, listings, and
//! sections one behind the other.

mod behind;
mod listing;
mod numbering;
mod writer;

pub use behind::Behind;
pub use listing::{Child, Listing, ListingRecords, write_listing};
pub use numbering::Numbering;
pub use writer::{LookupTable, MetadataCodec, MetadataWriter, lookup_table};
