//! Threads that decode blocks before they are wanted.
//!
//! Threads start when there is work for the first time, so a process that forks after opening an
//! image loses none. Invariant: the queue is bounded, and blocks that are not reached in time are
//! dropped, because their reader decodes them itself. Threads end with the engine.

use crate::blocks::{Blocks, WantedBlock};
use crate::neighbours::Neighbours;
use packfs_codec::Decoders;
use packfs_format::Volume;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Most runs of blocks in the queue; more would not be reached in time.
const WAITING_MAX: usize = 256;

pub(crate) struct Prefetch {
    blocks: Arc<Blocks>,
    thread_count: usize,
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    added: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Task>,
    /// Number of idle threads: only these need to be woken.
    asleep: usize,
    closed: bool,
}

enum Task {
    Decode(Vec<WantedBlock>),
    Learn(Arc<Neighbours>, Arc<dyn Volume>),
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self) -> Option<Task> {
        let mut queue = self.lock();
        loop {
            if queue.closed {
                return None;
            }
            if let Some(task) = queue.waiting.pop_front() {
                return Some(task);
            }
            queue.asleep += 1;
            queue = self.added.wait(queue).unwrap_or_else(PoisonError::into_inner);
            queue.asleep -= 1;
        }
    }
}

impl Prefetch {
    /// Decodes nothing ahead if `thread_count` is 0.
    pub(crate) fn new(blocks: Arc<Blocks>, thread_count: usize) -> Self {
        Prefetch { blocks, thread_count, shared: Arc::default(), threads: Mutex::default() }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.thread_count > 0
    }

    pub(crate) fn add(&self, run: Vec<WantedBlock>) {
        if !run.is_empty() {
            self.push(Task::Decode(run));
        }
    }

    pub(crate) fn learn(&self, neighbours: &Arc<Neighbours>, volume: &Arc<dyn Volume>) {
        self.push(Task::Learn(Arc::clone(neighbours), Arc::clone(volume)));
    }

    fn push(&self, task: Task) {
        if !self.is_on() {
            return;
        }
        let mut queue = self.shared.lock();
        queue.waiting.push_back(task);
        if queue.waiting.len() > WAITING_MAX {
            queue.waiting.pop_front();
        }
        let is_awaited = queue.asleep > 0;
        drop(queue);
        if is_awaited {
            self.shared.added.notify_one();
        }
        self.start();
    }

    /// If no thread can be started, nothing is decoded ahead.
    fn start(&self) {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        while threads.len() < self.thread_count {
            let (blocks, shared) = (Arc::clone(&self.blocks), Arc::clone(&self.shared));
            let work = move || {
                let mut decoders = Decoders::new();
                while let Some(task) = shared.next() {
                    match task {
                        Task::Decode(run) => blocks.decode_ahead(&run, &mut decoders),
                        Task::Learn(neighbours, volume) => {
                            neighbours.learn(&*volume, &|| shared.lock().closed);
                        }
                    }
                }
            };
            match std::thread::Builder::new().name("packfs-ahead".into()).spawn(work) {
                Ok(thread) => threads.push(thread),
                Err(_) => return,
            }
        }
    }
}

impl Drop for Prefetch {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.added.notify_all();
        let threads = self.threads.get_mut().unwrap_or_else(PoisonError::into_inner);
        for thread in threads.drain(..) {
            // A panic there has released all waiting threads; the error has no receiver left.
            let _ = thread.join();
        }
    }
}
