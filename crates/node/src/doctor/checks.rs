//! The checks, one function each.

use std::collections::BTreeSet;

use ethermem_udp::SOCKET_BUFFER_BYTES;

use super::Finding;
use super::files::Files;

const CPU: &str = "sys/devices/system/cpu";
/// How long an idle core of a virtual machine polls before it yields to the host.
const HALT_POLL: &str = "sys/module/haltpoll/parameters/guest_halt_poll_ns";
const CLOCK: &str = "sys/devices/system/clocksource/clocksource0/current_clocksource";
const HUGE: &str = "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
const TRANSPARENT: &str = "sys/kernel/mm/transparent_hugepage/enabled";
const NET: &str = "sys/class/net";
/// A wake-up of more than this many microseconds is noticeable in a round trip.
const WAKE_US_MAX: u64 = 10;
/// Longer than a thread waits for a page or for a response, in nanoseconds.
const HALT_POLL_NS_MIN: u64 = 50_000;
/// MTU in bytes that carries a page and its headers in one datagram.
const MTU_OF_A_PAGE: u64 = 4_200;

pub(super) fn cores(files: &Files) -> Finding {
    let cores = files.numbered(CPU, "cpu").len();
    match cores {
        0 => Finding::unknown("cores", "the machine does not list its processors"),
        1 => Finding::costs(
            "cores",
            "1",
            "the node polls on it, so all other work waits for it and it for that",
            "give the machine a second core",
        ),
        _ => Finding::fine("cores", cores.to_string()),
    }
}

pub(super) fn load(files: &Files) -> Finding {
    let cores = files.numbered(CPU, "cpu").len() as f64;
    let first = files.text("proc/loadavg");
    let load: Option<f64> =
        first.and_then(|text| text.split_whitespace().next().and_then(|load| load.parse().ok()));
    match load {
        Some(load) if cores > 0.0 && load > cores - 1.0 && load > 0.5 => Finding::costs(
            "load",
            format!("{load} on {cores} cores"),
            "a node that has to share its core answers late by whole time slices, milliseconds",
            "move other work away, or leave the node a core: see isolated cores",
        ),
        Some(load) => Finding::fine("load", format!("{load} on {cores} cores")),
        None => Finding::unknown("load", "no /proc/loadavg"),
    }
}

pub(super) fn governor(files: &Files) -> Finding {
    let name = "frequency governor";
    let of = |cpu: &String| files.text(&format!("{CPU}/{cpu}/cpufreq/scaling_governor"));
    let governors: BTreeSet<String> = files.numbered(CPU, "cpu").iter().filter_map(of).collect();
    let found = governors.iter().cloned().collect::<Vec<_>>().join(", ");
    if governors.is_empty() {
        Finding::unknown(name, "no cpufreq: a virtual machine, or firmware decides")
    } else if governors.len() == 1 && governors.contains("performance") {
        Finding::fine(name, found)
    } else {
        Finding::costs(
            name,
            found,
            "a core that was idle begins slowly: up to twice the time of the first requests",
            "cpupower frequency-set -g performance",
        )
    }
}

pub(super) fn idle_states(files: &Files) -> Finding {
    let name = "idle states";
    let folder = format!("{CPU}/cpu0/cpuidle");
    let states = files.numbered(&folder, "state");
    let latency = |state: &String| {
        let off = files.number(&format!("{folder}/{state}/disable")) == Some(1);
        let latency = files.number(&format!("{folder}/{state}/latency"))?;
        Some(if off { 0 } else { latency })
    };
    match states.iter().filter_map(latency).max() {
        None => Finding::unknown(name, "no cpuidle: a virtual machine, or firmware decides"),
        Some(us) if us <= WAKE_US_MAX => {
            Finding::fine(name, format!("the deepest wakes up in {us} us"))
        }
        Some(us) => Finding::costs(
            name,
            format!("the deepest wakes up in {us} us"),
            "so much more for a request that finds its node, or its client, asleep",
            "cpupower idle-set -D 10",
        ),
    }
}

/// The host must wake a halted core before a thread on it can continue.
pub(super) fn halt_polling(files: &Files) -> Finding {
    let name = "halt polling";
    match (files.text(&format!("{CPU}/cpuidle/current_governor")), files.number(HALT_POLL)) {
        (None, _) => Finding::unknown(name, "no cpuidle: a virtual machine, or firmware decides"),
        (Some(governor), _) if governor != "haltpoll" => {
            Finding::fine(name, format!("not needed: the governor is {governor}"))
        }
        (_, None) => Finding::unknown(name, "the kernel does not say"),
        (_, Some(ns)) if ns >= HALT_POLL_NS_MIN => {
            Finding::fine(name, format!("{} us before an idle core halts", ns / 1000))
        }
        (_, Some(ns)) => Finding::costs(
            name,
            format!("an idle core halts after {} us", ns / 1000),
            "what wakes a thread on another core waits for the host, tens of microseconds: \
             programs on remote pages wait three times as long",
            "echo 200000 > /sys/module/haltpoll/parameters/guest_halt_poll_ns",
        ),
    }
}

