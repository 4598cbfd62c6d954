//! Tests of the doctor, on machines made of files.

use std::fs;
use std::path::Path;

use ethermem_node::doctor::{Finding, Verdict, examine};
use tempfile::TempDir;

/// A machine with these files.
fn machine(files: &[(&str, &str)]) -> TempDir {
    let root = tempfile::tempdir().expect("a folder");
    for (path, text) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("it is made");
        fs::write(path, text).expect("it is written");
    }
    root
}

fn find<'a>(findings: &'a [Finding], name: &str) -> &'a Finding {
    let found = findings.iter().find(|finding| finding.name == name);
    found.unwrap_or_else(|| panic!("{name} in {findings:?}"))
}

/// Files of a machine that suits a memory node.
const GOOD: &[(&str, &str)] = &[
    ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n"),
    ("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "performance\n"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state0/latency", "0\n"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state1/latency", "2\n"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state2/latency", "133\n"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state2/disable", "1\n"),
    ("sys/devices/system/cpu/cpuidle/current_governor", "haltpoll\n"),
    ("sys/module/haltpoll/parameters/guest_halt_poll_ns", "200000\n"),
    ("sys/devices/system/cpu/isolated", "1\n"),
    ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
    ("sys/devices/system/node/node0/cpulist", "0-1\n"),
    ("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "512\n"),
    ("sys/class/net/eth0/operstate", "up\n"),
    ("sys/class/net/eth0/mtu", "9000\n"),
    ("sys/class/net/eth0/device/msi_irqs/30", ""),
    ("sys/class/net/eth0/device/msi_irqs/31", ""),
    ("proc/irq/30/effective_affinity_list", "0\n"),
    ("proc/irq/31/effective_affinity_list", "1\n"),
    ("proc/cpuinfo", "processor : 0\nflags : fpu sse2 aes\n"),
    ("proc/loadavg", "0.05 0.10 0.20 1/100 4321\n"),
    ("proc/sys/net/core/rmem_max", "8388608\n"),
    ("proc/sys/net/core/wmem_max", "8388608\n"),
    ("proc/sys/net/core/busy_read", "50\n"),
    ("proc/sys/kernel/osrelease", "6.8.0-49-generic\n"),
    ("proc/self/status", "Name:\tethermem\nCapEff:\t0000000000003000\n"),
];

#[test]
fn a_machine_made_for_it_costs_nothing() {
    let root = machine(GOOD);
    let findings = examine(root.path());
    assert_eq!(findings.len(), 16);
    for finding in &findings {
        assert_eq!(finding.verdict, Verdict::Fine, "{finding:?}");
        assert!(finding.cost.is_empty() && finding.remedy.is_empty(), "{finding:?}");
    }
    assert_eq!(find(&findings, "idle states").found, "the deepest wakes up in 2 us");
    assert_eq!(find(&findings, "eth0: interrupts").found, "2 on 2 cores");
}

#[test]
fn each_thing_that_costs_is_found_by_itself() {
    let cases: &[(&str, &str, &str)] = &[
        ("proc/loadavg", "1.90 1.0 1.0 3/100 1\n", "load"),
        (
            "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor",
            "powersave\n",
            "frequency governor",
        ),
        ("sys/devices/system/cpu/cpu0/cpuidle/state2/disable", "0\n", "idle states"),
        ("sys/module/haltpoll/parameters/guest_halt_poll_ns", "0\n", "halt polling"),
        ("sys/devices/system/cpu/isolated", "\n", "isolated cores"),
        ("proc/cpuinfo", "flags : fpu hypervisor\n", "virtualisation"),
        ("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n", "clock"),
        ("sys/devices/system/node/node1/cpulist", "\n", "NUMA"),
        ("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "0\n", "huge pages"),
        ("proc/sys/net/core/busy_read", "0\n", "busy polling of interfaces"),
        ("proc/sys/kernel/osrelease", "4.4.0\n", "datagrams to a call"),
        ("proc/sys/kernel/osrelease", "4.19.12-amd64\n", "datagrams to a call"),
        ("proc/self/status", "CapEff:\t0000000000001000\n", "privileges"),
        ("sys/class/net/eth0/mtu", "1500\n", "eth0: MTU"),
        ("proc/irq/31/effective_affinity_list", "0\n", "eth0: interrupts"),
    ];
    for (path, text, name) in cases {
        let root = machine(&[GOOD, &[(path, text)]].concat());
        let findings = examine(root.path());
        let costs: Vec<&str> = findings
            .iter()
            .filter(|finding| finding.verdict != Verdict::Fine)
            .map(|finding| finding.name.as_str())
            .collect();
        assert_eq!(costs, [*name], "{path}");
        let finding = find(&findings, name);
        assert_eq!(finding.verdict, Verdict::Costs);
        assert!(!finding.cost.is_empty() && !finding.remedy.is_empty(), "{finding:?}");
    }
}

#[test]
fn small_socket_buffers_matter_to_who_may_not_exceed_them() {
    let small: &[(&str, &str)] = &[("proc/sys/net/core/rmem_max", "212992\n")];
    let findings = examine(machine(&[GOOD, small].concat()).path());
    assert_eq!(find(&findings, "socket buffers").verdict, Verdict::Fine);
    let nobody: &[(&str, &str)] = &[("proc/self/status", "CapEff:\t0000000000000000\n")];
    let findings = examine(machine(&[GOOD, small, nobody].concat()).path());
    let buffers = find(&findings, "socket buffers");
    assert_eq!(buffers.verdict, Verdict::Costs);
    assert!(buffers.remedy.contains("net.core.rmem_max=8388608"), "{buffers:?}");
    assert_eq!(find(&findings, "privileges").found, "no CAP_NET_ADMIN, no CAP_NET_RAW");
}

#[test]
fn one_core_is_not_enough() {
    let one: Vec<_> = GOOD.iter().copied().filter(|(path, _)| !path.contains("cpu1")).collect();
    assert_eq!(find(&examine(machine(&one).path()), "cores").verdict, Verdict::Costs);
}

#[test]
fn a_machine_that_says_nothing_is_unknown() {
    for root in [machine(&[]).path(), Path::new("/nowhere at all")] {
        for finding in examine(root) {
            assert_eq!(finding.verdict, Verdict::Unknown, "{finding:?}");
            assert!(!finding.found.is_empty(), "{finding:?}");
        }
    }
}

#[test]
fn files_of_any_octets_are_no_problem() {
    for text in ["", "\0\u{ff}", "-1", "99999999999999999999999", "a b c\n\n"] {
        let odd: Vec<_> = GOOD.iter().map(|&(path, _)| (path, text)).collect();
        assert!(!examine(machine(&odd).path()).is_empty());
    }
}
