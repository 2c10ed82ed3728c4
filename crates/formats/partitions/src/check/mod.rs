//! Checks the table: both copies of a GPT, the chain of logical partitions, and where partitions
//! lie.

use crate::corruption::Corruption;
use crate::gpt;
use crate::table::TableKind;
use crate::volume::PartitionsVolume;
use packfs_core::Result;
use packfs_format::Finding;
use packfs_format::check::Report;

impl PartitionsVolume {
    /// See [`packfs_format::Volume::check`].
    pub(crate) fn check_all(&self, found: &mut dyn FnMut(Finding)) -> Result<()> {
        let mut report = Report::new("partition table", found);
        for fault in &self.table.faults {
            tell(&mut report, "table", *fault);
        }
        self.check_second_copy(&mut report)?;
        self.check_places(&mut report);
        Ok(())
    }

    /// Checks the second copy, which readers of a sound first copy do not look at until they need
    /// it.
    fn check_second_copy(&self, report: &mut Report<'_>) -> Result<()> {
        let TableKind::Gpt { alternate_lba, is_backup, .. } = self.table.kind else { return Ok(()) };
        let sector_len = self.table.sector_len;
        if is_backup {
            report.warn("table", "the first copy is damaged, so the second is used");
            return Ok(());
        }
        match gpt::copy(&*self.image, alternate_lba, sector_len)? {
            Err(fault) => report.warn("second copy", fault),
            Ok(second) => {
                if let Ok(first) = gpt::copy(&*self.image, 1, sector_len)?
                    && first.header.entries_crc.get() != second.header.entries_crc.get()
                {
                    report.error("second copy", "its partitions are others than those of the first");
                }
            }
        }
        Ok(())
    }

    fn check_places(&self, report: &mut Report<'_>) {
        let limit = self.image.len();
        let mut partitions: Vec<_> = self.table.partitions.iter().collect();
        for partition in partitions.iter().filter(|it| it.end() > limit) {
            let number = partition.number;
            tell(report, &partition.file_name(), Corruption::Beyond { number, end: partition.end(), limit });
        }
        partitions.sort_by_key(|it| (it.start, it.number));
        for (first, second) in partitions.iter().zip(partitions.iter().skip(1)) {
            if first.end() > second.start {
                let fault = Corruption::Overlap { number: second.number, other: first.number };
                tell(report, &second.file_name(), fault);
            }
        }
    }
}

fn tell(report: &mut Report<'_>, place: &str, fault: Corruption) {
    report.error(place, fault);
}
