//! Checks the table: both copies of a GPT, the chain of logical partitions, and positions of
//! partitions.

use crate::corruption::Corruption;
use crate::gpt;
use crate::table::{Partition, TableKind};
use crate::volume::PartitionsVolume;
use packfs_core::Result;
use packfs_format::Finding;
use packfs_format::check::Report;

impl PartitionsVolume {
    pub(crate) fn check_all(&self, found: &mut dyn FnMut(Finding)) -> Result<()> {
        self.table_faults().into_iter().for_each(&mut *found);
        self.check_second_copy(&mut Report::new("partition table", found))
    }

    /// See [`packfs_format::Inside::known_faults`].
    pub(crate) fn table_faults(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut add = |finding| findings.push(finding);
        let mut report = Report::new("partition table", &mut add);
        for fault in &self.table.faults {
            report.error("table", *fault);
        }
        if matches!(self.table.kind, TableKind::Gpt { is_backup: true, .. }) {
            report.warn("table", "the first copy is damaged, so the second is used");
        }
        if self.table.ignores_gpt {
            let text = "the MBR is read; a GPT is there, too, but the MBR has no entry of type 0xee for it; \
                        --partition-table gpt reads it";
            report.warn("table", text);
        }
        self.check_places(&mut report);
        findings
    }

    /// Checks the second copy, which readers ignore while the first is valid.
    fn check_second_copy(&self, report: &mut Report<'_>) -> Result<()> {
        let TableKind::Gpt { alternate_lba, is_backup: false, .. } = self.table.kind else { return Ok(()) };
        let sector_len = self.table.sector_len;
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
        let mut partitions: Vec<_> = self.table.partitions.iter().collect();
        for partition in &partitions {
            self.check_place(partition, report);
        }
        partitions.sort_by_key(|it| (it.start, it.number));
        let mut longest: Option<&Partition> = None;
        for partition in partitions {
            if let Some(other) = longest.filter(|other| other.end() > partition.start) {
                let fault = Corruption::Overlap { number: partition.number, other: other.number };
                report.error(partition.file_name(), fault);
            }
            longest = longest.filter(|other| other.end() > partition.end()).or(Some(partition));
        }
    }

    fn check_place(&self, partition: &Partition, report: &mut Report<'_>) {
        let (number, limit) = (partition.number, self.image.len());
        if partition.end() > limit {
            let fault = Corruption::Beyond { number, end: partition.end(), limit };
            report.error(partition.file_name(), fault);
        }
        let covers =
            |range: &std::ops::Range<u64>| range.start < partition.end() && range.end > partition.start;
        if let Some((range, what)) = self.table.structures.iter().find(|(range, _)| covers(range)) {
            let fault = Corruption::Covers { number, what, at: range.start };
            report.error(partition.file_name(), fault);
        }
    }
}
