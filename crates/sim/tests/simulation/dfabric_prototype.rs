//! DFabric's prototype by Table 3 and section 6.1, as a scenario of `dfabric` and of its baseline.

use ethermem_sim::Kind;
use ethermem_sim::engine::Alone;
use ethermem_sim::fabrics::dfabric::Dfabric;
use ethermem_sim::workload::program::Builder;
use ethermem_units::{Bytes, Ps};

use crate::dfabric_published::run;
use crate::support::scenario;

/// The prototype at a C of so many Gb/s. Its own C is about 1 Gb/s, and a link has at least 10 Gb/s
/// here: times are microseconds of the prototype, and are divided by our C.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prototype {
    /// Nodes of all racks.
    pub nodes: u16,
    pub racks: u16,
    /// C, the rate of the memory fabric: a multiple of 10 Gb/s.
    pub fabric_gbps: u32,
    /// B, the rate of a NIC.
    pub nic_gbps: u32,
    /// MTU of Ethernet: 4 KB (6.1).
    pub mtu_bytes: u32,
    /// A hop of Ethernet within a rack, the ToR: 32.5 us (Table 3).
    pub tor_us: f64,
    /// The hop of Ethernet between the racks: 32.5 us (Table 3).
    pub core_us: f64,
    /// An access to a node's memory by another node or a NIC, and to a memory device, beside the
    /// way there. The way takes 6.1 us, and a device moves a line in 0.5 us. So a load of one line
    /// takes 6.5 us of a node's memory and 6.6 us of a device, by Table 3's 6.5 us.
    pub memory_us: f64,
    pub device_us: f64,
    /// Time of the protocol stack for a packet on each side. Ours: none is published.
    pub stack_us: f64,
}

/// Two racks of two nodes, with B = C.
pub(crate) const PROTOTYPE: Prototype = Prototype {
    nodes: 4,
    racks: 2,
    fabric_gbps: 10,
    nic_gbps: 10,
    mtu_bytes: 4_096,
    tor_us: 32.5,
    core_us: 32.5,
    memory_us: 0.42,
    device_us: 0.0,
    stack_us: 6.662,
};

impl Prototype {
    /// The prototype with NICs of C over this ratio.
    pub(crate) fn at_ratio(self, ratio: u32) -> Prototype {
        Prototype { fabric_gbps: self.nic_gbps * ratio, ..self }
    }

    /// The keys of a scenario behind `[fabric]`. The table of the fabric comes last, with these
    /// keys of its own.
    pub(crate) fn keys(&self, fabric: &str, own: &str) -> String {
        let ns = |us: f64| 1e3 * us / f64::from(self.fabric_gbps);
        let Prototype { nodes, racks, .. } = self;
        // The baseline's requests are of memory that is local to their node: 650 ns (Table 3).
        let (is_pool, local_us) = (fabric == "dfabric", 0.65);
        let memory_us = if is_pool { self.memory_us } else { local_us };
        // Each switch is a hop: the one between the racks, and a ToR. A packet of the baseline to
        // another rack passes all three.
        let hop_us = if is_pool { self.core_us } else { self.tor_us };
        let table = if is_pool {
            format!(
                "[fabric.dfabric]\ntheta = {}\nlocal_ns = {}\ndevice_ns = {}\nlocal_gbps = {}\n",
                self.fabric_gbps / self.nic_gbps,
                ns(local_us),
                ns(self.device_us),
                40 * self.fabric_gbps,
            )
        } else {
            let core_ns = ns(self.core_us - self.tor_us);
            format!("[fabric.tor_rack]\ncore_ns = {core_ns}\n")
        };
        let timeout_key = if is_pool { "timeout_us" } else { "rto_min_us" };
        format!(
            "nodes = {nodes}\nlink_gbps = {}\npropagation_ns = {}\nmemory_access_ns = {}\n\
             [fabric.packet]\nmtu_bytes = {}\nstack_ns = {}\nforwarding_ns = {}\n\
             [fabric.cxl]\nport_ns = {}\nswitch_ns = {}\n\
             {table}racks = {racks}\n{timeout_key} = {}\n{own}\n",
            self.nic_gbps,
            ns(0.1),
            ns(memory_us),
            self.mtu_bytes,
            ns(self.stack_us),
            ns(hop_us),
            ns(0.25),
            ns(0.7),
            // Linux's least timeout is 200 ms.
            200_000.0 / f64::from(self.fabric_gbps),
        )
    }

    /// A scenario with a program.
    pub(crate) fn scenario(&self, fabric: &str, own: &str, program: &str) -> String {
        let keys = self.keys(fabric, own);
        format!(
            "[fabric]\n{keys}[workload]\nkind = \"program\"\n[workload.program]\n{program}\n\
             [run]\nseed = 1\n"
        )
    }
}

/// Microseconds of the prototype for 64 B from node 0, one way.
fn line_us(prototype: Prototype, fabric: &str, to: u16) -> f64 {
    let mut builder = Builder::new(4);
    builder.send(0, to, Bytes(64), 0, &[]).expect("two nodes");
    let took = run(fabric, &prototype.keys(fabric, ""), &builder.build());
    took.0 as f64 / 1e6 * f64::from(prototype.fabric_gbps)
}

#[test]
fn a_hop_of_the_prototype_takes_32_5_us() {
    for ratio in [1, 8] {
        let whole = PROTOTYPE.at_ratio(ratio);
        let without = Prototype { tor_us: 0.0, core_us: 0.0, ..whole };
        for (fabric, to, hops) in
            [("tor-rack", 1, 1.0), ("tor-rack", 2, 3.0), ("dfabric", 1, 0.0), ("dfabric", 2, 1.0)]
        {
            let hops_us = line_us(whole, fabric, to) - line_us(without, fabric, to);
            assert!((hops_us - 32.5 * hops).abs() < 0.01, "{fabric} to {to}: {hops_us} us");
        }
    }
}

/// Nanoseconds at C = 10 Gb/s: two ways of 248.8, two flits of 54.4, the access of 42, and a line
/// at 400 Gb/s, 1.28.
#[test]
fn a_load_of_the_prototype_takes_6_5_us() {
    for ratio in [1, 8] {
        let prototype = PROTOTYPE.at_ratio(ratio);
        let scenario = scenario(&format!("[fabric]\n{}", prototype.keys("dfabric", "")));
        let Ps(took) = Alone::<Dfabric>::new(&scenario.fabric).time(Kind::Read, Bytes(64));
        let us = took as f64 / 1e6 * f64::from(prototype.fabric_gbps);
        assert!((us - 6.497).abs() < 0.005, "{us} us");
    }
}
