//! Codecs: what they encode, how dense, and how they refuse what is damaged.

mod common;
mod damage;
mod fit;
mod lzma;
mod prefix;
mod round_trip;
mod thorough;
