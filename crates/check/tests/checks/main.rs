//! What contents are worth, and how trees differ.

mod content;
mod diff;
mod diff_contents;
