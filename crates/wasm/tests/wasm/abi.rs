//! Tests of the imports.

use ethermem_clio::Address;
use ethermem_clio::offload::{OffloadError, Stop};

use crate::memory::{PROCESS, START};
use crate::{Bench, ModuleOptions, text};

/// The address at the start of the arguments, copied to offset 0 of the module's memory.
const AT: &str = "(call $arguments (i32.const 0) (i32.const 0) (i32.const 8))";

#[test]
fn arguments_come_in_and_a_result_goes_out_in_parts() {
    let bench = Bench::new(
        "(call $arguments (i32.const 8) (i32.const 64)
           (i32.sub (call $arguments_bytes) (i32.const 8)))
         (call $result (i32.const 64) (i32.const 2))
         (call $result (i32.const 66) (i32.const 3))
         (i32.const 0)",
    );
    assert_eq!(bench.call(b"parts").unwrap(), b"parts");
}

#[test]
fn memory_of_the_caller_is_read_and_written_across_pieces() {
    let code = format!(
        "{AT} (drop (call $read (i64.load (i32.const 0)) (i32.const 1000) (i32.const 8192)))
         (i32.store8 (i32.const 1000) (i32.const 9))
         (i32.store8 (i32.const 9191) (i32.const 8))
         (call $write (i64.load (i32.const 0)) (i32.const 1000) (i32.const 8192))"
    );
    let bench = Bench::new(&code);
    let data: Vec<u8> = (0..8192_u32).map(|at| (at % 251) as u8).collect();
    bench.write(&data);
    assert_eq!(bench.call(&[]).unwrap(), b"");
    let mut expected = data;
    (expected[0], expected[8191]) = (9, 8);
    assert_eq!(bench.read(START, 8192).unwrap(), expected);
}

#[test]
fn atomics_are_those_of_clients() {
    for (call, before, after) in [
        ("(call $fetch_add (i64.load (i32.const 0)) (i64.const -3) (i32.const 16))", 12, 9),
        ("(call $swap (i64.load (i32.const 0)) (i64.const 77) (i32.const 16))", 12, 77),
        ("(call $fetch_and (i64.load (i32.const 0)) (i64.const 10) (i32.const 16))", 12, 8),
        ("(call $fetch_or (i64.load (i32.const 0)) (i64.const 3) (i32.const 16))", 12, 15),
        ("(call $fetch_xor (i64.load (i32.const 0)) (i64.const 5) (i32.const 16))", 12, 9),
        (
            "(call $compare_and_swap (i64.load (i32.const 0)) (i64.const 12) (i64.const 4)
              (i32.const 16))",
            12,
            4,
        ),
        (
            "(call $compare_and_swap (i64.load (i32.const 0)) (i64.const 11) (i64.const 4)
              (i32.const 16))",
            12,
            12,
        ),
    ] {
        let bench = Bench::new(&format!("{AT} {call} (call $result (i32.const 16) (i32.const 8))"));
        bench.write(&12_u64.to_le_bytes());
        assert_eq!(bench.call(&[]).unwrap(), u64::to_le_bytes(before), "{call}");
        let word = bench.read(START, 8).unwrap();
        assert_eq!(word, u64::to_le_bytes(after), "{call}");
    }
}

#[test]
fn what_a_module_allocates_is_its_callers() {
    let bench = Bench::new(
        "(if (call $allocate (i64.const 5000) (i32.const 3) (i32.const 16))
           (then (return (i32.const 1))))
         (if (call $write (i64.load (i32.const 16)) (i32.const 16) (i32.const 8))
           (then (return (i32.const 2))))
         (call $result (i32.const 16) (i32.const 8))
         (i32.store (i32.const 24) (call $process))
         (call $result (i32.const 24) (i32.const 4))
         (i32.const 0)",
    );
    let result = bench.call(&[]).unwrap();
    let address = Address(u64::from_le_bytes(result[..8].try_into().unwrap()));
    assert_eq!(bench.read(address, 8).unwrap(), result[..8]);
    assert_eq!(result[8..], PROCESS.0.to_le_bytes());
    let free = Bench::new(&format!("{AT} (call $free (i64.load (i32.const 0)))"));
    assert_eq!(free.call(&[]).unwrap(), b"");
    assert!(matches!(free.read(START, 1), Err(OffloadError::Unmapped { .. })));
}

#[test]
fn an_access_that_is_refused_is_a_number_and_the_callers_error_if_it_is_returned() {
    // The module reads an unmapped address, and returns the status.
    let told = Bench::new("(call $read (i64.const 99) (i32.const 0) (i32.const 8))");
    assert!(
        matches!(told.call(&[]), Err(OffloadError::Unmapped { address, .. }) if address.0 == 99)
    );
    let ignored = Bench::new(
        "(i32.store (i32.const 0) (call $read (i64.const 99) (i32.const 0) (i32.const 8)))
         (call $result (i32.const 0) (i32.const 1)) (i32.const 0)",
    );
    assert_eq!(ignored.call(&[]).unwrap(), [8], "the number of Unmapped on the wire");
    let odd = Bench::new(&format!(
        "{AT} (call $fetch_add (i64.add (i64.load (i32.const 0)) (i64.const 1)) (i64.const 1)
          (i32.const 16))"
    ));
    assert!(matches!(odd.call(&[]), Err(OffloadError::Misaligned { .. })));
    let full = Bench::new("(call $allocate (i64.const 0xf00000000) (i32.const 3) (i32.const 8))");
    assert!(matches!(full.call(&[]), Err(OffloadError::Full { .. })));
    let own = Bench::new("(i32.const 41)");
    assert_eq!(own.call(&[]).unwrap_err().to_string(), "it returned 41");
}

#[test]
fn a_module_says_in_words_why_it_has_no_result() {
    let text = text(
        "(call $problem (i32.const 8) (i32.const 6)) (i32.const 1))
         (data (i32.const 8) \"no\\nkey\"",
    );
    let bench = Bench::with(&text, ModuleOptions::default());
    assert_eq!(bench.call(&[]).unwrap_err().to_string(), "no key");
}

#[test]
fn accesses_take_fuel_for_what_they_cost() {
    let code = format!(
        "{AT} (loop $again
           (drop (call $read (i64.load (i32.const 0)) (i32.const 8192) (i32.const 4096)))
           (br $again)) (i32.const 0)"
    );
    let options = ModuleOptions { fuel_max: 1_000_000, ..ModuleOptions::default() };
    let bench = Bench::with(&text(&code), options);
    let Err(OffloadError::Stopped { why, problem }) = bench.call(&[]) else {
        panic!("it never ends");
    };
    assert_eq!((why, problem.as_str()), (Stop::Fuel, "must take at most 1000000 units"));
}
