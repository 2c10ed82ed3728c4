//! Summary of `packfs pack`: savings, and a command that mounts the image.

use super::details;
use crate::out::json;
use crate::out::report::Out;
use crate::out::text;
use owo_colors::OwoColorize;
use packfs::{ClassRow, Loss, PackReport, Result, Section, StageTime, escaped};
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
            format: report.format,
            codec: &report.codec,
            image_size: report.image_len,
            nodes: report.nodes,
            files: report.files,
            file_bytes: report.bytes_in,
            data_bytes: report.data_len,
            metadata_bytes: report.metadata_len,
            duplicate_files: report.duplicate_files,
            duplicate_bytes: report.duplicate_bytes,
            run_files: report.run_files,
            run_bytes: report.run_bytes,
            duplicate_tails: report.duplicate_tails,
            duplicate_tail_bytes: report.duplicate_tail_bytes,
            hole_bytes: report.hole_bytes,
            base_blocks: report.base_blocks,
            base_bytes: report.base_bytes,
            fragment_blocks: report.fragment_blocks,
            fragment_decodes: report.walk.decodes,
            fragment_read_bytes: report.walk.read_bytes,
            path_order_decodes: report.walk.path_decodes,
            walk_ratio: report.walk.ratio(),
            fragment_bytes: report.fragments.bytes,
            fragment_stored_bytes: report.fragments.stored,
            plain_bytes: report.plain_bytes,
            seconds: self.took.as_secs_f64(),
            sections: &report.sections,
            classes: &report.classes,
            stages: &report.stages,
            fitted: report.fitted.as_deref(),
            suggestions: details::suggestions(report),
            losses: &report.losses,
            skipped: &report.skipped,
            driver: report.driver,
            mount: self.mount_command(),
            data_file: report.data_files.first().map(json::Bytes::from),
            data_files: data_files.collect(),
        })
    }
}

/// Document of `pack --json` and `repack --json`.
// It repeats the totals of `PackReport`, because keys of the program stand between them: a
// flattened report would change their order.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Document<'a> {
    #[serde(flatten)]
    image: json::Bytes<'a, json::Image>,
    /// Name of the format.
    format: &'static str,
    /// Codec, as a value of `--codec`.
    codec: &'a str,
    /// Length of the image.
    image_size: u64,
    /// Inodes of all types.
    nodes: u64,
    /// Regular files.
    files: u64,
    /// Length of all files.
    file_bytes: u64,
    /// File data in the image.
    data_bytes: u64,
    /// Everything else in the image but padding.
    metadata_bytes: u64,
    /// Files that share all their data with another one.
    duplicate_files: u64,
    /// Length of `duplicate_files`.
    duplicate_bytes: u64,
    /// Files that share some blocks with another one.
    run_files: u64,
    /// Length of the shared blocks.
    run_bytes: u64,
    /// Small files and tails that equal the beginning of another file's block.
    duplicate_tails: u64,
    /// Length of `duplicate_tails`.
    duplicate_tail_bytes: u64,
    /// Holes.
    hole_bytes: u64,
    /// Blocks copied from an earlier image.
    base_blocks: u64,
    /// Length of `base_blocks` in that image.
    base_bytes: u64,
    /// Fragment blocks, which hold tails of several files.
    fragment_blocks: u64,
    /// Fragment blocks that Linux decodes in a walk along the tree; a block counts each time.
    fragment_decodes: u64,
    /// Length of the blocks in `fragment_decodes` in the image.
    fragment_read_bytes: u64,
    /// The value of `fragment_decodes` with `--order path`, estimated.
    path_order_decodes: u64,
    /// Blocks that Linux reads in a walk along the tree, relative to `--order path`, estimated.
    walk_ratio: f64,
    /// Small files and tails in fragment blocks or the packed inode.
    fragment_bytes: u64,
    /// Length of `fragment_bytes` after compression.
    fragment_stored_bytes: u64,
    /// Data stored uncompressed, because compression gains less than `--min-gain`.
    plain_bytes: u64,
    /// Time that packing took.
    seconds: f64,
    /// Structures of the image.
    sections: &'a [Section],
    /// Classes of files, the largest first; empty if files were copied unread.
    classes: &'a [ClassRow],
    /// Stages, in their order.
    stages: &'a [StageTime],
    /// Denser settings by which the image fits (`--fit`); null if the requested ones do.
    fitted: Option<&'a str>,
    /// Options that may be worth a try, with their effect.
    suggestions: Vec<&'static str>,
    /// Attributes that the format cannot represent.
    losses: &'a [Loss],
    /// With `--keep-going`: a message for each file or directory that could not be read.
    skipped: &'a [String],
    /// Linux driver that mounts the image; null without any.
    driver: Option<&'static str>,
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