pub(super) fn isolation(files: &Files) -> Finding {
    let name = "isolated cores";
    match files.text(&format!("{CPU}/isolated")) {
        None => Finding::unknown(name, "the kernel does not say"),
        Some(cores) if !cores.is_empty() => Finding::fine(name, cores),
        Some(_) => Finding::costs(
            name,
            "none",
            "the kernel's timers and other work interrupt a node: some microseconds, in the tail",
            "boot with isolcpus=N nohz_full=N rcu_nocbs=N, and start the node by taskset -c N",
        ),
    }
}

pub(super) fn virtualisation(files: &Files) -> Finding {
    let name = "virtualisation";
    let Some(cpuinfo) = files.text("proc/cpuinfo") else {
        return Finding::unknown(name, "no /proc/cpuinfo");
    };
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags"));
    match flags {
        None => Finding::unknown(name, "this processor does not say"),
        Some(flags) if flags.split_whitespace().any(|flag| flag == "hypervisor") => Finding::costs(
            name,
            "a virtual machine",
            "interrupts and idling leave it and come back: microseconds each",
            "a machine of its own, or a virtual one whose cores are pinned and that may idle by \
             itself",
        ),
        Some(_) => Finding::fine(name, "none"),
    }
}

pub(super) fn clock(files: &Files) -> Finding {
    let name = "clock";
    match files.text(CLOCK).as_deref() {
        None => Finding::unknown(name, "the kernel does not say"),
        Some(slow @ ("hpet" | "acpi_pm" | "jiffies")) => Finding::costs(
            name,
            slow,
            "a look at the clock is a system call to a device, a microsecond; each request takes \
             some",
            "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource",
        ),
        Some(clock) => Finding::fine(name, clock),
    }
}

pub(super) fn numa(files: &Files) -> Finding {
    let nodes = files.numbered("sys/devices/system/node", "node").len();
    match nodes {
        0 => Finding::unknown("NUMA", "the kernel does not say"),
        1 => Finding::fine("NUMA", "1 node"),
        _ => Finding::costs(
            "NUMA",
            format!("{nodes} nodes"),
            "memory of another one is some 100 ns farther, and so is its network interface",
            "numa_node of the node's configuration: that of the network interface",
        ),
    }
}

pub(super) fn huge_pages(files: &Files) -> Finding {
    let name = "huge pages";
    let transparent = files.text(TRANSPARENT).is_some_and(|modes| !modes.contains("[never]"));
    match files.number(HUGE) {
        None => Finding::unknown(name, "the kernel has none of 2 MiB"),
        Some(0) if transparent => Finding::costs(
            name,
            "none set aside; transparent ones where the kernel finds some",
            "where it finds none, a TLB miss of the processor for most accesses, 20 to 100 ns",
            "sysctl vm.nr_hugepages=N, 512 for 1 GiB, before the node starts",
        ),
        Some(0) => Finding::costs(
            name,
            "none set aside, and no transparent ones",
            "a TLB miss of the processor for most accesses, 20 to 100 ns",
            "sysctl vm.nr_hugepages=N, 512 for 1 GiB, before the node starts",
        ),
        Some(pages) => Finding::fine(name, format!("{pages} of 2 MiB")),
    }
}

pub(super) fn socket_buffers(files: &Files) -> Finding {
    let name = "socket buffers";
    let limit = |key| files.number(&format!("proc/sys/net/core/{key}"));
    let (Some(receive), Some(send)) = (limit("rmem_max"), limit("wmem_max")) else {
        return Finding::unknown(name, "no net.core.rmem_max");
    };
    let found = format!("{receive} B to receive, {send} B to send");
    let wanted = SOCKET_BUFFER_BYTES as u64;
    if receive.min(send) >= wanted {
        Finding::fine(name, found)
    } else if capabilities(files).is_some_and(|set| set & NET_ADMIN != 0) {
        Finding::fine(name, format!("{found}; with CAP_NET_ADMIN the node has {wanted}"))
    } else {
        Finding::costs(
            name,
            found,
            "windows of many clients at once overflow them: lost datagrams, 40 us and more each",
            &format!("sysctl net.core.rmem_max={wanted} net.core.wmem_max={wanted}"),
        )
    }
}

