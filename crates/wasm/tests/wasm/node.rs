//! Modules at a memory node: slices between datagrams, stored results, and tenants that bring
//! modules.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ethermem_clio::Address;
use ethermem_clio::node::{Busy, Quota};
use ethermem_clio::offload::{ENDED_FAILED, ENDED_RESULT, ENDED_STOPPED, OffloadLimits, Stop};
use ethermem_units::Ns;
use ethermem_wasm::{Load, Loader, ModuleOptions, Runtime};
use ethermem_wire::clio::{ClioStatus, Permissions, Reply, Request, TenantId};

use crate::client::{Answer, Client, KEEP, LEASE, PAGE, VecNode, config, deliver, node_of};
use crate::{module, text};

const RUNNING: Answer = refused(ClioStatus::Busy, Busy::Running as u64);
/// Code that runs for some milliseconds.
const LONG: &str = "(local.set $i (i32.const 1000000))
    (loop $e (local.set $i (i32.sub (local.get $i) (i32.const 1))) (br_if $e (local.get $i)))";

const fn refused(status: ClioStatus, detail: u64) -> Answer {
    Answer::Other(Reply::Refused(status, detail))
}

fn result(bytes: &[u8]) -> Answer {
    Answer::Bytes([&[ENDED_RESULT], bytes].concat())
}

struct Bench {
    node: VecNode,
    client: Client,
}

impl Bench {
    fn with(quota: Quota, modules: &[(&str, &str, ModuleOptions)]) -> Bench {
        let mut config = config(64);
        config.tenants = vec![(TenantId(1), quota), (TenantId(2), Quota::UNLIMITED)];
        config.processes_max = 8;
        let mut node = node_of(config);
        let runtime = Runtime::new().unwrap();
        for (name, code, options) in modules {
            node.register(name, module(&runtime, &text(code), *options));
        }
        // Only some tenants have the loader, as at memory nodes.
        let loader = Arc::new(Loader::new(runtime));
        for tenant in [1, 2].map(TenantId) {
            node.register_for(tenant, Load::NAME, loader.clone());
        }
        let client = Client::with_process(&mut node, 0, 100, 1);
        Bench { node, client }
    }

    fn new(modules: &[(&str, &str)]) -> Bench {
        let modules: Vec<_> =
            modules.iter().map(|(name, code)| (*name, *code, ModuleOptions::default())).collect();
        Bench::with(Quota::UNLIMITED, &modules)
    }

    fn ask(&mut self, body: Request<'_>) -> Answer {
        self.client.ask(&mut self.node, 5, body)
    }

    fn allocate(&mut self) -> u64 {
        let permissions = Permissions::READ_WRITE;
        match self.ask(Request::Allocate { bytes: PAGE, at: 0, permissions }) {
            Answer::Other(Reply::Address(address)) => address,
            other => panic!("no memory: {other:?}"),
        }
    }

    /// Retries the call until it has ended, with a slice between two tries.
    fn call(&mut self, name: &str, arguments: &[u8]) -> Answer {
        call(&mut self.node, &mut self.client, name, arguments)
    }
}

fn call(node: &mut VecNode, client: &mut Client, name: &str, arguments: &[u8]) -> Answer {
    let datagram = client.datagram(5, Request::Offload { name, arguments }, 0);
    let began = Instant::now();
    loop {
        match deliver(node, 5, &datagram).expect("it is answered") {
            RUNNING => assert!(began.elapsed() < Duration::from_secs(120), "{name} has no end"),
            ended => return ended,
        }
        node.tend(Ns(5), 0);
    }
}

#[test]
fn a_short_module_is_answered_at_once_and_executed_once() {
    let add = "(call $arguments (i32.const 0) (i32.const 0) (i32.const 8))
        (drop (call $fetch_add (i64.load (i32.const 0)) (i64.const 1) (i32.const 8)))
        (call $result (i32.const 8) (i32.const 8)) (i32.const 0)";
    let mut bench = Bench::new(&[("add", add)]);
    let at = bench.allocate();
    let arguments = at.to_le_bytes();
    let ask = Request::Offload { name: "add", arguments: &arguments };
    let datagram = bench.client.datagram(5, ask, 0);
    for _ in 0..3 {
        let answer = deliver(&mut bench.node, 5, &datagram).unwrap();
        assert_eq!(answer, result(&0_u64.to_le_bytes()), "once, whatever copies come");
    }
    assert_eq!(bench.ask(ask), result(&1_u64.to_le_bytes()));
    assert!(!bench.node.runs_wait());
    let uses = bench.node.tenant_uses().next().unwrap().1;
    assert!(uses.offload_fuel > 2 * 200, "two calls with an access each");
}

