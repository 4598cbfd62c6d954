//! Modules that try to escape, to run for ever, or to exceed their limits.

use ethermem_clio::offload::{OffloadError, Stop};
use ethermem_wasm::ModuleOptions;

use crate::memory::START;
use crate::{Bench, text, text_with};

const SMALL: ModuleOptions =
    ModuleOptions { fuel_max: 3_000_000, memory_bytes_max: 1 << 20, own_space: false };

/// How a module is stopped; whatever goes wrong with it must leave the pool unchanged.
fn stopped(text: &str) -> (Stop, String) {
    let bench = Bench::with(text, SMALL);
    bench.write(b"as it was");
    let ended = bench.call(&[]);
    let Err(OffloadError::Stopped { why, problem }) = ended else {
        panic!("{ended:?}: {text}");
    };
    assert_eq!(bench.read(START, 9).unwrap(), b"as it was");
    let again = bench.call(&[]);
    assert!(matches!(again, Err(OffloadError::Stopped { why: same, .. }) if same == why));
    (why, problem)
}

#[test]
fn its_own_memory_ends_where_it_ends() {
    for (code, at) in [
        ("(drop (i32.load (i32.const 65533)))", "out of bounds"),
        ("(drop (i32.load8_u (i32.const -1)))", "out of bounds"),
        ("(i64.store offset=4294967295 (i32.const -1) (i64.const 1))", "out of bounds"),
        ("(v128.store (i32.const 65528) (v128.const i64x2 1 2))", "out of bounds"),
        ("(memory.fill (i32.const 65535) (i32.const 1) (i32.const 2))", "out of bounds"),
        ("(memory.copy (i32.const 0) (i32.const 1) (i32.const 65536))", "out of bounds"),
        ("(memory.copy (i32.const -8) (i32.const 0) (i32.const 4096))", "out of bounds"),
    ] {
        let (why, problem) = stopped(&text(&format!("{code} (i32.const 0)")));
        assert_eq!(why, Stop::Trap, "{code}");
        assert!(problem.contains(at), "{code}: {problem}");
    }
}

#[test]
fn pointers_that_it_hands_out_are_its_own() {
    for (code, what) in [
        ("(drop (call $read (i64.const 4096) (i32.const 65535) (i32.const 2)))", "read: 2 B"),
        (
            "(drop (call $read (i64.const 4096) (i32.const -1) (i32.const -1)))",
            "read: 4294967295 B",
        ),
        ("(drop (call $write (i64.const 4096) (i32.const 65536) (i32.const 1)))", "write: 1 B"),
        (
            "(drop (call $fetch_add (i64.const 4096) (i64.const 1) (i32.const 65529)))",
            "fetch_add: 8 B",
        ),
        ("(drop (call $swap (i64.const 4096) (i64.const 1) (i32.const -4)))", "swap: 8 B"),
        (
            "(drop (call $allocate (i64.const 4096) (i32.const 3) (i32.const 65530)))",
            "allocate: 8 B",
        ),
        ("(call $arguments (i32.const 0) (i32.const 65535) (i32.const 8))", "arguments: 8 B"),
        ("(call $arguments (i32.const 1) (i32.const 0) (i32.const 8))", "arguments: 8 B at 1"),
        (
            "(call $arguments (i32.const -1) (i32.const 0) (i32.const -1))",
            "arguments: 4294967295 B",
        ),
        ("(call $result (i32.const 65535) (i32.const 2))", "result: 2 B"),
        ("(call $problem (i32.const 65535) (i32.const 2))", "problem: 2 B"),
        ("(drop (call $allocate (i64.const 1) (i32.const 4) (i32.const 0)))", "permissions: 4"),
        ("(drop (call $allocate (i64.const 1) (i32.const -1) (i32.const 0)))", "permissions: -1"),
    ] {
        let (why, problem) = stopped(&text(&format!("{code} (i32.const 0)")));
        assert_eq!(why, Stop::Trap, "{code}");
        assert!(problem.starts_with(what), "{code}: {problem}");
    }
    let result =
        "(loop $more (call $result (i32.const 0) (i32.const 60000)) (br $more)) (i32.const 0)";
    assert_eq!(stopped(&text(result)), (Stop::Trap, "result: must be at most 65000 B".to_owned()));
}

