//! One session: each workload on each image, by all who can mount it in turn, each time mounted anew.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::case::MountCase;
use super::image::Images;
use super::memory_limit::MemoryLimit;
use super::readers::{PROGRAMS, Readers, TIME_MAX};
use super::summary::Summary;
use super::target::Opponent;
use super::workload::Sample;
use super::{cold, report};
use crate::bench::machine::{self, Machine};
use crate::bench::scratch::Scratch;
use crate::corpus::Counts;
use crate::failure::{Failure, Result};
use crate::load;
use crate::mounts::{Mounted, Mounter};
use crate::rivals::{self, ErofsFuse, Format, Packfs, Rival, SquashfuseLl, Task};

/// All that was measured of mounts, and with what.
#[derive(Default)]
pub struct Session {
    /// Where, when and how often: a line each.
    pub circumstances: Vec<String>,
    pub versions: Vec<(&'static str, String)>,
    pub outcomes: Vec<Outcome>,
    /// How memory was limited where it had to be equal, or why it was not.
    pub memory: String,
    /// What could not be measured, and why.
    pub failures: Vec<String>,
}

/// One workload on one image, measured.
pub struct Outcome {
    pub case: MountCase,
    /// None if packfs was left out, or could not do it.
    pub packfs: Option<Measured>,
    pub opponents: Vec<(Opponent, Measured)>,
}

/// One program's part.
pub struct Measured {
    pub name: &'static str,
    /// The kernel's way to get at the image.
    pub how: &'static str,
    pub command: String,
    pub samples: Vec<Sample>,
    pub summary: Summary,
}

/// Who takes part in a case.
struct Contestant<'a> {
    /// None for packfs itself.
    opponent: Option<Opponent>,
    mounter: Mounter<'a>,
    how: &'static str,
    samples: Vec<Sample>,
    /// Why it is out.
    failure: Option<Failure>,
}

/// FUSE programs; one that is missing says why.
struct Fuse {
    squashfuse_ll: Result<SquashfuseLl>,
    erofsfuse: Result<ErofsFuse>,
}

impl Fuse {
    fn of(&self, format: Format) -> std::result::Result<&dyn Rival, &Failure> {
        match format {
            Format::Squashfs => self.squashfuse_ll.as_ref().map(|program| program as &dyn Rival),
            Format::Erofs => self.erofsfuse.as_ref().map(|program| program as &dyn Rival),
        }
    }
}

/// What all cases have in common.
pub struct Bench<'a> {
    pub scratch: &'a Scratch,
    pub packfs: Option<&'a Packfs>,
    pub runs: usize,
    pub jobs: usize,
    pub corpora: Vec<(crate::corpus::Corpus, Counts)>,
}

