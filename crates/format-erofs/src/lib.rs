//! EROFS: raw structures of the disk on one side, packfs's plain facts on the other.
//!
//! Owns everything that knows how an EROFS image is built. Decodes and encodes metadata, never file data; starts no thread
//! and touches no directory of the host.
#![forbid(unsafe_code)]

mod disk;
