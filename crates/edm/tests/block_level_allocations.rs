//! Nothing allocates after construction: two nodes and a switch, block by block, through load,
//! damage and the end of a link.

use ethermem_edm::phy::LineBlock;
use ethermem_edm::port::{BlockSwitch, Buffers, HostPort, HostPortConfig};
use ethermem_edm::sched::SchedulerConfig;
use ethermem_edm::{
    Address, EdmConfig, Event, Interface, MirroredConfig, NodeId, Op, Request, Token, WriteKind,
};
use ethermem_units::{Bytes, Ps};
use ethermem_wire::Block;

const SLOT: Ps = Ps(640);
const NODES: u16 = 2;

/// The buffer of every read and write.
struct Page([u8; 4_096]);

impl Buffers for Page {
    fn write_data(&self, _: Token, offset: Bytes, bytes: Bytes) -> &[u8] {
        &self.0[offset.0 as usize..(offset.0 + bytes.0) as usize]
    }

    fn deliver(&mut self, _: Token, offset: Bytes, data: &[u8]) {
        self.0[offset.0 as usize..][..data.len()].copy_from_slice(data);
    }
}

struct Network {
    hosts: Vec<HostPort<Vec<u8>>>,
    switches: Vec<BlockSwitch>,
    page: Page,
    /// The blocks on the lines, by switch and node: one slot of flight.
    up: [[Block; 2]; 2],
    down: [[Block; 2]; 2],
    cut: bool,
    done: u32,
    failed: u32,
}

impl Network {
    fn step(&mut self, now: Ps) {
        for (s, switch) in self.switches.iter_mut().enumerate() {
            for n in 0..NODES {
                let line = LineBlock::from(self.up[s][usize::from(n)]);
                switch.receive(now, NodeId::at(n), (!self.cut || s == 0).then_some(line));
            }
            switch.schedule(now);
            for n in 0..NODES {
                let at = usize::from(n);
                let arrived = LineBlock::from(self.down[s][at]);
                self.down[s][at] = switch.transmit(now, NodeId::at(n), None).line;
                let (host, page) = (&mut self.hosts[at], &mut self.page);
                let slot = host.slot(now, Interface(s as u8), Some(arrived), None, page);
                self.up[s][at] = slot.line;
                while let Some(event) = host.poll_event() {
                    self.done += 1;
                    self.failed += u32::from(matches!(event, Event::Failed { .. }));
                }
            }
        }
    }
}

#[test]
fn blocks_pass_without_allocations() {
    let edm = EdmConfig::default();
    let config = SchedulerConfig::new(NODES, &edm, Ps(2_560), SLOT);
    let host = |node| {
        let node = NodeId::at(node);
        let host = MirroredConfig {
            node,
            nodes: NODES,
            edm: &edm,
            messages_max: 64,
            interfaces: 2,
            start: 0,
        };
        HostPort::new(HostPortConfig { host, read_bytes_max: 4_096 }, vec![0; 65_536])
    };
    let mut network = Network {
        hosts: (0..NODES).map(host).collect(),
        switches: (0..2).map(|_| BlockSwitch::new(&config, edm.arbitration)).collect(),
        page: Page([7; 4_096]),
        up: [[Block::IDLE; 2]; 2],
        down: [[Block::IDLE; 2]; 2],
        cut: false,
        done: 0,
        failed: 0,
    };
    let mut now = Ps::ZERO;
    let mut token = 0;
    let counts = allocation_counter::measure(|| {
        for slot in 0..90_000_u64 {
            if slot < 50_000 && slot % 40 == 0 {
                let node = (slot / 40 % 2) as u16;
                let bytes = Bytes(1 + slot * 37 % 4_000);
                let op = match slot / 80 % 3 {
                    0 => Op::Read { bytes },
                    1 => Op::Write { bytes, kind: WriteKind::Acknowledged },
                    _ => Op::Write { bytes, kind: WriteKind::Posted },
                };
                let (peer, address) = (NodeId::at(1 - node), Address(slot % 60_000));
                let request = Request { token: Token(token), peer, address, op, fence: false };
                let taken = network.hosts[usize::from(node)].submit(now, request);
                token += u32::from(taken.is_ok());
            }
            // The links of the second switch lose their signal.
            network.cut = slot > 30_000;
            network.step(now);
            now += SLOT;
        }
    });
    assert_eq!(counts.count_total, 0, "{counts:?}");
    assert!(token > 200, "{token} requests");
    assert_eq!((network.done, network.failed), (token, 0));
}