pub(super) fn busy_poll(files: &Files) -> Finding {
    let name = "busy polling of interfaces";
    match files.number("proc/sys/net/core/busy_read") {
        None => Finding::unknown(name, "the kernel cannot"),
        Some(0) => Finding::costs(
            name,
            "off",
            "a datagram waits for its interrupt: some microseconds",
            "sysctl net.core.busy_read=50 net.core.busy_poll=50",
        ),
        Some(us) => Finding::fine(name, format!("{us} us")),
    }
}

/// First kernel version with UDP GSO and GRO.
const SENDS_MANY: (u64, u64) = (4, 18);
const RECEIVES_MANY: (u64, u64) = (5, 0);

pub(super) fn datagrams_to_a_call(files: &Files) -> Finding {
    let name = "datagrams to a call";
    let cost = |found: &str| {
        let cost = "a system call for each datagram, where many operations are under way";
        Finding::costs(name, found, cost, "Linux 5.0 or later")
    };
    let release = files.text("proc/sys/kernel/osrelease");
    let numbers = release.as_deref().and_then(|release| {
        let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    });
    match numbers {
        None => Finding::unknown(name, "no /proc/sys/kernel/osrelease"),
        Some(release) if release < SENDS_MANY => cost("one: no UDP GSO, no UDP GRO"),
        Some(release) if release < RECEIVES_MANY => cost("many that are sent; no UDP GRO"),
        Some(_) => Finding::fine(name, "many: UDP GSO, UDP GRO"),
    }
}

const NET_ADMIN: u64 = 1 << 12;
const NET_RAW: u64 = 1 << 13;

pub(super) fn privileges(files: &Files) -> Finding {
    let name = "privileges";
    match capabilities(files) {
        None => Finding::unknown(name, "no /proc/self/status"),
        Some(set) if set & NET_ADMIN != 0 && set & NET_RAW != 0 => {
            Finding::fine(name, "CAP_NET_ADMIN, CAP_NET_RAW")
        }
        Some(set) => {
            let missing = [(NET_ADMIN, "CAP_NET_ADMIN"), (NET_RAW, "CAP_NET_RAW")];
            let missing = missing.iter().filter(|(bit, _)| set & bit == 0).map(|(_, name)| *name);
            Finding::costs(
                name,
                format!("no {}", missing.collect::<Vec<_>>().join(", no ")),
                "socket buffers within the machine's limit; raw Ethernet (ring://) is out of reach",
                "setcap cap_net_admin,cap_net_raw+ep $(which ethermem)",
            )
        }
    }
}

/// The effective capabilities of this process.
fn capabilities(files: &Files) -> Option<u64> {
    let status = files.text("proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

/// Every interface that is up, except local ones such as the loopback.
pub(super) fn interfaces(files: &Files) -> Vec<Finding> {
    let names = files.names(NET, "").into_iter().filter(|name| {
        let state = files.text(&format!("{NET}/{name}/operstate"));
        name != "lo" && state.as_deref() == Some("up")
    });
    let mut findings = Vec::new();
    for name in names {
        findings.push(mtu(files, &name));
        findings.push(interrupts(files, &name));
    }
    if findings.is_empty() {
        findings.push(Finding::unknown("interfaces", "none is up but the loopback"));
    }
    findings
}

fn mtu(files: &Files, interface: &str) -> Finding {
    let name = format!("{interface}: MTU");
    match files.number(&format!("{NET}/{interface}/mtu")) {
        None => Finding::unknown(&name, "the kernel does not say"),
        Some(mtu) if mtu >= MTU_OF_A_PAGE => Finding::fine(&name, format!("{mtu} B")),
        Some(mtu) => Finding::costs(
            &name,
            format!("{mtu} B"),
            "a page of 4 KiB takes several datagrams each way",
            &format!("ip link set {interface} mtu 9000, there, in switches and at the other end"),
        ),
    }
}

fn interrupts(files: &Files, interface: &str) -> Finding {
    let name = format!("{interface}: interrupts");
    let irqs = files.numbered(&format!("{NET}/{interface}/device/msi_irqs"), "");
    let on = |irq: &String| files.text(&format!("proc/irq/{irq}/effective_affinity_list"));
    let cores: BTreeSet<String> = irqs.iter().filter_map(on).collect();
    let found = format!("{} on {} cores", irqs.len(), cores.len());
    match cores.len() {
        0 => Finding::unknown(&name, "the interface does not say which are its own"),
        1 if files.numbered(CPU, "cpu").len() > 1 && irqs.len() > 1 => Finding::costs(
            &name,
            found,
            "all of them wait for one core; where the node polls on it, they interrupt it",
            "start irqbalance, or write to /proc/irq/N/smp_affinity_list; keep the node's core out",
        ),
        _ => Finding::fine(&name, found),
    }
}
