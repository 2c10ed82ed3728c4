//! Checks of contents, and differences of trees.

mod content;
mod diff;
mod diff_contents;
