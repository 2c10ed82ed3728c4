//! When a device would have answered: pure arithmetic over the figures, the requests before, and
//! the time that the caller tells.
//!
//! A request goes through the limits, waits for a channel, takes the channel for its latency, and
//! shares the transfer with all others. What moves ([`heads`]) seeks, waits for the medium to turn,
//! and reads ahead; a cache ([`write_back`]) takes writes that the medium does later, while nothing
//! is read.

mod heads;
mod limit;
mod statistics;
mod streams;
mod write_back;

#[cfg(test)]
mod tests;

use crate::spec::{Access, DeviceSpec, Order};
use crate::units::Nanos;
use heads::Heads;
use limit::Limit;
use packfs_host::Random;
pub use statistics::Statistics;
use std::collections::HashMap;
use streams::Streams;
use write_back::WriteBack;

/// Kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Bytes of it.
    Read,
    /// To take bytes.
    Write,
    /// To have all it took where it stays.
    Flush,
    /// To forget bytes.
    Discard,
}

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Kind of the request.
    pub operation: Operation,
    /// First byte.
    pub offset: u64,
    /// Length in bytes.
    pub len: u64,
}

/// Names a request until it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket(u64);

/// Knowledge of a request's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// It ends then. The ticket means nothing any more.
    At(Nanos),
    /// The device has not taken it yet; it is worth asking again then.
    NotBefore(Nanos),
}

/// Requests that a device with a queue of its own passes over are taken first after so long.
const AGE_MAX: Nanos = 1_000_000_000;

/// A device at work.
pub struct Model {
    spec: DeviceSpec,
    random: Random,
    iops: Option<Limit>,
    rate: Option<Limit>,
    channels: Vec<Nanos>,
    transferred: Nanos,
    heads: Heads,
    reads: Streams,
    writes: Streams,
    write_back: WriteBack,
    /// Requests that the device has not taken yet, oldest first.
    waiting: Vec<Waiting>,
    /// Ends of requests that it has taken, until they are looked up.
    taken: HashMap<Ticket, Nanos>,
    next: u64,
    statistics: Statistics,
}

struct Waiting {
    ticket: Ticket,
    request: Request,
    since: Nanos,
}

impl Model {
    /// A device that was idle for long.
    pub fn new(spec: &DeviceSpec) -> Self {
        Model {
            random: Random(u64::from(spec.seed)),
            iops: spec.limits.iops.map(|iops| Limit::new(f64::from(iops))),
            rate: spec.limits.rate.map(|rate| Limit::new(rate as f64)),
            channels: vec![0; spec.queue.channels as usize],
            transferred: 0,
            heads: Heads::default(),
            reads: Streams::default(),
            writes: Streams::default(),
            write_back: WriteBack::default(),
            waiting: Vec::new(),
            taken: HashMap::new(),
            next: 0,
            statistics: Statistics::default(),
            spec: spec.clone(),
        }
    }

    /// The figures.
    pub fn spec(&self) -> &DeviceSpec {
        &self.spec
    }

    /// Returns the counts so far.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// Takes a request that arrives `now`. Times of successive calls may go back a little, as
    /// clocks of several threads do.
    pub fn submit(&mut self, now: Nanos, request: Request) -> Ticket {
        let ticket = Ticket(self.next);
        self.next += 1;
        self.statistics.count(&request);
        let start = self.admit(now, &request);
        let moves = self.spec.seek.is_some() && !self.is_cached(&request);
        if self.spec.queue.order == Order::Nearest && moves && request.operation != Operation::Flush {
            self.waiting.push(Waiting { ticket, request, since: start });
            self.take(now);
        } else {
            let end = self.serve(start, &request);
            self.taken.insert(ticket, end);
        }
        ticket
    }

    /// When a request ends, as far as is known `now`.
    pub fn due(&mut self, now: Nanos, ticket: Ticket) -> Due {
        self.take(now);
        match self.taken.remove(&ticket) {
            Some(end) => Due::At(end),
            None => {
                let first = self.waiting.iter().map(|waiting| waiting.since).min().unwrap_or(0);
                Due::NotBefore(self.channels[0].max(first).max(now + 1))
            }
        }
    }

    /// Has the device choose, as often as it becomes free until `now`.
    fn take(&mut self, now: Nanos) {
        while let Some(first) = self.waiting.iter().map(|waiting| waiting.since).min() {
            let start = self.channels[0].max(first);
            if start > now {
                return;
            }
            let chosen = self.nearest(start);
            let waiting = self.waiting.remove(chosen);
            let end = self.serve(start.max(waiting.since), &waiting.request);
            self.taken.insert(waiting.ticket, end);
        }
    }

    /// Returns the place of the nearest request that waits at `start`.
    fn nearest(&self, start: Nanos) -> usize {
        let seen = self.waiting.iter().enumerate().take(self.spec.queue.depth as usize);
        let ready = seen.filter(|(_, waiting)| waiting.since <= start);
        let key = |(_, waiting): &(usize, &Waiting)| {
            let is_old = start - waiting.since > AGE_MAX;
            (!is_old, if is_old { waiting.since } else { self.heads.distance(waiting.request.offset) })
        };
        // One is ready at least, unless it lies behind the depth of the queue: then it is the
        // oldest's turn.
        ready.min_by_key(key).map_or(0, |(index, _)| index)
    }

