//! Serving through io_uring (Linux 6.14 and later, if root has enabled it): each processor has a
//! queue for its requests.
//!
//! An answer and the wait for the next request are one system call. A serving thread runs on the
//! processor of its queue, so that neither the request nor the answer wakes another processor.
//! Requests that are not sent this way, such as `FORGET`, still come through `/dev/fuse`.

use super::ring::{Event, Ring};
use super::room::Room;
use super::serve::guarded;
use super::served::{Answer, AnswerBuffers, FollowUp, Served};
use super::stores::RandomRead;
use packfs_core::{Result, ResultExt};
use rustix::fd::AsFd;
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;

const PROCESSORS_MAX: u16 = 8192;

/// Sets up io_uring as a mount does, and ends it.
///
/// Errors: the kernel, or its administrator, does not permit it.
pub fn try_uring() -> io::Result<()> {
    Ring::new(File::open("/dev/null")?.into(), &[], 4096).map(drop)
}

pub(crate) struct Worker {
    ring: Ring,
    processor: Option<u16>,
}

impl Worker {
    /// Allocates all memory and rings, because the kernel blocks requests once io_uring was agreed
    /// on.
    ///
    /// Errors: as [`Ring::new`], and if the processors of this machine are unknown.
    pub(crate) fn all(device: impl AsFd, thread_count: usize, payload_len: usize) -> io::Result<Vec<Worker>> {
        let (possible, online) = (processors("possible")?, processors("online")?);
        // The kernel numbers queues without gaps.
        let queues: Vec<u16> = (0..u16::try_from(possible.len()).unwrap_or(PROCESSORS_MAX)).collect();
        let of_workers = queues_of_workers(&queues, &online, thread_count.max(1));
        of_workers
            .into_iter()
            .map(|queues| {
                let ring = Ring::new(fcntl_dupfd_cloexec(&device, 0)?, &queues, payload_len)?;
                let processor = queues.first().copied().filter(|_| online.len() <= thread_count);
                Ok(Worker { ring, processor })
            })
            .collect()
    }

    pub(crate) fn start(&mut self) -> io::Result<()> {
        if let Some(processor) = self.processor {
            let mut only = CpuSet::new();
            if usize::from(processor) < CpuSet::MAX_CPU {
                only.set(usize::from(processor));
                // Elsewhere it is slower; a cgroup may deny the processor.
                let _ = sched_setaffinity(None, &only);
            }
        }
        self.ring.start()
    }

    /// `stores` takes parts of files for the page cache.
    ///
    /// Errors: `Io` if the connection to the kernel fails.
    pub(crate) fn serve(
        mut self,
        served: &Served,
        requests: &AtomicU64,
        stores: &SyncSender<RandomRead>,
    ) -> Result<()> {
        let cannot = || "cannot exchange requests with the kernel";
        let mut buffers = AnswerBuffers::default();
        while let Event::Request(index) = self.ring.next().or_io(cannot)? {
            requests.fetch_add(1, Ordering::Relaxed);
            let busy = served.busy();
            let (unique, answer) = match self.ring.request(index) {
                Ok(request) => {
                    let mut room = Room::Fixed(&mut *request.payload);
                    let answer = guarded(served, &request.header, request.asked, &mut buffers, &mut room);
                    let answer = answer.and_then(|answer| len_of(&answer, &buffers, request.payload));
                    (request.header.unique, answer)
                }
                Err(error) => (0, Err(error)),
            };
            self.ring.answer(index, unique, answer).or_io(cannot)?;
            match buffers.after.take() {
                // Not here: it may wait for a page that the kernel requests from this thread.
                Some(FollowUp::Store(read)) => served.stores.hand_over(stores, read),
                Some(FollowUp::Prepare(id)) => {
                    self.ring.submit().or_io(cannot)?;
                    // A panic here only costs the optimization.
                    let _ = catch_unwind(AssertUnwindSafe(|| served.prepare(id)));
                }
                None => {}
            }
            drop(busy);
            buffers.tidy();
        }
        Ok(())
    }
}

fn len_of(answer: &Answer, buffers: &AnswerBuffers, payload: &mut [u8]) -> std::result::Result<usize, Errno> {
    match answer {
        Answer::Body => {
            let body = &buffers.body;
            payload.get_mut(..body.len()).ok_or(Errno::IO)?.copy_from_slice(body);
            Ok(body.len())
        }
        // Contents begin where the payload does.
        Answer::Contents(range) => Ok(range.end),
        // Requests without an answer do not come this way.
        Answer::None => Err(Errno::NOSYS),
    }
}

/// Queues of online processors are shared evenly; one queue has several workers if there are
/// enough. Others are almost never used.
fn queues_of_workers(queues: &[u16], online: &[u16], thread_count: usize) -> Vec<Vec<u16>> {
    let mut of_workers = vec![Vec::new(); thread_count];
    let online: Vec<u16> = queues.iter().copied().filter(|queue| online.contains(queue)).collect();
    for (worker, of_worker) in of_workers.iter_mut().enumerate().skip(online.len()) {
        of_worker.extend(online.get(worker % online.len().max(1)));
    }
    let offline = queues.iter().copied().filter(|queue| !online.contains(queue));
    for (index, queue) in online.iter().copied().chain(offline).enumerate() {
        of_workers[index % thread_count].push(queue);
    }
    of_workers
}

fn processors(state: &str) -> io::Result<Vec<u16>> {
    let text = std::fs::read_to_string(format!("/sys/devices/system/cpu/{state}"))?;
    parse_list(text.trim()).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// The format is such as `0-3,8`.
fn parse_list(text: &str) -> Option<Vec<u16>> {
    let mut all = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse::<u16>().ok()?, last.parse::<u16>().ok()?);
        if last >= PROCESSORS_MAX || first > last {
            return None;
        }
        all.extend(first..=last);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_processors_are_parsed() {
        assert_eq!(parse_list("0"), Some(vec![0]));
        assert_eq!(parse_list("0-2,5,7-8"), Some(vec![0, 1, 2, 5, 7, 8]));
        for wrong in ["", "x", "3-1", "0-99999", "0-8192", "1,,2"] {
            assert_eq!(parse_list(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn every_queue_has_a_worker() {
        for (possible, online, threads) in
            [(2, vec![0, 1], 4), (2, vec![0, 1], 1), (8, vec![0, 1, 6], 4), (4, vec![], 3), (1, vec![0], 256)]
        {
            let queues: Vec<u16> = (0..possible).collect();
            let of_workers = queues_of_workers(&queues, &online, threads);
            assert_eq!(of_workers.len(), threads);
            for queue in queues {
                let count = of_workers.iter().filter(|of_worker| of_worker.contains(&queue)).count();
                let expected = if online.contains(&queue) { (threads / online.len()).max(1) } else { 1 };
                assert!((expected..=expected + 1).contains(&count), "queue {queue} of {of_workers:?}");
            }
        }
    }

    #[test]
    fn threads_share_the_queues_of_the_processors_online() {
        assert_eq!(queues_of_workers(&[0, 1], &[0, 1], 4), [vec![0], vec![1], vec![0], vec![1]]);
        assert_eq!(queues_of_workers(&[0, 1, 2, 3], &[0, 2], 2), [vec![0, 1], vec![2, 3]]);
        assert_eq!(queues_of_workers(&[0, 1, 2], &[0, 1, 2], 2), [vec![0, 2], vec![1]]);
    }
}