impl Bench<'_> {
    pub fn run(&self, cases: &[MountCase]) -> Result<Session> {
        let fuse = Fuse { squashfuse_ll: SquashfuseLl::find(), erofsfuse: ErofsFuse::find() };
        let images = Images::new(self.jobs)?;
        let limit = cases.iter().any(|case| case.workload.is_of_large_file()).then(MemoryLimit::new);
        let memory = limit.as_ref().map_or_else(|| "not limited".to_owned(), memory);
        let mut session = Session { memory, ..Session::default() };
        let load_before = machine::load();
        let limit = limit.and_then(Result::ok);
        // One image after the other: copying them is not free.
        for case in in_order_of_images(cases) {
            let contestants = self.contestants(&fuse, &case, &mut session);
            let outcome = images.provide(&case, self.scratch).and_then(|image| {
                let one = One { bench: self, case: &case, image: &image, limit: limit.as_ref() };
                one.run(contestants, &mut session.failures)
            });
            match outcome {
                Ok(outcome) => {
                    eprintln!("{}", report::line(&outcome));
                    session.outcomes.push(outcome);
                }
                Err(failure) => session.failures.push(format!("{}: {failure}", case.label())),
            }
        }
        session.versions = self.versions(&fuse, &images, cases);
        session.circumstances = self.circumstances(&load_before);
        Ok(session)
    }

    fn contestants<'b>(
        &'b self,
        fuse: &'b Fuse,
        case: &MountCase,
        session: &mut Session,
    ) -> Vec<Contestant<'b>> {
        let contestant =
            |opponent, mounter| Contestant { opponent, mounter, how: "", samples: vec![], failure: None };
        let mut all = vec![];
        match fuse.of(case.format) {
            Ok(program) => all.push(contestant(Some(Opponent::Fuse), Mounter::Program(program))),
            Err(failure) => session.failures.push(format!("{}: {failure}", case.label())),
        }
        all.extend(self.packfs.map(|packfs| contestant(None, Mounter::Program(packfs))));
        all.push(contestant(Some(Opponent::Kernel), Mounter::Kernel));
        all
    }

    fn circumstances(&self, load_before: &str) -> Vec<String> {
        let machine = Machine::here();
        let Machine { facts, date, commit } = &machine;
        let (hardware, system, kernel) = (machine.hardware(), &facts.system, &facts.kernel);
        vec![
            format!("Measured {date} at commit {commit} on {hardware}; {system}, {kernel}"),
            format!("Load average before and after: {load_before}, {}", machine::load()),
            format!("Images on {}", self.scratch.description),
            format!("Medians of {} runs in turn after one to warm up; ratios are packfs to rival", self.runs),
        ]
    }

    fn versions(&self, fuse: &Fuse, images: &Images, cases: &[MountCase]) -> Vec<(&'static str, String)> {
        let mut programs: Vec<&dyn Rival> = vec![];
        for format in Format::ALL.into_iter().filter(|format| cases.iter().any(|case| case.format == *format))
        {
            programs.push(images.packer(format));
            programs.extend(fuse.of(format));
        }
        programs.extend(self.packfs.map(|packfs| packfs as &dyn Rival));
        let versions = programs.into_iter().map(|program| (program.name(), program.version().to_owned()));
        versions.chain([(Mounter::Kernel.name(), Mounter::Kernel.version())]).collect()
    }
}

fn memory(limit: &Result<MemoryLimit>) -> String {
    match limit {
        Ok(_) => {
            let mebibytes = super::memory_limit::LEN_MAX >> 20;
            format!(
                "{mebibytes} MiB for program, readers and page cache together where one large file is read"
            )
        }
        Err(failure) => format!("not limited: {failure}"),
    }
}

/// Cases of one image stand together, images in the order of their first case.
fn in_order_of_images(cases: &[MountCase]) -> Vec<MountCase> {
    let image = |case: &MountCase| {
        let codec = case.codec.label();
        (case.format.name(), codec, case.block_len, case.workload.corpus().name())
    };
    let mut order = HashMap::new();
    for (index, case) in cases.iter().enumerate() {
        order.entry(image(case)).or_insert(index);
    }
    let mut cases = cases.to_vec();
    cases.sort_by_key(|case| order.get(&image(case)).copied());
    cases
}

/// One case about to be measured.
struct One<'a> {
    bench: &'a Bench<'a>,
    case: &'a MountCase,
    image: &'a Path,
    limit: Option<&'a MemoryLimit>,
}

