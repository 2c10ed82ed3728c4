//! Measurements of each candidate: packed and read on the samples, or on the whole of short trees,
//! and forecast from that.

use super::bench::Bench;
use super::candidates::Candidate;
use super::forecast::build::Build;
use super::forecast::device::Modelled;
use super::forecast::pattern::Pattern;
use super::forecast::size::{Pair, Ratios, Size, Whole};
use super::forecast::time::{Cost, Scaling};
use super::measure::Decoding;
use super::reading::Measured;
use super::row::Row;
use super::scratch::remove;
use super::{Parts, forecast, measure, reading};
use packfs::source::Loaded;
use packfs::{OpenOptions, Progress, Result};
use std::path::Path;

/// Costs of a candidate before it is set against the device.
struct Costs {
    decoding: Vec<Decoding>,
    measured: Vec<Measured>,
}

impl Bench<'_> {
    pub(super) fn layout(
        &self,
        candidates: &[&Candidate],
        kernel_missing: &mut Option<String>,
        parts: &mut Parts<'_>,
    ) -> Result<Vec<Row>> {
        let progress = parts.progress;
        let Some(first) = candidates.first() else { return Ok(Vec::new()) };
        if self.samples.is_empty() {
            let measure = |candidate: &&Candidate| {
                parts.next(candidate);
                self.as_a_whole(candidate, kernel_missing, progress)
            };
            return candidates.iter().map(measure).collect();
        }
        let reference = first.reference();
        progress.part(&format!("packing all of it as {reference}"));
        let image = self.scratch.path("whole");
        let packed = self.pack(&self.whole, &reference, self.trace, &image, progress)?;
        let pattern = self.pattern(&image)?;
        remove(&image)?;
        let whole = Whole { packed, times: self.times };
        let mut references = Vec::new();
        let image = self.sample_image();
        for sample in &self.samples {
            references.push(self.pack(&sample.loaded, &reference, None, &image, progress)?);
            remove(&image)?;
        }
        let mut rows = Vec::new();
        for candidate in candidates {
            parts.next(candidate);
            let mut pairs = Vec::new();
            let mut costs = Costs { decoding: Vec::new(), measured: Vec::new() };
            for (sample, reference) in self.samples.iter().zip(&references) {
                let packed = self.pack(&sample.loaded, candidate, None, &image, progress)?;
                self.cost(candidate, &sample.loaded, &image, &mut costs, kernel_missing, progress)?;
                remove(&image)?;
                pairs.push(Pair { reference: reference.clone(), candidate: packed });
            }
            let stored = candidate.codec.as_deref() == Some("none");
            let size = if stored { forecast::size::stored } else { forecast::size::forecast };
            let size = size(&whole, &pairs);
            let build = forecast::build::forecast(&whole, &pairs, self.jobs);
            let ratios = forecast::size::ratios(&whole, &pairs);
            let row = self.row(candidate, &pattern, ratios, size, build, &costs);
            rows.push(Row { losses: whole.packed.losses.clone(), ..row });
        }
        Ok(rows)
    }

    fn as_a_whole(
        &self,
        candidate: &Candidate,
        kernel_missing: &mut Option<String>,
        progress: &dyn Progress,
    ) -> Result<Row> {
        let image = self.sample_image();
        let packed = self.pack(&self.whole, candidate, self.trace, &image, progress)?;
        let mut costs = Costs { decoding: Vec::new(), measured: Vec::new() };
        self.cost(candidate, &self.whole, &image, &mut costs, kernel_missing, progress)?;
        let pattern = self.pattern(&image)?;
        remove(&image)?;
        let size = Size { bytes: packed.image_len, error: 0.0 };
        let build = forecast::build::of_cpu(packed.cpu, self.jobs);
        let row = self.row(candidate, &pattern, Ratios { data: 1.0, metadata: 1.0 }, size, build, &costs);
        Ok(Row { losses: packed.losses, ..row })
    }

    /// Measures decoding by packfs, and by the kernel if it mounts for us.
    fn cost(
        &self,
        candidate: &Candidate,
        loaded: &Loaded,
        image: &Path,
        costs: &mut Costs,
        kernel_missing: &mut Option<String>,
        progress: &dyn Progress,
    ) -> Result<()> {
        costs.decoding.push(measure::decode(image, progress)?);
        let Some(memory) = &self.memory else { return Ok(()) };
        if !matches!(candidate.layout.format, "squashfs" | "erofs") {
            return Ok(());
        }
        match reading::by_kernel(image, &loaded.tree, candidate, memory.dir(), progress) {
            Ok(measured) => costs.measured.push(measured),
            Err(error) if error.kind() == packfs::ErrorKind::Cancelled => return Err(error),
            // This kernel may lack what another has: the forecast goes by packfs's own decoding
            // then.
            Err(error) => {
                kernel_missing.get_or_insert_with(|| format!("{candidate}: {error}"));
            }
        }
        Ok(())
    }

    fn row(
        &self,
        candidate: &Candidate,
        pattern: &Pattern,
        ratios: Ratios,
        size: Size,
        build: Build,
        costs: &Costs,
    ) -> Row {
        let kernel_measured = !costs.measured.is_empty();
        let cost: Cost = if kernel_measured {
            reading::cost_measured(&costs.measured)
        } else {
            reading::cost_guessed(candidate, &costs.decoding)
        };
        let cluster = u64::from(candidate.layout.block.unwrap_or(0));
        let scaling = Scaling { data: ratios.data, metadata: ratios.metadata, cluster };
        let mut device = Modelled::new(&self.question.device, self.kernel);
        let read = forecast::time::forecast(pattern, &scaling, &cost, &mut device);
        let decoded: u64 = costs.decoding.iter().map(|one| one.bytes).sum();
        let cpu: f64 = costs.decoding.iter().map(|one| one.cpu).sum();
        Row {
            candidate: candidate.clone(),
            size,
            build,
            read,
            decodes_mib_per_second: decoded as f64 / f64::from(1 << 20) / cpu.max(1e-6),
            kernel_measured,
            losses: Vec::new(),
            on_front: false,
        }
    }

    fn pattern(&self, image: &Path) -> Result<Pattern> {
        Pattern::of(&OpenOptions::new().jobs(1).open(image)?, &self.files)
    }
}