    fn admit(&mut self, now: Nanos, request: &Request) -> Nanos {
        let mut start = now;
        let transfers = matches!(request.operation, Operation::Read | Operation::Write);
        if let Some(iops) = self.iops.as_mut() {
            let unit = self.spec.limits.iops_unit;
            let counts = if unit > 0 && transfers { request.len.div_ceil(unit).max(1) } else { 1 };
            start = start.max(iops.admit(now, counts));
        }
        if let (Some(rate), true) = (self.rate.as_mut(), transfers) {
            start = start.max(rate.admit(now, request.len));
        }
        start
    }

    fn is_cached(&self, request: &Request) -> bool {
        request.operation == Operation::Write && self.spec.write_cache() > 0
    }

    fn serve(&mut self, start: Nanos, request: &Request) -> Nanos {
        match request.operation {
            Operation::Read => {
                let access = self.spec.read.clone();
                self.access(start, request, &access)
            }
            Operation::Write => match self.spec.write.clone() {
                Some(access) if self.spec.write_cache() > 0 => self.write_cached(start, request, &access),
                Some(access) => self.access(start, request, &access),
                None => start,
            },
            Operation::Flush if self.spec.write_cache() > 0 => {
                let idle = self.idle().max(start);
                let end = self.write_back.empty(idle) + self.write_time(|write| write.flush);
                self.channels[0] = end;
                end
            }
            Operation::Flush => self.occupy(start, self.write_time(|write| write.flush)).1,
            Operation::Discard => self.occupy(start, self.write_time(|write| write.discard)).1,
        }
    }

    fn write_time(&self, of: fn(&Access) -> Nanos) -> Nanos {
        self.spec.write.as_ref().map_or(0, of)
    }

    fn access(&mut self, start: Nanos, request: &Request, access: &Access) -> Nanos {
        if self.spec.seek.is_some() {
            let channel = self.free_channel();
            let begin = self.channels[channel].max(start);
            // What the cache holds is written while the medium has nothing else to do.
            self.write_back.work(self.channels[channel], begin);
            let told = begin + self.spec.bus.overhead;
            let end = self.heads.access(told, request, access, &self.spec, &mut self.random);
            self.channels[channel] = end;
            let streams =
                if request.operation == Operation::Read { &mut self.reads } else { &mut self.writes };
            streams.follows(request);
            // From the drive to us, while the medium turns.
            end.max(self.transfer(begin, request.len, self.spec.bus.rate as f64))
        } else {
            let streams =
                if request.operation == Operation::Read { &mut self.reads } else { &mut self.writes };
            let latency = if streams.follows(request) { access.sequential_latency() } else { access.latency };
            let latency = self.random.vary(latency, self.spec.jitter);
            let rate = access.rate_at(self.part(request.offset)).min(self.spec.bus.rate as f64);
            let (channel, ready) = self.occupy(start, latency);
            let alone = ready + self.spec.bus.overhead + span(request.len, rate);
            let end = alone.max(self.transfer(start, request.len, rate));
            self.channels[channel] = end;
            end
        }
    }

    fn write_cached(&mut self, start: Nanos, request: &Request, access: &Access) -> Nanos {
        let idle = self.idle();
        self.write_back.work(idle, start);
        let follows = self.writes.follows(request);
        let rate = access.rate_at(self.part(request.offset));
        let mut work = span(request.len, rate);
        if !follows {
            let latency = access.latency;
            let moving = self.spec.seek.as_ref().map_or(0, |seek| {
                // A drive writes what it holds in the order of the medium: the more there is, the
                // shorter the ways.
                let distance =
                    self.write_back.distance(request.offset) / self.write_back.requests(request.len);
                seek.time(distance / self.spec.medium.capacity as f64) + self.random.below(seek.rotation)
            });
            work += self.random.vary(latency, self.spec.jitter) + moving;
        }
        let taken = self.transfer(start, request.len, self.spec.bus.rate as f64);
        let room = self.write_back.room(start, idle, request.len, self.spec.write_cache());
        self.write_back.add(request, work);
        taken.max(room)
    }

    /// Takes the first channel that is free for a while; which, and when that ends.
    fn occupy(&mut self, start: Nanos, time: Nanos) -> (usize, Nanos) {
        let channel = self.free_channel();
        let end = self.channels[channel].max(start) + time;
        self.channels[channel] = end;
        (channel, end)
    }

    fn idle(&self) -> Nanos {
        self.channels.iter().copied().max().unwrap_or(0)
    }

    fn free_channel(&self) -> usize {
        self.channels.iter().enumerate().min_by_key(|(_, free)| **free).map_or(0, |(index, _)| index)
    }

    /// Shares the way to us with all that was transferred before; when its part is done.
    fn transfer(&mut self, start: Nanos, len: u64, rate: f64) -> Nanos {
        self.transferred = self.transferred.max(start) + self.spec.bus.overhead + span(len, rate);
        self.transferred
    }

    fn part(&self, offset: u64) -> f64 {
        offset as f64 / self.spec.medium.capacity as f64
    }
}

fn span(len: u64, rate: f64) -> Nanos {
    (len as f64 * 1e9 / rate) as Nanos
}
