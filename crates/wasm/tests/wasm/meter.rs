//! Metered instructions keep their effect, and take fuel.

use ethermem_clio::offload::{OffloadError, Stop};
use ethermem_wasm::{LoadError, MODULE_BYTES_MAX, MeterError, ModuleOptions, Runtime};
use proptest::prelude::*;

use crate::{Bench, text, text_with};

/// Copies or fills as the arguments say, and returns all 64 KiB in parts.
const MOVE: &str = "
    (call $arguments (i32.const 8) (i32.const 0) (i32.const 16))
    (local.set $i (i32.const 32))
    (loop $next
      (i32.store8 (local.get $i) (i32.add (local.get $i) (i32.shr_u (local.get $i) (i32.const 8))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $i) (i32.const 65536))))
    (if (i32.load (i32.const 12))
      (then
        (memory.copy (i32.load (i32.const 0)) (i32.load (i32.const 4)) (i32.load (i32.const 8))))
      (else
        (memory.fill (i32.load (i32.const 0)) (i32.load (i32.const 4)) (i32.load (i32.const 8)))))
    (call $result (i32.const 32) (i32.const 64000))
    (i32.const 0)";

fn before() -> Vec<u8> {
    (0..65536_u32).map(|at| if at < 32 { 0 } else { (at + (at >> 8)) as u8 }).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn copies_and_fills_are_those_of_the_specification(
        to in 32_u32..70_000, from in 32_u32..70_000,
        bytes in prop_oneof![0_u32..1000, 0_u32..40_000],
        is_copy: bool, near: bool,
    ) {
        thread_local! {
            static BENCH: Bench = Bench::new(MOVE);
        }
        let from = if near { to.saturating_sub(300).max(32) + from % 600 } else { from };
        let words = [to, from, bytes, u32::from(is_copy)];
        let arguments: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let found = BENCH.with(|bench| bench.call(&arguments));
        let mut expected = before();
        let end = (to + bytes) as usize;
        let fits = end <= 65536 && (!is_copy || from + bytes <= 65536);
        if !fits {
            let trapped =
                matches!(&found, Err(OffloadError::Stopped { why: Stop::Trap, .. }));
            prop_assert!(trapped, "{found:?}");
            return Ok(());
        }
        if is_copy {
            expected.copy_within(from as usize..(from + bytes) as usize, to as usize);
        } else {
            expected[to as usize..end].fill(from as u8);
        }
        prop_assert_eq!(found.unwrap(), &expected[32..64_032]);
    }
}

#[test]
fn a_megabyte_that_is_filled_again_and_again_is_paid_for() {
    let fields = "(memory (export \"memory\") 16)";
    let code = "(loop $again
        (memory.fill (i32.const 0) (i32.const 1) (i32.const 1048576)) (br $again)) (i32.const 0)";
    let options = ModuleOptions { fuel_max: 10_000_000, ..ModuleOptions::default() };
    let bench = Bench::with(&text_with(fields, code), options);
    let began = std::time::Instant::now();
    let stopped = bench.call(&[]);
    eprintln!("10,000,000 units of fuel in fills: {:?}", began.elapsed());
    assert!(matches!(stopped, Err(OffloadError::Stopped { why: Stop::Fuel, .. })));
    // One iteration of the loop above would take four units, and this many iterations 2.5 TB.
    let once = code.replace("(br $again)", "");
    let little = ModuleOptions { fuel_max: 40_000, ..options };
    let bench = Bench::with(&text_with(fields, &once), little);
    assert!(matches!(bench.call(&[]), Err(OffloadError::Stopped { why: Stop::Fuel, .. })));
}

#[test]
fn memory_grows_as_before() {
    let bench = Bench::new(
        "(i32.store (i32.const 0) (memory.grow (i32.const 2)))
         (i32.store (i32.const 4) (memory.grow (i32.const 0)))
         (i32.store (i32.const 8) (memory.size))
         (i32.store (i32.const 196604) (i32.const 7))
         (call $result (i32.const 0) (i32.const 12)) (i32.const 0)",
    );
    assert_eq!(bench.call(&[]).unwrap(), [1, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0]);
}

fn refused(bytes: &[u8]) -> LoadError {
    let module = Runtime::new().unwrap().module(bytes, ModuleOptions::default());
    let error = module.err().expect("it is refused");
    let said = error.to_string();
    assert!(!said.chars().any(char::is_control), "not one plain line: {said:?}");
    assert!(said.len() < 1000, "{} B of {said}", said.len());
    error
}

