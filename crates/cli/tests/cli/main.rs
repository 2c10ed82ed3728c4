//! The program as scripts meet it: what it prints where, and with which exit code it ends.

mod digests;
mod fixture;
mod mount_stress;
mod mounting;
mod packing;
mod reading;
mod recovery;
mod signals;
mod signing;
mod targets;
mod usage;
mod verity;
