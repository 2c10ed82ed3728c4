//! Takes an opened image apart: into a directory, or into a tar archive.

use crate::Reader;
use packfs_core::{Progress, Result};
use packfs_sink::{TarOptions, TarReport, UnpackOptions, UnpackReport};
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// Unpacking, and archives.
impl Reader {
    /// Unpacks everything into a directory, with default options. See [`Reader::unpack_with`].
    pub fn unpack(&self, target: impl AsRef<Path>) -> Result<UnpackReport> {
        self.unpack_with(target, &UnpackOptions::default(), self.progress())
    }

    /// Unpacks into a directory, which is made if need be. Nothing is ever written outside of it.
    /// Leaves out damaged files and reports them through `progress`. The first such error is
    /// returned when everything else is in place, or before anything is written with
    /// [`UnpackOptions::fail_fast`].
    ///
    /// Errors: `Io`, `Corrupt`, `Failed` for patterns that match nothing, `Cancelled`.
    pub fn unpack_with(
        &self,
        target: impl AsRef<Path>,
        options: &UnpackOptions,
        progress: &dyn Progress,
    ) -> Result<UnpackReport> {
        let mut loaded = self.load_what_is_there(progress)?;
        let faults = std::mem::take(&mut loaded.faults);
        let no_faults = || faults.into_result();
        if options.fail_fast {
            no_faults()?;
            let report = packfs_sink::unpack(self.engine(), &loaded, target.as_ref(), options, progress);
            self.remark(progress);
            return report;
        }
        let report = packfs_sink::unpack(self.engine(), &loaded, target.as_ref(), options, progress);
        self.remark(progress);
        let report = report?;
        no_faults().map(|()| report)
    }

    /// Warns of what was met while reading.
    fn remark(&self, progress: &dyn Progress) {
        self.volume().remarks().iter().for_each(|remark| progress.warn(remark));
    }

    /// Writes everything as a tar archive, with default options. See [`Reader::write_tar_with`].
    pub fn write_tar(&self, out: &mut dyn Write) -> Result<TarReport> {
        self.write_tar_with(out, &TarOptions::default(), self.progress())
    }

    /// Writes a tar archive that packs to the same image again.
    ///
    /// Errors: `Io`, `Corrupt`, `Failed` for patterns that match nothing, `Cancelled`.
    pub fn write_tar_with(
        &self,
        out: &mut dyn Write,
        options: &TarOptions,
        progress: &dyn Progress,
    ) -> Result<TarReport> {
        let loaded = self.load(progress)?;
        let report = packfs_sink::write_tar(self.engine(), &loaded, out, options, progress);
        self.remark(progress);
        report
    }

    /// Writes like [`Reader::write_tar_with`], from the position of `out`. If `out` is a regular
    /// file that ends there, all threads write to it in parallel, and an incomplete archive is
    /// removed.
    ///
    /// Errors: as there.
    pub fn write_tar_file(
        &self,
        out: &File,
        options: &TarOptions,
        progress: &dyn Progress,
    ) -> Result<TarReport> {
        let loaded = self.load(progress)?;
        let report = packfs_sink::write_tar_file(self.engine(), &loaded, out, options, progress);
        self.remark(progress);
        report
    }
}
