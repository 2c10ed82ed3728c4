//! Trees written as directories, archives, and lists.

mod hostile;
mod list;
mod support;
mod tar;
mod unpack;