/// Every error of a module is one line, whatever names the module contains.
#[test]
fn what_is_wrong_is_one_line() {
    let memory = "(memory (export \"memory\") 1)";
    let run = "(func (export \"run\") (result i32) (i32.const 0))";
    let long = "n".repeat(5_000);
    for name in ["a\\nb", "a\\1b[31mb", "a\\tb", &long] {
        for import in [
            format!("\"ethermem\" \"{name}\" (func)"),
            format!("\"{name}\" \"read\" (func)"),
            format!("\"ethermem\" \"{name}\" (memory 1)"),
        ] {
            let bytes = wat::parse_str(format!("(module (import {import}) {memory} {run})"));
            refused(&bytes.unwrap());
        }
    }
    // Wrong types of imports would produce several lines.
    for kind in ["(func (param i32))", "(global i32)", "(table 1 funcref)"] {
        let import = format!("(import \"ethermem\" \"read\" {kind})");
        refused(&wat::parse_str(format!("(module {import} {memory} {run})")).unwrap());
    }
    // A module that is truncated at any octet, or has any octet changed.
    let whole = wat::parse_str(text("(i32.const 0)")).unwrap();
    let runtime = Runtime::new().unwrap();
    let says = |bytes: &[u8]| match runtime.module(bytes, ModuleOptions::default()) {
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    };
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 0x15;
        for said in [says(&whole[..at]), says(&changed)] {
            assert!(!said.chars().any(char::is_control), "at {at}: {said:?}");
        }
    }
}

#[test]
fn modules_that_are_not_allowed_are_refused_with_the_reason() {
    let refused_text = |text: &str| refused(&wat::parse_str(text).unwrap());
    assert_eq!(refused(b""), LoadError::Meter(MeterError::Length(0)));
    let long = vec![0; MODULE_BYTES_MAX + 1];
    assert_eq!(refused(&long), LoadError::Meter(MeterError::Length(long.len())));
    assert!(matches!(refused(b"no module"), LoadError::Meter(MeterError::Invalid(_))));
    assert_eq!(refused_text("(module)"), LoadError::Meter(MeterError::Empty));
    let memory = "(memory (export \"memory\") 1)";
    for other in [
        format!("(module {memory} (func))"),
        format!("(module {memory} (func (export \"run\")))"),
        format!("(module {memory} (func (export \"run\") (param i32) (result i32) (i32.const 0)))"),
        format!("(module {memory} (func (export \"run\") (result i64) (i64.const 0)))"),
        "(module (memory 1) (func (export \"run\") (result i32) (i32.const 0)))".to_owned(),
        format!("(module {memory} (func) (global (export \"run\") i32 (i32.const 0)))"),
    ] {
        assert_eq!(refused_text(&other), LoadError::Exports, "{other}");
    }
    for import in
        ["\"env\" \"read\"", "\"ethermem\" \"open\"", "\"wasi_snapshot_preview1\" \"fd_write\""]
    {
        let text = format!(
            "(module (import {import} (func)) {memory}
             (func (export \"run\") (result i32) (i32.const 0)))"
        );
        let error = refused_text(&text);
        assert!(matches!(error, LoadError::Imports(_)), "{error}");
        assert!(error.to_string().ends_with("must be the imports from `ethermem`"), "{error}");
    }
    let kind =
        "(module (import \"ethermem\" \"read\" (func (param i32))) (memory (export \"memory\") 1)
        (func (export \"run\") (result i32) (i32.const 0)))";
    assert!(matches!(refused_text(kind), LoadError::Imports(_)));
}

#[test]
fn what_would_be_work_without_fuel_is_refused() {
    let table = "(memory (export \"memory\") 1) (table $t 10 funcref) (elem $e func)";
    for (code, name) in [
        ("(table.fill $t (i32.const 0) (ref.null func) (i32.const 9))", "table.fill"),
        ("(table.copy $t $t (i32.const 0) (i32.const 1) (i32.const 9))", "table.copy"),
        ("(table.init $t $e (i32.const 0) (i32.const 0) (i32.const 0))", "table.init"),
        ("(drop (table.grow $t (ref.null func) (i32.const 9)))", "table.grow"),
    ] {
        let bytes = wat::parse_str(text_with(table, &format!("{code} (i32.const 0)"))).unwrap();
        assert!(
            matches!(refused(&bytes),
            LoadError::Meter(MeterError::Instruction(found)) if found == name),
            "{name}"
        );
    }
    let data = "(memory (export \"memory\") 1) (data $d \"abc\")";
    let code = "(memory.init $d (i32.const 0) (i32.const 0) (i32.const 3)) (i32.const 0)";
    let bytes = wat::parse_str(text_with(data, code)).unwrap();
    assert_eq!(refused(&bytes), LoadError::Meter(MeterError::Instruction("memory.init")));
    for memory in [
        "(memory (export \"memory\") 1 1 shared)",
        "(memory (export \"memory\") i64 1)",
        "(memory (export \"memory\") 1) (memory 1)",
    ] {
        let run = "(func (export \"run\") (result i32) (i32.const 0))";
        let newer = format!("(module {memory} {run})");
        let error = refused(&wat::parse_str(newer).unwrap());
        assert!(matches!(error, LoadError::Meter(MeterError::Invalid(_))), "{error}");
    }
    assert!(wat::parse_str(text("(i32.const 0)")).is_ok());
}
