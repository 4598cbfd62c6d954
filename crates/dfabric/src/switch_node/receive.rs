//! The receiving side: completions of NICs go to RxQs, receive buffers are filled up (section 4.4).

use ethermem_units::Bytes;
use ethermem_wire::dfabric::{Descriptor, DescriptorKind, DescriptorWords};

use super::{Action, Place, Refusal, SwitchNode};
use crate::nic::{NicId, ReceiveSpread};
use crate::pool::{MemoryPool, PoolError, Preference};

impl SwitchNode {
    /// An entry of a NIC's completion queue: a packet was received. With [`Action::Waits`] the RxQ
    /// is full, and the same entry is to be shown again after [`SwitchNode::on_consumed`].
    pub fn on_completion(&mut self, pool: &mut MemoryPool, words: &DescriptorWords) -> Action {
        let node = self.config.node;
        let descriptor = match Descriptor::parse(words) {
            Ok(descriptor) => descriptor,
            Err(fault) => {
                self.counters.refused += 1;
                return Action::Refused { node, refusal: Refusal::Descriptor(fault) };
            }
        };
        if descriptor.kind != DescriptorKind::Received {
            self.counters.refused += 1;
            return Action::Refused { node, refusal: Refusal::Kind(descriptor.kind) };
        }
        let Descriptor { reference, length, destination, subflow, .. } = descriptor;
        let Some(&Place::Member(to)) = self.directory.get(&destination) else {
            self.counters.dropped += 1;
            return Action::Dropped { freed: pool.release(node, reference).ok() };
        };
        let queue = self.queue(to, subflow);
        if self.rx_used[queue as usize] == self.config.rx_entries {
            self.counters.waits += 1;
            return Action::Waits;
        }
        match pool.pass(node, to, reference, length) {
            Ok(passed) => {
                self.rx_used[queue as usize] += 1;
                self.counters.received += 1;
                let descriptor = Descriptor { kind: DescriptorKind::Transfer, ..descriptor };
                let flush = passed.flush.then_some((node, passed.buffer));
                Action::ToRx { node: to, queue, descriptor, flush }
            }
            Err(error) => {
                self.counters.refused += 1;
                Action::Refused { node, refusal: Refusal::Reference(error) }
            }
        }
    }

    /// Fills a NIC's RX queue with one Buffer of this size, on the device that `spread` chooses.
    /// False if the queue is full, or the NIC is not up.
    ///
    /// # Errors
    /// [`PoolError::NoBuffer`] if the LPPU must grant the SN a Section first; others as
    /// [`MemoryPool::alloc_shared_buffer`].
    pub fn fill_receive(
        &mut self,
        pool: &mut MemoryPool,
        spread: &mut ReceiveSpread,
        nic: NicId,
        bytes: u32,
    ) -> Result<bool, PoolError> {
        if !self.nics.wants(nic) {
            return Ok(false);
        }
        let chosen = spread.choose(bytes);
        let preference = chosen.map_or(Preference::Near, Preference::Device);
        let size = Bytes(u64::from(bytes));
        let buffer = match pool.alloc_shared_buffer(self.config.node, size, preference) {
            Ok(buffer) => buffer,
            Err(error) => {
                chosen.into_iter().for_each(|device| spread.release(device, bytes));
                return Err(error);
            }
        };
        Ok(self.nics.post_receive(nic, buffer))
    }
}