#[test]
fn a_long_module_holds_nobody_up_for_more_than_a_slice() {
    let add = "(call $arguments (i32.const 0) (i32.const 0) (i32.const 8))";
    let end = "(drop (call $fetch_add (i64.load (i32.const 0)) (i64.const 1) (i32.const 8)))
        (call $result (i32.const 8) (i32.const 8)) (i32.const 0)";
    let long = format!("{add} {LONG} {end}");
    let mut bench = Bench::new(&[("long", &long)]);
    let at = bench.allocate();
    let arguments = at.to_le_bytes();
    let ask = Request::Offload { name: "long", arguments: &arguments };
    let datagram = bench.client.datagram(5, ask, 0);
    assert_eq!(deliver(&mut bench.node, 5, &datagram), Some(RUNNING));
    let fuel = |node: &VecNode| node.tenant_uses().next().unwrap().1.offload_fuel;
    let (mut slices, mut before) = (1, fuel(&bench.node));
    while bench.node.runs_wait() {
        // Other requests are served between any two slices, and a duplicate of the call begins
        // nothing.
        let read = bench.ask(Request::Read { address: at, bytes: 8 });
        assert_eq!(read, Answer::Bytes(vec![0; 8]));
        assert_eq!(deliver(&mut bench.node, 5, &datagram), Some(RUNNING));
        assert_eq!(bench.node.counters().offload_slices, slices, "none but those of `tend`");
        bench.node.tend(Ns(5), 0);
        let now = fuel(&bench.node);
        assert!(now - before <= 20_000, "a slice of {} units", now - before);
        (slices, before) = (slices + 1, now);
    }
    assert!(slices > 200, "{slices}");
    for _ in 0..2 {
        assert_eq!(deliver(&mut bench.node, 5, &datagram), Some(result(&0_u64.to_le_bytes())));
    }
    let word = bench.ask(Request::Read { address: at, bytes: 8 });
    assert_eq!(word, Answer::Bytes(1_u64.to_le_bytes().to_vec()));
}

#[test]
fn of_many_calls_in_a_datagram_one_has_a_slice_before_the_others_of_the_node() {
    let mut bench = Bench::new(&[("long", &format!("{LONG} (i32.const 0)"))]);
    let ask = Request::Offload { name: "long", arguments: &[] };
    for _ in 0..16 {
        assert_eq!(bench.ask(ask), RUNNING);
    }
    assert_eq!(bench.node.counters().offload_slices, 16, "one of each datagram");
    assert_eq!(bench.ask(ask), refused(ClioStatus::Busy, Busy::Runs as u64), "no more than 16");
    let mut other = Client::with_process(&mut bench.node, 0, 300, 2);
    assert_eq!(other.ask(&mut bench.node, 5, ask), RUNNING, "another tenant has its own");
    assert_eq!(bench.ask(Request::EndProcess), Answer::Other(Reply::Done));
    bench.node.tend(Ns(5), 0);
    assert_eq!(bench.node.counters().offload_slices, 18, "of the other, who alone is left");
    while bench.node.tend(Ns(5), 0) {}
    assert!(!bench.node.runs_wait());
}

#[test]
fn what_stops_a_module_is_said_and_counted() {
    let options = ModuleOptions { fuel_max: 50_000, ..ModuleOptions::default() };
    let modules = [
        ("trap", "unreachable", options),
        ("fuel", "(loop $e (br $e)) (i32.const 0)", options),
        ("memory", "(drop (memory.grow (i32.const 500))) (i32.const 0)", options),
        ("failed", "(i32.const 3)", options),
        ("refused", "(call $read (i64.const 77) (i32.const 0) (i32.const 1))", options),
    ];
    let mut bench = Bench::with(Quota::UNLIMITED, &modules);
    for (name, why) in [("trap", Stop::Trap), ("fuel", Stop::Fuel), ("memory", Stop::Memory)] {
        let Answer::Bytes(bytes) = bench.call(name, &[]) else { panic!("{name}") };
        assert_eq!(bytes[..2], [ENDED_STOPPED, why as u8], "{name}");
    }
    assert_eq!(bench.node.counters().offload_stopped, [1, 1, 1]);
    let line = [&[ENDED_FAILED], &b"it returned 3"[..]].concat();
    assert_eq!(bench.call("failed", &[]), Answer::Bytes(line));
    assert_eq!(bench.call("refused", &[]), refused(ClioStatus::Unmapped, 77));
    assert_eq!(bench.node.counters().offload_stopped, [1, 1, 1]);
}

