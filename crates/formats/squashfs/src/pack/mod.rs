//! Common parts of the writers of all versions: options, streams and tables of metadata blocks, the
//! order of inodes, inodes with their listings, and the sections after the data.

mod choices;
mod inodes;
mod listing;
mod numbering;
mod trailing;
mod writer;

pub(crate) use choices::{
    Duplicates, Fragments, PADDING, Uncompressed, reorder_len, stored_time, typed_options,
};
pub(crate) use inodes::{InodeBody, InodeRecords, InodeTables};
pub(crate) use listing::{Child, Listing, ListingRecords};
pub(crate) use trailing::TrailingSections;
pub(crate) use writer::{MetadataCodec, MetadataWriter, lookup_table};
