//! What follows from a device's figures, where it does not state it itself.

use crate::spec::{Access, DeviceSpec, Order};

const BLOCK: f64 = 4096.0;

/// See the module. Rates are bytes per second, times nanoseconds.
pub(super) struct Expected<'a> {
    spec: &'a DeviceSpec,
}

impl<'a> Expected<'a> {
    pub(super) fn of(spec: &'a DeviceSpec) -> Self {
        Expected { spec }
    }

    /// Where `part` of the medium lies before.
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
        let limit = self.spec.limits.rate.map_or(f64::MAX, |rate| rate as f64);
        access.rate_at(part).min(self.spec.bus.rate as f64).min(limit)
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
        let access = self.spec.write.as_ref().filter(|_| self.spec.write_cache == 0);
        stated.or_else(|| self.iops(access?, depth))
    }

    fn iops(&self, access: &Access, depth: usize) -> Option<f64> {
        let limit = self.spec.limits.iops.map_or(f64::MAX, f64::from);
        let one = match &self.spec.seek {
            Some(seek) => self.access(seek.average),
            None => access.latency as f64 + self.transfer(access),
        };
        if depth == 1 {
            return Some((1e9 / one).min(limit));
        }
        if self.spec.queue.order == Order::Nearest {
            return None;
        }
        let channels = f64::from(self.spec.queue.channels.min(depth as u32));
        Some((channels * 1e9 / one).min(1e9 / self.transfer(access)).min(limit))
    }

    /// A read of 4 KiB after a seek that takes so long, somewhere on the medium.
    pub(super) fn access(&self, seek: u64) -> f64 {
        let rotation = self.spec.seek.as_ref().map_or(0, |seek| seek.rotation);
        let fixed = self.spec.bus.overhead + self.spec.read.latency + seek + rotation / 2;
        fixed as f64 + BLOCK * 1e9 / self.rate(&self.spec.read, 0.5)
    }

    fn transfer(&self, access: &Access) -> f64 {
        self.spec.bus.overhead as f64 + BLOCK * 1e9 / access.rate_at(0.5).min(self.spec.bus.rate as f64)
    }
}