#[test]
fn a_tenants_limits_count_where_they_are_less() {
    let offload = OffloadLimits { fuel_max: 30_000, memory_bytes_max: 1 << 16, loaded_max: 0 };
    let quota = Quota { offload, ..Quota::UNLIMITED };
    let fuel = ("fuel", "(loop $e (br $e)) (i32.const 0)", ModuleOptions::default());
    let memory = ("memory", "(drop (memory.grow (i32.const 1))) (i32.const 0)", fuel.2);
    let mut bench = Bench::with(quota, &[fuel, memory]);
    let line = [&[ENDED_STOPPED, 1], &b"must take at most 30000 units"[..]].concat();
    assert_eq!(bench.call("fuel", &[]), Answer::Bytes(line));
    let line = [&[ENDED_STOPPED, 2], &b"131072 B of memory: must be 65536"[..]].concat();
    assert_eq!(bench.call("memory", &[]), Answer::Bytes(line));
    let arguments = Load { start: Address(4096), bytes: 8, own_space: false, name: "x".to_owned() };
    let line = b"the tenant may bring no operations to the node";
    let none = Answer::Bytes([&[ENDED_FAILED], &line[..]].concat());
    assert_eq!(bench.call(Load::NAME, &arguments.encode()), none);
}

/// Counts its calls in a word of memory that it allocates in the first. Later callers pass the
/// word's address.
const COUNTER: &str = "
    (if (i32.eqz (call $arguments_bytes))
      (then
        (drop (call $allocate (i64.const 8) (i32.const 3) (i32.const 0)))
        (call $result (i32.const 0) (i32.const 8))
        (return (i32.const 0))))
    (call $arguments (i32.const 0) (i32.const 0) (i32.const 8))
    (if (call $fetch_add (i64.load (i32.const 0)) (i64.const 1) (i32.const 8))
      (then (return (i32.const 8))))
    (call $result (i32.const 8) (i32.const 8))
    (i32.const 0)";

#[test]
fn a_module_with_a_space_of_its_own_keeps_what_it_has_from_everybody() {
    let own = ModuleOptions { own_space: true, ..ModuleOptions::default() };
    let mut bench = Bench::with(Quota::UNLIMITED, &[("count", COUNTER, own)]);
    let before = bench.node.processes();
    let Answer::Bytes(at) = bench.call("count", &[]) else { panic!("no memory") };
    assert_eq!(bench.node.processes(), before, "clients have no more processes");
    let at = &at[1..];
    assert_eq!(bench.call("count", at), result(&0_u64.to_le_bytes()));
    let mut same = Client::with_process(&mut bench.node, 0, 200, 1);
    assert_eq!(call(&mut bench.node, &mut same, "count", at), result(&1_u64.to_le_bytes()));
    // The caller cannot access it, and another tenant's calls run in another space.
    let address = u64::from_le_bytes(at.try_into().unwrap());
    let read = bench.ask(Request::Read { address, bytes: 8 });
    assert_eq!(read, refused(ClioStatus::Unmapped, 0));
    let mut other = Client::with_process(&mut bench.node, 0, 300, 2);
    let found = call(&mut bench.node, &mut other, "count", at);
    assert_eq!(found, refused(ClioStatus::Unmapped, address));
    // The word outlives its callers and their leases.
    bench.node.sweep(Ns(LEASE * 3));
    while bench.node.sweep(Ns(LEASE * 3)) {}
    assert_eq!(bench.node.processes(), 0);
    let mut later = Client::new(400, 1);
    let created = later.ask(&mut bench.node, LEASE * 3, Request::CreateProcess);
    let Answer::Other(Reply::Created(process)) = created else { panic!("{created:?}") };
    later.process = process;
    let ask = Request::Offload { name: "count", arguments: at };
    let answer = later.ask(&mut bench.node, LEASE * 3, ask);
    assert_eq!(answer, result(&2_u64.to_le_bytes()));
}

fn write(bench: &mut Bench, at: u64, bytes: &[u8]) {
    for (part, data) in bytes.chunks(1024).enumerate() {
        let address = at + part as u64 * 1024;
        assert_eq!(bench.ask(Request::Write { address, data }), Answer::Other(Reply::Done));
    }
}

