//! Limits of input: an option for each limit of the library, shared by all verbs that read.

use crate::out::text;
use packfs::{LIMITS, Limit, Limits};

/// Heading of the options in long help.
const HEADING: &str = "Limits on untrusted images, tars and manifests";

/// Limits as typed.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct LimitArgs {
    /// Limit the number of entries
    #[arg(long, value_name = "N", value_parser = parse_count, help_heading = HEADING, hide_short_help = true)]
    max_entries: Option<u64>,

    /// Limit the depth of directories
    #[arg(long, value_name = "N", value_parser = parse_count, help_heading = HEADING, hide_short_help = true)]
    max_depth: Option<u64>,

    /// Limit the length of a name
    #[arg(long, value_name = "SIZE", value_parser = parse_size, help_heading = HEADING, hide_short_help = true)]
    max_name: Option<u64>,

    /// Limit the length of a symlink target
    #[arg(long, value_name = "SIZE", value_parser = parse_size, help_heading = HEADING, hide_short_help = true)]
    max_target: Option<u64>,

    /// Limit the xattrs of one inode
    #[arg(long, value_name = "SIZE", value_parser = parse_size, help_heading = HEADING, hide_short_help = true)]
    max_inode_xattrs: Option<u64>,

    /// Limit the xattrs of all inodes
    #[arg(long, value_name = "SIZE", value_parser = parse_size, help_heading = HEADING, hide_short_help = true)]
    max_xattrs: Option<u64>,

    /// Limit the length of all files, holes included
    #[arg(long, value_name = "SIZE", value_parser = parse_size, help_heading = HEADING, hide_short_help = true)]
    max_bytes: Option<u64>,

    /// Limit file bytes for each byte of input
    #[arg(long, value_name = "N", value_parser = parse_count, help_heading = HEADING, hide_short_help = true)]
    max_ratio: Option<u64>,

    /// Limit memory for names and metadata
    #[arg(long, value_name = "SIZE", value_parser = parse_size, help_heading = HEADING, hide_short_help = true)]
    max_memory: Option<u64>,

    /// Lift all limits that no other option sets
    ///
    /// For trusted input. The value none lifts a single limit, as in --max-depth none. What the
    /// format itself forbids stays forbidden.
    #[arg(long, help_heading = HEADING, hide_short_help = true)]
    no_limits: bool,
}

impl LimitArgs {
    /// Returns the limits.
    pub fn limits(&self) -> Limits {
        let start = if self.no_limits { Limits::none() } else { Limits::default() };
        LIMITS.iter().fold(start, |limits, row| match self.typed(row.limit) {
            Some(allowed) => limits.allow(row.limit, allowed),
            None => limits,
        })
    }

    fn typed(&self, limit: Limit) -> Option<u64> {
        match limit {
            Limit::Entries => self.max_entries,
            Limit::Depth => self.max_depth,
            Limit::NameLen => self.max_name,
            Limit::TargetLen => self.max_target,
            Limit::InodeXattrs => self.max_inode_xattrs,
            Limit::Xattrs => self.max_xattrs,
            Limit::Bytes => self.max_bytes,
            Limit::Ratio => self.max_ratio,
            Limit::Memory => self.max_memory,
        }
    }
}

/// Value of `none` for [`Limits::allow`], above any count.
const NONE: u64 = u64::MAX;

fn parse_count(typed: &str) -> Result<u64, String> {
    match typed {
        "none" => Ok(NONE),
        _ => typed.parse().map_err(|_| "neither a number nor none".to_owned()),
    }
}

fn parse_size(typed: &str) -> Result<u64, String> {
    if typed == "none" { Ok(NONE) } else { text::parse_size(typed) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        limits: LimitArgs,
    }

    fn limits(words: &[&str]) -> Limits {
        Line::try_parse_from(["packfs"].iter().chain(words)).unwrap_or_else(|e| panic!("{e}")).limits.limits()
    }

    #[test]
    fn every_limit_has_its_option() {
        assert_eq!(limits(&[]), Limits::default());
        for row in LIMITS {
            let option = format!("--{}", row.option);
            assert_eq!(limits(&[&option, "123"]), Limits::default().allow(row.limit, 123), "{option}");
            assert_eq!(limits(&[&option, "none"]).allowed(row.limit), None, "{option}");
            assert_eq!(limits(&["--no-limits", &option, "9"]).allowed(row.limit), Some(9), "{option}");
            assert_eq!(limits(&["--no-limits"]).allowed(row.limit), None, "{option}");
        }
    }
}
