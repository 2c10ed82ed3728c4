//! Advice: which format, codec and block size for a tree on a device, as a command to run.
//!
//! In this order: `candidates` lists what is worth a look and can be mounted; the whole tree is
//! packed once in each layout with a quick codec; `sample` takes parts that stand for the whole;
//! `measure` packs and decodes them with each candidate, and `reading` has the kernel read them;
//! `forecast` says what that means for the whole, on the device; `choice` picks, and `answer` says
//! so. `check` makes the images and reads them, to hold the forecast against.
//!
//! Owns no program and no format. Choices are the same for the same seed; times are measured on
//! this machine, and so may choose otherwise on another.

mod answer;
mod bench;
mod candidate_row;
mod candidates;
mod check;
mod choice;
mod forecast;
mod kernels;
mod limit;
mod measure;
mod mounted;
mod question;
mod reading;
mod row;
mod sample;
mod scratch;
mod want;
mod words;

pub use answer::{Answer, Extent, Processor};
pub use candidates::{Candidate, Layout, LeftOut};
pub use check::Truth;
pub use forecast::build::Build;
pub use forecast::size::Size;
pub use forecast::time::ReadTime;
pub use kernels::Kernel;
pub use question::Question;
pub use row::Row;
pub use want::Want;

use bench::Bench;
use packfs::source::{Loaded, Shape};
use packfs::{Error, Progress, Result, Source};
use std::sync::Arc;
use std::time::Instant;

/// Answers a question.
///
/// Errors: `Usage` for a format that there is not or a kernel that mounts none; `Failed` for a tree
/// without a byte that can be read; `TooLarge` if no image fits; those of reading the tree and of
/// writing to the scratch folder; `Cancelled`.
pub fn advise(question: &Question, progress: &dyn Progress) -> Result<Answer> {
    let start = Instant::now();
    let kernel = question.kernel.map_or_else(Kernel::running, Ok)?;
    let assumed = question.kernel.is_none();
    let (candidates, mut left_out) =
        candidates::candidates(question.want, &question.formats, kernel, question.quick)?;
    if candidates.is_empty() {
        let reasons: Vec<String> = left_out.iter().map(|left| left.reason.clone()).collect();
        let why = reasons.join("; ");
        let error = Error::usage(format!("Linux {kernel} mounts nothing that could be made: {why}"));
        let hint = "it runs here and is assumed; --kernel VERSION names the one that is to mount the image";
        return Err(if assumed { error.hint(hint) } else { error });
    }
    progress.part(&format!("looking through {:?}", question.tree));
    let shape = Shape { keep_going: true, ..Shape::default() };
    let loaded = Arc::new(Source::detect(&question.tree)?.load(&shape, progress)?);
    if loaded.tree.bytes_total() == 0 {
        return Err(nothing_to_pack(question, &loaded));
    }
    let lab = Bench::new(question, kernel, &loaded)?;
    let mut rows = Vec::new();
    let mut kernel_missing = None;
    let mut layouts: Vec<Layout> = candidates.iter().map(|candidate| candidate.layout).collect();
    layouts.dedup();
    let mut done: Vec<Layout> = Vec::new();
    for layout in layouts {
        if done.contains(&layout) {
            continue;
        }
        done.push(layout);
        let of_layout: Vec<&Candidate> = candidates.iter().filter(|it| it.layout == layout).collect();
        let mut parts = Parts { progress, done: rows.len(), total: candidates.len() };
        rows.extend(lab.layout(&of_layout, &mut kernel_missing, &mut parts)?);
    }
    if let Some(most) = question.max_size {
        left_out.extend(limit::keep_those_that_fit(most, &mut rows)?);
    }
    let order = choice::rank(question.want, &rows);
    let front = choice::front(&rows);
    rows.iter_mut().zip(front).for_each(|(row, on_front)| row.on_front = on_front);
    let reasons = choice::reasons(question.want, &question.device_name, &rows, &order);
    let rows: Vec<Row> = order.into_iter().map(|index| rows[index].clone()).collect();
    let truth = if question.check { check::check(&lab, &rows, progress)? } else { Vec::new() };
    let notes = lab.notes(&rows, kernel_missing);
    let facts = packfs_host::Facts::look_up();
    Ok(Answer {
        command: lab.command(&rows[0]),
        want: question.want,
        device: question.device_name.clone(),
        device_title: question.device.title.clone(),
        kernel: kernel.to_string(),
        kernel_assumed: assumed,
        processor: Processor { name: facts.processor, count: facts.processor_count, jobs: lab.jobs },
        workload: question.want.workload_words(lab.files.len(), lab.trace.is_some()),
        looked: lab.looked(),
        rows,
        reasons,
        left_out,
        notes,
        truth,
        took: start.elapsed().as_secs_f64(),
    })
}

/// Announcement of each candidate before it is measured.
struct Parts<'a> {
    progress: &'a dyn Progress,
    done: usize,
    total: usize,
}

impl Parts<'_> {
    fn next(&mut self, candidate: &Candidate) {
        self.done += 1;
        self.progress.part(&format!("{} of {}: {candidate}", self.done, self.total));
    }
}

/// Why a tree without a byte is not answered for.
fn nothing_to_pack(question: &Question, loaded: &Loaded) -> Error {
    let tree = &question.tree;
    match &loaded.notes.unreadable[..] {
        [] => {
            let message = format!("{tree:?} holds no file with a byte in it: every image of it is as good");
            Error::failed(message).hint("any format packs it: packfs pack DIR IMAGE")
        }
        all @ [first, ..] => {
            let count = all.len();
            let message = format!("nothing in {tree:?} can be read: {count} left out, the first: {first}");
            Error::failed(message).hint("run packfs as a user who may read these files")
        }
    }
}

#[cfg(test)]
mod tests;