#[test]
fn a_tenant_that_may_brings_modules_for_itself_alone() {
    let quota = Quota {
        offload: OffloadLimits { loaded_max: 2, ..OffloadLimits::NONE },
        ..Quota::UNLIMITED
    };
    let mut bench = Bench::with(quota, &[("theirs", "(i32.const 0)", ModuleOptions::default())]);
    let bytes = wat::parse_str(text("(call $result (i32.const 0) (i32.const 1)) (i32.const 0)"));
    let bytes = bytes.unwrap();
    // The operation is registered for this tenant by the node, not brought by the tenant.
    let given = module(&Runtime::new().unwrap(), &text("(i32.const 0)"), ModuleOptions::default());
    bench.node.register_for(TenantId(1), "given", given);
    let at = bench.allocate();
    write(&mut bench, at, &bytes);
    let load = |name: &str, bytes: usize| Load {
        start: Address(at),
        bytes: bytes as u32,
        own_space: false,
        name: name.to_owned(),
    };
    let failed = |line: &str| Answer::Bytes([&[ENDED_FAILED], line.as_bytes()].concat());
    let whole = bytes.len();
    for name in ["mine", "again", "mine"] {
        assert_eq!(bench.call(Load::NAME, &load(name, whole).encode()), result(&[]), "{name}");
        assert_eq!(bench.call(name, &[]), result(&[0]));
    }
    for (load, line) in [
        (load("third", whole), "the tenant may bring 2 operations to the node"),
        (load("theirs", whole), "\"theirs\" is the node's own: must be another name"),
        (load("given", whole), "\"given\" is the node's own: must be another name"),
        (load("given", 0), "\"given\" is the node's own: must be another name"),
        (load("load", 0), "\"load\" is the node's own: must be another name"),
        (load("none", 0), "\"none\" is not loaded"),
        (load("a b", whole), "name \"a b\": must be 1 to 64 of a-z, A-Z, 0-9, -, _ and ."),
        (load("mine", 2 << 20), "2097152 B: must be 1 to 1048576"),
    ] {
        assert_eq!(bench.call(Load::NAME, &load.encode()), failed(line));
    }
    let Answer::Bytes(cut) = bench.call(Load::NAME, &load("mine", whole - 1).encode()) else {
        panic!("a module without its end");
    };
    assert_eq!(cut[0], ENDED_FAILED);
    let beyond = load("mine", 2 * PAGE as usize).encode();
    let unmapped = refused(ClioStatus::Unmapped, at + PAGE);
    assert_eq!(bench.call(Load::NAME, &beyond), unmapped);
    for broken in [&[][..], &[0; 15], &[9; 16], &[0xff; 40]] {
        let allowed = "must be an address, a length, 0 or 1, and a name";
        assert_eq!(bench.call(Load::NAME, broken), failed(allowed));
    }
    // The failed load has changed nothing.
    assert_eq!(bench.call("mine", &[]), result(&[0]));
    let mut other = Client::with_process(&mut bench.node, 0, 300, 2);
    let found = call(&mut bench.node, &mut other, "mine", &[]);
    assert_eq!(found, refused(ClioStatus::NoSuchOffload, 0));
    assert_eq!(bench.call(Load::NAME, &load("mine", 0).encode()), result(&[]));
    assert_eq!(bench.call("mine", &[]), refused(ClioStatus::NoSuchOffload, 0));
    assert_eq!(bench.call(Load::NAME, &load("third", whole).encode()), result(&[]));
}

#[test]
fn a_result_that_finds_no_place_waits_for_one() {
    let mut bench = Bench::new(&[("long", &format!("{LONG} (i32.const 0)"))]);
    let ask = Request::Offload { name: "long", arguments: &[] };
    let datagram = bench.client.datagram(5, ask, 0);
    assert_eq!(deliver(&mut bench.node, 5, &datagram), Some(RUNNING));
    // Changes by other clients take all entries that the tenant may have.
    let mut other = Client::with_process(&mut bench.node, 5, 300, 1);
    let full = refused(ClioStatus::Busy, Busy::Recent as u64);
    let mut refusals = 0;
    while refusals < 64 {
        let freed = other.ask(&mut bench.node, 5, Request::Free { address: 4096 });
        refusals += u32::from(freed == full);
    }
    while bench.node.tend(Ns(5), 0) {}
    assert_eq!(deliver(&mut bench.node, 5, &datagram), Some(result(&[])));
    // After its time the result is removed like any other.
    bench.node.tend(Ns(6 + KEEP), 0);
    assert_ne!(deliver(&mut bench.node, 5, &datagram), Some(result(&[])));
}

#[test]
fn a_number_that_a_client_uses_twice_harms_nobody() {
    let mut bench = Bench::new(&[("long", &format!("{LONG} (i32.const 0)"))]);
    let at = bench.allocate();
    assert_eq!(bench.ask(Request::Offload { name: "long", arguments: &[] }), RUNNING);
    bench.client.last -= 1;
    let write = Request::Write { address: at, data: b"else" };
    assert_eq!(bench.ask(write), Answer::Other(Reply::Done));
    while bench.node.tend(Ns(5), 0) {}
    let read = bench.ask(Request::Read { address: at, bytes: 4 });
    assert_eq!(read, Answer::Bytes(b"else".to_vec()));
}
