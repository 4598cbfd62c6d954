//! Receive buffers over memory devices: together they take packets as fast as all NICs (4.4).

use ethermem_placement::NodeId;
use ethermem_units::BitsPerSecond;

/// A memory device for receive buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryDevice {
    /// The device.
    pub device: NodeId,
    /// Its bandwidth.
    pub bandwidth: BitsPerSecond,
}

/// Chooses the device of each receive buffer, so that each has bytes in proportion to its
/// bandwidth.
#[derive(Clone, Debug)]
pub struct ReceiveSpread {
    devices: Box<[(MemoryDevice, u64)]>,
}

impl ReceiveSpread {
    /// Receive buffers on these devices.
    #[must_use]
    pub fn new(devices: &[MemoryDevice]) -> ReceiveSpread {
        ReceiveSpread { devices: devices.iter().map(|device| (*device, 0)).collect() }
    }

    /// The device for a buffer of so many bytes: the one with fewest outstanding bytes over its
    /// bandwidth, the new ones included.
    pub fn choose(&mut self, bytes: u32) -> Option<NodeId> {
        let time = |(device, outstanding): &(MemoryDevice, u64)| {
            let all = outstanding + u64::from(bytes);
            device.bandwidth.bytes_time(ethermem_units::Bytes(all))
        };
        let chosen = self.devices.iter_mut().min_by_key(|device| time(device))?;
        chosen.1 += u64::from(bytes);
        Some(chosen.0.device)
    }

    /// A buffer was freed, or is not on the device that was chosen for it.
    pub fn release(&mut self, device: NodeId, bytes: u32) {
        let found = self.devices.iter_mut().find(|known| known.0.device == device);
        if let Some((_, outstanding)) = found {
            *outstanding = outstanding.saturating_sub(u64::from(bytes));
        }
    }

    /// A device is gone, and its buffers.
    pub fn lose(&mut self, device: NodeId) {
        let left = self.devices.iter().filter(|known| known.0.device != device);
        self.devices = left.copied().collect();
    }

    /// Bandwidth of all devices together, in bits per second.
    #[must_use]
    pub fn bandwidth_bps(&self) -> u128 {
        // The time of one gigabyte, turned round: exact for whole numbers of Mb/s.
        let gigabyte = ethermem_units::Bytes(1_000_000_000);
        let rate = |(device, _): &(MemoryDevice, u64)| {
            8_000_000_000 * 1_000_000_000_000_u128
                / u128::from(device.bandwidth.bytes_time(gigabyte).0)
        };
        self.devices.iter().map(rate).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_go_to_devices_in_proportion_to_bandwidth() {
        let device = |number: u16, gbps| MemoryDevice {
            device: NodeId(number),
            bandwidth: BitsPerSecond::from_gbps(gbps).unwrap(),
        };
        let mut spread = ReceiveSpread::new(&[device(1, 100), device(2, 200), device(3, 100)]);
        assert_eq!(spread.bandwidth_bps(), 400_000_000_000);
        let mut chosen = [0; 4];
        for _ in 0..400 {
            chosen[usize::from(spread.choose(4096).unwrap().0)] += 1;
        }
        assert_eq!(chosen, [0, 100, 200, 100]);
        (0..100).for_each(|_| spread.release(NodeId(3), 4096));
        assert_eq!(spread.choose(4096), Some(NodeId(3)));
        spread.lose(NodeId(3));
        assert!((0..30).all(|_| spread.choose(4096).unwrap() != NodeId(3)));
        assert_eq!(ReceiveSpread::new(&[]).choose(1), None);
    }
}
