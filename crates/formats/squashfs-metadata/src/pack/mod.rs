//! What writers of all generations have in common: what is chosen alike, streams and tables of metadata blocks, the order of
//! inodes, inodes with their listings, and sections one behind the other.

mod behind;
mod choices;
mod inodes;
mod listing;
mod numbering;
mod writer;

pub use behind::Behind;
pub use choices::{Duplicates, Fragments, padding_named, reorder_len, switch_named};
pub use inodes::{InodeBody, InodeRecords, InodeTables};
pub use listing::{Child, Listing, ListingRecords};
pub use writer::{LookupTable, MetadataCodec, MetadataWriter, lookup_table};
