//! Figures that follow from a device's description, where it does not state them itself.

use crate::spec::{Access, DeviceSpec, Order};

/// Length of random requests, and what sequential ones are sent in, in bytes.
const BLOCK: u64 = 4096;
const PIECE: u64 = 1 << 20;

/// See the module. Rates are bytes per second, times nanoseconds.
pub(super) struct Expected<'a> {
    spec: &'a DeviceSpec,
}

impl<'a> Expected<'a> {
    pub(super) fn of(spec: &'a DeviceSpec) -> Self {
        Expected { spec }
    }

    /// Returns the rate behind `part` of the medium.
    pub(super) fn read_rate(&self, part: f64) -> f64 {
        let stated = self.spec.stated.read_rate.filter(|_| part == 0.0);
        stated.unwrap_or_else(|| self.rate(&self.spec.read, part))
    }

    /// `None` if it cannot be written.
    pub(super) fn write_rate(&self, part: f64) -> Option<f64> {
        let access = self.spec.write.as_ref()?;
        let stated = self.spec.stated.write_rate.filter(|_| part == 0.0);
        Some(stated.unwrap_or_else(|| self.rate(access, part)))
    }

    fn rate(&self, access: &Access, part: f64) -> f64 {
        access.rate_at(part).min(self.spec.bus.rate as f64).min(self.limit(PIECE) * PIECE as f64)
    }

    /// Returns the reads or writes of this length that the limits let through a second, each sent
    /// in as few requests as the kernel may.
    fn limit(&self, len: u64) -> f64 {
        let limits = &self.spec.limits;
        let counts = |request: u64| if limits.iops_unit > 0 { request.div_ceil(limits.iops_unit) } else { 1 };
        let longest = u64::from(self.spec.queue.request_kib_max) << 10;
        let rest = Some(len % longest).filter(|rest| *rest > 0);
        let counted = len / longest * counts(longest) + rest.map_or(0, counts);
        let by_count = limits.iops.map_or(f64::MAX, |iops| f64::from(iops) / counted as f64);
        limits.rate.map_or(by_count, |rate| by_count.min(rate as f64 / len as f64))
    }

    /// Random reads of 4 KiB per second; `None` where the device's own order decides.
    pub(super) fn read_iops(&self, depth: usize) -> Option<f64> {
        let stated = &self.spec.stated;
        let stated = if depth == 1 { stated.read_iops_1 } else { stated.read_iops_32 };
        stated.or_else(|| self.iops(&self.spec.read, depth))
    }

    /// The same of writes; `None` where a cache decides, too.
    pub(super) fn write_iops(&self, depth: usize) -> Option<f64> {
        let stated = &self.spec.stated;
        let stated = if depth == 1 { stated.write_iops_1 } else { stated.write_iops_32 };
        let access = self.spec.write.as_ref().filter(|_| self.spec.write_cache() == 0);
        stated.or_else(|| self.iops(access?, depth))
    }

    fn iops(&self, access: &Access, depth: usize) -> Option<f64> {
        let one = self.access(access, self.spec.seek.as_ref().map_or(0, |seek| seek.average));
        let limit = self.limit(BLOCK);
        if depth == 1 {
            return Some((1e9 / one).min(limit));
        }
        if self.spec.queue.order == Order::Nearest {
            return None;
        }
        let channels = f64::from(self.spec.queue.channels.min(depth as u32));
        Some((channels * 1e9 / one).min(1e9 / self.transfer(access)).min(limit))
    }

    /// Nanoseconds from one read of 4 KiB to the next, each after a seek that takes so long,
    /// somewhere on the medium.
    pub(super) fn seek_and_read(&self, seek: u64) -> f64 {
        self.access(&self.spec.read, seek).max(1e9 / self.limit(BLOCK))
    }

    /// Returns the time of 4 KiB where no limit holds them up.
    fn access(&self, access: &Access, seek: u64) -> f64 {
        let rotation = self.spec.seek.as_ref().map_or(0, |seek| seek.rotation);
        (access.latency + seek + rotation / 2) as f64 + self.transfer(access)
    }

    fn transfer(&self, access: &Access) -> f64 {
        let rate = access.rate_at(0.5).min(self.spec.bus.rate as f64);
        self.spec.bus.overhead as f64 + BLOCK as f64 * 1e9 / rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Due, Model, Operation, Request};

