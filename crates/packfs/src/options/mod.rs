//! Options as texts. Each is a row: a name, the values it takes, its group, and its help. The
//! command line, plans, mounts, Python, C, and the guide are made of the rows.
//!
//! ```
//! use packfs::PackOptions;
//! use packfs::options::Options;
//!
//! let options = PackOptions::of_texts([("codec", "zstd:19"), ("block-size", "256K")])?;
//! assert_eq!(options.block_size, Some(256 << 10));
//! for info in PackOptions::infos() {
//!     println!("--{} {}: {}", info.name, info.value, info.line());
//! }
//! # Ok::<(), packfs::Error>(())
//! ```

#[macro_use]
mod table;
mod limits;
mod open;
#[cfg(feature = "pack")]
mod pack;
#[cfg(feature = "pack")]
mod shape;
#[cfg(feature = "pack")]
mod time;
mod values;

#[cfg(feature = "pack")]
pub use pack::{BaseCheck, MadeAt, PackOptions};
#[cfg(feature = "pack")]
pub use shape::shape_of_texts;
pub(crate) use table::Row;
pub use table::{Info, Mark, Options};
#[cfg(feature = "shards")]
pub(crate) use time::clamp;
#[cfg(feature = "pack")]
pub use time::{parse_time, source_date_epoch};
pub use values::{Takes, name_and_value, parse_block_len};