impl One<'_> {
    /// The first round warms programs up and is not counted. Who fails is out, and said to be.
    fn run(&self, mut contestants: Vec<Contestant<'_>>, failures: &mut Vec<String>) -> Result<Outcome> {
        let mut seen = None;
        for round in 0..=self.bench.runs {
            for contestant in contestants.iter_mut().filter(|contestant| contestant.failure.is_none()) {
                let sampled = self.sample(contestant, round == 0);
                match sampled.and_then(|sample| self.check_same(&mut seen, sample)) {
                    Ok(sample) if round > 0 => contestant.samples.push(sample),
                    Ok(_) => {}
                    Err(failure) => contestant.failure = Some(failure),
                }
            }
        }
        let mut outcome = Outcome { case: *self.case, packfs: None, opponents: vec![] };
        for contestant in contestants {
            if let Some(failure) = &contestant.failure {
                failures.push(format!("{} by {}: {failure}", self.case.label(), contestant.mounter.name()));
                continue;
            }
            let opponent = contestant.opponent;
            let measured = self.measured(contestant)?;
            match opponent {
                None => outcome.packfs = Some(measured),
                Some(opponent) => outcome.opponents.push((opponent, measured)),
            }
        }
        if outcome.packfs.is_none() && outcome.opponents.is_empty() {
            return Err(Failure::new("nobody could do it"));
        }
        Ok(outcome)
    }

    fn sample(&self, contestant: &mut Contestant<'_>, is_first: bool) -> Result<Sample> {
        if !self.bench.scratch.is_memory {
            cold::drop_caches()?;
        }
        let dir = self.dir();
        let mounted = Mounted::new(contestant.mounter, self.case.format, self.image, &dir)?;
        contestant.how = mounted.how;
        if !self.bench.scratch.is_memory {
            cold::load_programs(mounted.process(), &PROGRAMS);
        }
        let limit = self.limit.filter(|_| self.case.workload.is_of_large_file());
        if let (Some(limit), Some(process)) = (limit, mounted.process()) {
            limit.add(process)?;
        }
        let source = self.case.workload.corpus().path();
        let readers = Readers { dir: &dir, source, limit, log: self.bench.scratch.path("readers.log") };
        let mut sample = mounted.watched(TIME_MAX, || readers.perform(self.case.workload))?;
        if is_first {
            self.check_complete(&dir)?;
        }
        if let Some(served) = mounted.unmount()? {
            sample.daemon_cpu = Some(served.cpu);
            sample.memory_peak = Some(served.memory_peak);
        }
        Ok(sample)
    }

    /// A time means nothing if names are missing.
    fn check_complete(&self, dir: &Path) -> Result<()> {
        let corpus = self.case.workload.corpus();
        let wanted = self.bench.corpora.iter().find(|(known, _)| *known == corpus);
        let (found, wanted) = (load::count_names(dir)?, wanted.map_or(0, |(_, counts)| counts.entries));
        if found == wanted {
            return Ok(());
        }
        Err(Failure::new(format!("shows {found} names instead of {wanted}")))
    }

    /// All have to read as much as the first did, where all is read.
    fn check_same(&self, seen: &mut Option<(u64, u64)>, sample: Sample) -> Result<Sample> {
        let done = (sample.operations, sample.bytes);
        if self.case.workload.is_of_large_file() || *seen.get_or_insert(done) == done {
            return Ok(sample);
        }
        Err(Failure::new(format!("files and bytes read: {done:?} instead of {seen:?}")))
    }

    fn measured(&self, contestant: Contestant<'_>) -> Result<Measured> {
        let Contestant { mounter, how, samples, .. } = contestant;
        let summary = Summary::of(&samples, self.case.workload.figure())
            .ok_or_else(|| Failure::new("nothing was measured"))?;
        Ok(Measured { name: mounter.name(), how, command: self.spelled(mounter, how), samples, summary })
    }

    /// How it was mounted, as one would type it.
    fn spelled(&self, mounter: Mounter<'_>, how: &str) -> String {
        let (image, dir) = (self.image.to_owned(), self.dir());
        let spelled = match mounter {
            Mounter::Program(program) => {
                let command = program.command(&Task::Mount { image, dir }).unwrap_or_default();
                rivals::spelled(&command)
            }
            Mounter::Kernel => {
                let options = if how == "loop" { "loop,ro" } else { "ro" };
                let (format, image) = (self.case.format.name(), image.display());
                format!("mount -t {format} -o {options} {image} {}", dir.display())
            }
        };
        spelled.replace(&self.bench.scratch.dir.display().to_string(), "SCRATCH")
    }

    fn dir(&self) -> PathBuf {
        self.bench.scratch.path("mnt")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::read::case::select;
    use crate::bench::read::workload::Workload;

    #[test]
    fn keeps_cases_of_one_image_together() {
        let works = ["mount-random4k", "mount-sequential", "mount-tar"].map(str::to_owned);
        let cases = select(&works, &["erofs".to_owned()], &[]).unwrap().mount;
        let sorted = in_order_of_images(&cases);
        let corpora: Vec<_> = sorted.iter().map(|case| (case.codec.name, case.workload)).collect();
        let wanted = ["lz4hc", "zstd"].map(|codec| {
            [Workload::Tar, Workload::Random4k, Workload::Sequential].map(|workload| (codec, workload))
        });
        assert_eq!(corpora, wanted.concat());
    }
}
