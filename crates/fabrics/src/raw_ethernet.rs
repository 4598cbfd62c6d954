//! MAC frames through store-and-forward, output-queued layer 2 switches.
//!
//! The stage latencies are Table 1's. There is no transport: hosts send at once, first come, first
//! served. Switches have unlimited buffers, so nothing is lost and everything queues.

use std::marker::PhantomData;

use ethermem_engine::FabricConfig;
use ethermem_engine::topology::{Layout, PortKind};
use ethermem_frames::{
    Discipline, DropTail, End, FlowId, Net, Outgoing, Packet, PacketFabric, Purpose, Transport,
};
use ethermem_units::Bytes;

/// Raw Ethernet on the packet network.
pub type RawEthernet = PacketFabric<Frames<DropTail>>;

/// The absence of a transport, over ports of any discipline without parameters.
pub struct Frames<Q>(PhantomData<Q>);

impl<Q: Discipline<()> + Default> Transport for Frames<Q> {
    /// Number of frames that have arrived.
    type Flow = u32;
    type Header = ();
    type Queue = Q;
    type Parameters = ();

    fn new(_config: &FabricConfig, _layout: &Layout) -> Frames<Q> {
        Frames(PhantomData)
    }

    fn header_bytes(_config: &FabricConfig) -> Bytes {
        Bytes(0)
    }

    fn queue(&self, _kind: PortKind, _seed: u64) -> Q {
        Q::default()
    }

    fn start(&mut self, net: &mut Net<'_, Frames<Q>>, flow: FlowId) {
        let opened = net.flow_mut(flow);
        opened.state = 0;
        let (packets, purpose) = (opened.packets, opened.purpose);
        for position in 0..packets {
            let data_bytes = net.data_bytes(flow, position);
            net.send(flow, Outgoing { from: End::Source, data_bytes, rank: 0, header: () });
        }
        // A request waits for its response.
        if purpose == Purpose::Data {
            net.settle(flow);
        }
    }

    fn on_packet(&mut self, net: &mut Net<'_, Frames<Q>>, packet: &Packet<()>) {
        let flow = net.flow_mut(packet.flow);
        flow.state += 1;
        if flow.state == flow.packets {
            net.deliver(packet.flow);
        }
    }
}
