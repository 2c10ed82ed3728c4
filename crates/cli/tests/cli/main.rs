//! The program as scripts meet it: what it prints where, and with which exit code it ends.

mod adding;
#[cfg(feature = "lab")]
mod advising;
mod bug_reports;
mod callers;
mod composefs;
mod containers;
mod digests;
mod documents;
mod doors;
mod empty;
mod faults;
mod fixture;
mod foreign;
mod hostile;
mod installing;
mod interposed;
#[cfg(feature = "lab")]
mod lab;
#[cfg(feature = "lab")]
mod lab_limits;
#[cfg(feature = "lab")]
mod lab_plans;
#[cfg(feature = "lab")]
mod lab_subjects;
mod limits;
mod mapping;
mod merging;
mod mount_channels;
mod mount_stress;
mod mounting;
mod named_archives;
mod named_faults;
mod named_layers;
mod named_options;
mod named_packing;
mod named_reading;
mod named_silent;
mod named_trees;
mod names;
mod oci;
mod oci_encoded;
mod oci_made;
mod oci_merged;
mod oci_peers;
mod packing;
mod packing_urls;
mod printing;
mod reading;
mod recovery;
mod remote;
mod remote_cache;
mod sandboxed;
mod serve;
mod several;
mod sharding;
mod short_memory;
mod signals;
mod signing;
mod storing;
mod targets;
mod terminal;
mod trusting;
mod usage;
mod verity;
