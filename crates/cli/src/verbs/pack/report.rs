//! Summary of `packfs pack`: savings, and a command that mounts the image.

use super::details;
use crate::out::json;
use crate::out::report::Out;
use crate::out::text;
use owo_colors::OwoColorize;
use packfs::{PackReport, Result, escaped};
use serde::Serialize;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::time::Duration;

/// A pack that went well.
pub struct Summary<'a> {
    /// Report of the library.
    pub report: &'a PackReport,
    /// Path of the image.
    pub image: &'a Path,
    /// Offset of the image in that file.
    pub offset: u64,
    /// Time that packing took.
    pub took: Duration,
    /// Set to print all details.
    pub details: bool,
}

impl Summary<'_> {
    /// For people.
    pub fn print(&self) -> Result<()> {
        let report = self.report;
        let mut out = Out::stdout();
        let name = escaped(self.image.as_os_str().as_bytes()).to_string();
        out.line(format_args!(
            "{}: {} of {} became {} ({}) in {:.1} s",
            name.bold(),
            text::size(report.bytes_in),
            text::counted(report.files, "file"),
            text::size(report.image_len).green(),
            text::percent(report.image_len, report.bytes_in),
            self.took.as_secs_f64(),
        ))?;
        if let Some(way) = &report.fitted {
            out.line(format_args!("  fits with {way}"))?;
        }
        if report.duplicate_files > 0 {
            let files = text::counted(report.duplicate_files, "duplicate file");
            out.line(format_args!("  {files} stored once: {} saved", text::size(report.duplicate_bytes)))?;
        }
        if report.run_files > 0 {
            let files = text::counted(report.run_files, "file");
            out.line(format_args!(
                "  {files} found in the blocks of others: {} saved",
                text::size(report.run_bytes)
            ))?;
        }
        if report.duplicate_tails > 0 {
            let tails = text::counted(report.duplicate_tails, "small file or tail");
            out.line(format_args!(
                "  {tails} found at the start of other blocks: {} saved",
                text::size(report.duplicate_tail_bytes)
            ))?;
        }
        if report.base_blocks > 0 {
            let blocks = text::counted(report.base_blocks, "block");
            out.line(format_args!("  {blocks} copied from the base: {}", text::size(report.base_bytes)))?;
        }
        if report.hole_bytes > 0 {
            out.line(format_args!("  {} of holes take no space", text::size(report.hole_bytes)))?;
        }
        if let Some(classes) = details::short(report).filter(|_| !self.details) {
            out.line(format_args!("  most of it: {classes} (--report shows more)"))?;
        }
        if let Some(cost) = details::walk_warning(report).filter(|_| !self.details) {
            out.line(format_args!("  {cost}"))?;
        }
        if self.details {
            details::print(report, &mut out)?;
        } else if details::metadata_advice(report).is_some() && report.image_len > report.bytes_in {
            details::print_suggestions(report, "  ", &mut out)?;
        } else if let Some(advice) = report.default_advice {
            out.line(format_args!("  suggestion: {advice}"))?;
        }
        out.line(format_args!("  mount it: {}", packfs::printable(&self.mount_command())))?;
        out.finish()
    }

    /// By the kernel where it can and the user may, else through FUSE, which needs a directory of
    /// the user's own.
    fn mount_command(&self) -> String {
        let is_file = packfs::url_scheme(self.image).is_none();
        match self.report.driver.filter(|_| is_file && packfs::mount::is_root()) {
            Some(driver) => self.kernel_mount(driver),
            None => self.own_mount(),
        }
    }

    fn kernel_mount(&self, driver: &str) -> String {
        let offset = if self.offset > 0 { format!(",offset={}", self.offset) } else { String::new() };
        // Beside a loop device kernels want block devices, too.
        let devices = self.report.data_files.iter();
        let device: String =
            devices.map(|path| format!(",device=$(sudo losetup -rf --show {})", quoted(path))).collect();
        let source = match std::fs::metadata(self.image) {
            Ok(found) if found.file_type().is_block_device() => "ro",
            _ => "loop,ro",
        };
        format!("sudo mount -t {driver} -o {source}{offset}{device} {} /mnt", quoted(self.image))
    }

    fn own_mount(&self) -> String {
        let offset = if self.offset > 0 { format!("--offset {} ", self.offset) } else { String::new() };
        let devices = self.report.data_files.iter();
        let devices: String = devices.map(|path| format!("--device {} ", quoted(path))).collect();
        let mount = format!("packfs mount {offset}{devices}{}", quoted(self.image));
        if packfs::mount::is_root() {
            format!("{mount} /mnt")
        } else {
            format!("mkdir -p mnt && {mount} mnt")
        }
    }

    /// Prints the same as JSON.
    pub fn print_json(&self) -> Result<()> {
        let report = self.report;
        let data_files = report.data_files.iter().map(|path| DataFile { path: json::Bytes::from(path) });
        json::print(&Document {
            image: json::Bytes::from(self.image),
            report,
            walk_ratio: report.walk.ratio(),
            seconds: self.took.as_secs_f64(),
            suggestions: details::suggestions(report),
            mount: self.mount_command(),
            data_file: report.data_files.first().map(json::Bytes::from),
            data_files: data_files.collect(),
        })
    }
}

/// Document of `pack --json` and `repack --json`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Document<'a> {
    #[serde(flatten)]
    image: json::Bytes<'a, json::Image>,
    #[serde(flatten)]
    report: &'a PackReport,
    /// Blocks that Linux reads in a walk along the tree, relative to `--order path`, estimated.
    walk_ratio: f64,
    /// Time that packing took.
    seconds: f64,
    /// Options that may be worth a try, with their effect.
    suggestions: Vec<&'static str>,
    /// Command that mounts the image: by the kernel for root, else through FUSE.
    mount: String,
    #[serde(flatten)]
    data_file: Option<json::Bytes<'a, DataFileKey>>,
    /// All files of data outside the image.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    data_files: Vec<DataFile<'a>>,
}

json::byte_key!(DataFileKey, "data_file", "First file of data outside the image (`-O device=FILE`).");
json::byte_key!(FilePath, "path", "Path of the file.");

/// File of data outside the image.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct DataFile<'a> {
    #[serde(flatten)]
    path: json::Bytes<'a, FilePath>,
}

/// A path as a POSIX shell takes it as one word.
fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@%:,=".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) && !text.starts_with('-') {
        return text.into_owned();
    }
    let path = if text.starts_with('-') { format!("./{text}") } else { text.into_owned() };
    format!("'{}'", path.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_with_blanks_and_quotes_stay_one_word() {
        for (path, word) in [
            ("/tmp/share.sqfs", "/tmp/share.sqfs"),
            ("a b", "'a b'"),
            ("-x", "'./-x'"),
            ("it's", r"'it'\''s'"),
        ] {
            assert_eq!(quoted(Path::new(path)), word);
        }
    }
}
