//! What `packfs pack` prints at its end: what was saved, and how to mount the image.

use super::details;
use crate::out::json::{self, Object, Value, json};
use crate::out::report::Out;
use crate::out::text;
use owo_colors::OwoColorize;
use packfs::{PackReport, Result, escaped};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::time::Duration;

/// A pack that went well.
pub struct Summary<'a> {
    /// What the library says.
    pub report: &'a PackReport,
    /// Where the image is.
    pub image: &'a Path,
    /// Where it begins in that file.
    pub offset: u64,
    /// How long it took.
    pub took: Duration,
    /// Whether all is told.
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
            out.line(format_args!(
                "  {files} stored once: {} less to store",
                text::size(report.duplicate_bytes)
            ))?;
        }
        if report.run_files > 0 {
            let files = text::counted(report.run_files, "file");
            out.line(format_args!(
                "  {files} found in the blocks of others: {} less to store",
                text::size(report.run_bytes)
            ))?;
        }
        if report.borrowed_tails > 0 {
            let tails = text::counted(report.borrowed_tails, "small file or end");
            out.line(format_args!(
                "  {tails} found where others' blocks begin: {} less to store",
                text::size(report.borrowed_bytes)
            ))?;
        }
        if report.base_blocks > 0 {
            let blocks = text::counted(report.base_blocks, "block");
            out.line(format_args!("  {blocks} copied as they were: {}", text::size(report.base_bytes)))?;
        }
        if report.hole_bytes > 0 {
            out.line(format_args!("  {} of holes take no space", text::size(report.hole_bytes)))?;
        }
        if let Some(classes) = details::short(report).filter(|_| !self.details) {
            out.line(format_args!("  most of it: {classes} (--report tells more)"))?;
        }
        if self.details {
            details::print(report, &mut out)?;
        } else if details::metadata_advice(report).is_some() && report.image_len > report.bytes_in {
            details::print_suggestions(report, "  ", &mut out)?;
        }
        out.line(format_args!("  mount it: {}", packfs::printable(&self.mount_command())))?;
        out.finish()
    }

    /// By the kernel where it can and the user may, else through FUSE, which needs a directory of
    /// the user's own.
    fn mount_command(&self) -> String {
        match self.report.driver.filter(|_| packfs::mount::is_root()) {
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

    /// For scripts.
    pub fn print_json(&self) -> Result<()> {
        let report = self.report;
        let mut object = Object::new();
        json::put_bytes(&mut object, "image", self.image.as_os_str().as_bytes());
        object.insert("format".into(), report.format.into());
        object.insert("codec".into(), report.codec.as_str().into());
        for (key, value) in [
            ("image_size", report.image_len),
            ("nodes", report.nodes),
            ("files", report.files),
            ("file_bytes", report.bytes_in),
            ("data_bytes", report.data_len),
            ("metadata_bytes", report.metadata_len),
            ("duplicate_files", report.duplicate_files),
            ("duplicate_bytes", report.duplicate_bytes),
            ("run_files", report.run_files),
            ("run_bytes", report.run_bytes),
            ("lent_tails", report.borrowed_tails),
            ("lent_bytes", report.borrowed_bytes),
            ("hole_bytes", report.hole_bytes),
            ("base_blocks", report.base_blocks),
            ("base_bytes", report.base_bytes),
            ("shared_blocks", report.shared_blocks),
            ("shared_bytes", report.shared.bytes),
            ("shared_stored_bytes", report.shared.stored),
            ("plain_bytes", report.plain_bytes),
        ] {
            object.insert(key.into(), value.into());
        }
        object.insert("seconds".into(), self.took.as_secs_f64().into());
        let sections = report.sections.iter().map(|(owner, len)| json!({"owner": owner, "size": len}));
        object.insert("sections".into(), sections.collect());
        let classes = report.classes.iter().map(|row| {
            let (class, files) = (row.class.name(), row.files);
            json!({"class": class, "files": files, "bytes": row.bytes, "stored_bytes": row.stored})
        });
        object.insert("classes".into(), classes.collect());
        let stages = report.stages.iter().map(
            |(stage, took)| json!({"stage": details::stage_name(*stage), "seconds": took.as_secs_f64()}),
        );
        object.insert("stages".into(), stages.collect());
        object.insert("fitted".into(), report.fitted.as_deref().into());
        object.insert("suggestions".into(), details::suggestions(report).into());
        let losses = report.losses.iter().map(|loss| {
            let mut object = Object::new();
            object.insert("what".into(), loss.what.as_str().into());
            object.insert("count".into(), loss.count.into());
            json::put_bytes(&mut object, "example", loss.example.as_bytes());
            Value::Object(object)
        });
        object.insert("losses".into(), losses.collect());
        object.insert("skipped".into(), report.skipped.clone().into());
        object.insert("driver".into(), report.driver.into());
        object.insert("mount".into(), self.mount_command().into());
        if let Some(path) = report.data_files.first() {
            json::put_bytes(&mut object, "data_file", path.as_os_str().as_bytes());
            let paths = report.data_files.iter().map(|path| {
                let mut object = Object::new();
                json::put_bytes(&mut object, "path", path.as_os_str().as_bytes());
                Value::Object(object)
            });
            object.insert("data_files".into(), paths.collect());
        }
        json::print(&Value::Object(object))
    }
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