    const FAST: &str = "name = \"fast\"\ntitle = \"for tests\"\n[medium]\ncapacity_mib = 1024\nblock_bytes = 512\n[queue]\n\
                        depth = 4\nchannels = 4\nread_ahead_kib = 128\nmax_request_kib = 384\n[bus]\nmb_per_s = 1000\n\
                        [read]\nlatency_us = 50\nsequential_latency_us = 0\nmb_per_s = 1000\n\
                        [write]\nlatency_us = 200\nmb_per_s = 500\n";
    const SEEK: &str = "[seek]\ntrack_to_track_ms = 1\naverage_ms = 8\nfull_stroke_ms = 16\nrpm = 6000\n";

    fn device(more: &str) -> DeviceSpec {
        DeviceSpec::parse(&format!("{FAST}{more}"), "test").unwrap()
    }

    /// Returns the number of these requests, each a place and a length, that the model answers a
    /// second, one after the other.
    fn per_second(spec: &DeviceSpec, operation: Operation, requests: &[(u64, u64)]) -> f64 {
        let mut model = Model::new(spec);
        let mut now = 0;
        for &(offset, len) in requests {
            let ticket = model.submit(now, Request { operation, offset, len });
            now = loop {
                match model.due(now, ticket) {
                    Due::At(end) => break end,
                    Due::NotBefore(time) => now = time,
                }
            };
        }
        requests.len() as f64 * 1e9 / now as f64
    }

    fn random(spec: &DeviceSpec, operation: Operation) -> f64 {
        let blocks = spec.medium.capacity / BLOCK;
        let requests: Vec<_> =
            (0..4000).map(|index| (packfs_host::mix(index) % blocks * BLOCK, BLOCK)).collect();
        per_second(spec, operation, &requests)
    }

    #[track_caller]
    fn assert_near(expected: f64, found: f64) {
        assert!((expected / found - 1.0).abs() < 0.06, "expected {expected:.1}, found {found:.1}");
    }

    #[test]
    fn writes_of_what_moves_take_their_own_latency() {
        let spec = device(SEEK);
        let expected = Expected::of(&spec);
        assert_near(expected.read_iops(1).unwrap(), random(&spec, Operation::Read));
        let slow = DeviceSpec::parse(&format!("{FAST}{SEEK}").replace("= 200", "= 9000"), "test").unwrap();
        let expected = Expected::of(&slow);
        assert_near(expected.write_iops(1).unwrap(), random(&slow, Operation::Write));
        assert!(expected.write_iops(1).unwrap() < expected.read_iops(1).unwrap() * 0.7);
    }

    #[test]
    fn a_request_counts_as_often_as_its_length_has_units() {
        for (unit, iops) in [(0, 1000.0), (1, 250.0), (2, 500.0), (4, 1000.0), (16, 1000.0)] {
            let spec = device(&format!("[limits]\niops = 1000\niops_unit_kib = {unit}\n"));
            let expected = Expected::of(&spec);
            assert_near(expected.read_iops(1).unwrap(), iops);
            assert_near(expected.read_iops(32).unwrap(), iops);
            assert_near(expected.write_iops(32).unwrap(), iops);
            assert_near(iops, random(&spec, Operation::Read));
        }
    }

    #[test]
    fn a_limit_of_requests_holds_rates_too() {
        // A piece is sent as 384 + 384 + 256 KiB.
        for (unit, pieces) in [(0, 300.0 / 3.0), (16, 300.0 / 64.0), (256, 300.0 / 5.0)] {
            let spec = device(&format!("[limits]\niops = 300\niops_unit_kib = {unit}\n"));
            let expected = Expected::of(&spec).read_rate(0.0);
            assert_near(expected, pieces * PIECE as f64);
            let sent = [(0, 384), (384, 384), (768, 256)].map(|(start, len)| (start << 10, len << 10));
            let requests: Vec<_> =
                (0..200).flat_map(|piece| sent.map(|(start, len)| (piece * PIECE + start, len))).collect();
            let found = per_second(&spec, Operation::Read, &requests) / sent.len() as f64 * PIECE as f64;
            assert_near(expected, found);
        }
    }

    #[test]
    fn a_limit_of_bytes_holds_random_requests_too() {
        let spec = device("[limits]\nmb_per_s = 1\n");
        let expected = Expected::of(&spec);
        assert_near(expected.read_iops(1).unwrap(), 1e6 / BLOCK as f64);
        assert_near(expected.read_iops(1).unwrap(), random(&spec, Operation::Read));
        assert_near(expected.write_iops(32).unwrap(), 1e6 / BLOCK as f64);
        assert_near(expected.read_rate(0.0), 1e6);
        let moving = device(&format!("{SEEK}[limits]\nmb_per_s = 0.1\n"));
        assert_near(Expected::of(&moving).seek_and_read(0), 1e9 / random(&moving, Operation::Read));
    }
}
