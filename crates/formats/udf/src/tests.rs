//! Refusals of the reader: a sound image with one bad figure each.