#[test]
fn what_never_ends_is_ended() {
    let two = "(memory (export \"memory\") 1) (func $a (call $b)) (func $b (call $a))";
    let tail =
        "(memory (export \"memory\") 1) (func $a (return_call $b)) (func $b (return_call $a))";
    let table = "(memory (export \"memory\") 1) (table funcref (elem $a)) (type $t (func))
        (func $a (call_indirect (type $t) (i32.const 0)))";
    let start = "(memory (export \"memory\") 1) (func $s (loop $e (br $e))) (start $s)";
    for (fields, code, expected) in [
        ("(memory (export \"memory\") 1)", "(loop $e (br $e))", Stop::Fuel),
        ("(memory (export \"memory\") 1)", "(loop $e (drop (call $process)) (br $e))", Stop::Fuel),
        (
            "(memory (export \"memory\") 1)",
            "(loop $e (drop (call $read (i64.const 1) (i32.const 0) (i32.const 1))) (br $e))",
            Stop::Fuel,
        ),
        (
            "(memory (export \"memory\") 1)",
            "(loop $e (drop (call $arguments_bytes)) (br $e))",
            Stop::Fuel,
        ),
        (two, "(call $a)", Stop::Trap),
        (table, "(call $a)", Stop::Trap),
        (tail, "(call $a)", Stop::Fuel),
        (start, "", Stop::Fuel),
    ] {
        let (why, problem) = stopped(&text_with(fields, &format!("{code} (i32.const 0)")));
        assert_eq!(why, expected, "{code}: {problem}");
        if why == Stop::Trap {
            assert!(problem.contains("stack"), "{problem}");
        }
    }
}

#[test]
fn it_has_no_more_memory_than_it_may() {
    let bomb = "(loop $more (br_if $more (i32.ge_s (memory.grow (i32.const 1)) (i32.const 0))))";
    let large = "(memory (export \"memory\") 17)";
    let largest = "(memory (export \"memory\") 1 65536)";
    for (fields, code) in [
        ("(memory (export \"memory\") 1)", bomb),
        (largest, bomb),
        (largest, "(drop (memory.grow (i32.const 65535)))"),
        (large, ""),
    ] {
        let (why, problem) = stopped(&text_with(fields, &format!("{code} (i32.const 0)")));
        assert_eq!(why, Stop::Memory, "{code}: {problem}");
        assert!(problem.ends_with("B of memory: must be 1048576"), "{problem}");
    }
    let bench = Bench::with(
        &text(
            "(drop (memory.grow (i32.const 15)))
             (i32.store (i32.const 1048572) (i32.const 1)) (i32.const 0)",
        ),
        SMALL,
    );
    assert_eq!(bench.call(&[]).unwrap(), b"", "what it may have, it has");
}

#[test]
fn what_no_program_may_stops_it() {
    let table = "(memory (export \"memory\") 1) (table 2 funcref) (type $t (func))
        (elem (i32.const 0) $other) (func $other (result i32) (i32.const 1))";
    for (fields, code, what) in [
        ("(memory (export \"memory\") 1)", "unreachable", "unreachable"),
        (
            "(memory (export \"memory\") 1)",
            "(drop (i32.div_u (i32.const 1) (i32.const 0)))",
            "divide",
        ),
        (
            "(memory (export \"memory\") 1)",
            "(drop (i32.div_s (i32.const 0x80000000) (i32.const -1)))",
            "overflow",
        ),
        ("(memory (export \"memory\") 1)", "(drop (i32.trunc_f32_s (f32.const nan)))", "integer"),
        (table, "(call_indirect (type $t) (i32.const 0))", "indirect call"),
        (table, "(call_indirect (type $t) (i32.const 1))", "uninitialized"),
        (table, "(call_indirect (type $t) (i32.const 7))", "undefined element"),
    ] {
        let (why, problem) = stopped(&text_with(fields, &format!("{code} (i32.const 0)")));
        assert_eq!(why, Stop::Trap, "{code}");
        assert!(problem.contains(what), "{code}: {problem}");
    }
    let data = "(memory (export \"memory\") 1) (data (i32.const 65535) \"ab\")";
    assert_eq!(stopped(&text_with(data, "(i32.const 0)")).0, Stop::Trap);
}

#[test]
fn nothing_is_left_of_a_call_in_the_next() {
    let bench = Bench::new(
        "(call $arguments (i32.const 8) (i32.const 70) (i32.const 1))
         (call $result (i32.const 64) (i32.const 16))
         (i64.store (i32.const 64) (i64.const -1)) (i64.store (i32.const 72) (i64.const -1))
         (i32.const 0)",
    );
    for octet in [5, 6, 7] {
        let mut expected = [0; 16];
        expected[6] = octet;
        assert_eq!(bench.call(&[octet]).unwrap(), expected);
    }
}
