//! Modules made at random with our imports, and modules that were changed octet by octet: refused
//! when loaded, or each call ends within its fuel, memory and slices, and leaves alone what is not
//! its caller's.
#![no_main]

#[path = "../../crates/wasm/tests/wasm/imports.rs"]
mod imports;
#[path = "../../crates/wasm/tests/wasm/memory.rs"]
mod memory;

use std::sync::LazyLock;
use std::task::Poll;

use ethermem_clio::offload::{NodeMemory, Offload, OffloadError, OffloadLimits};
use ethermem_wasm::{ModuleOptions, Runtime};
use imports::imports;
use libfuzzer_sys::arbitrary::{Arbitrary, Unstructured};
use memory::Memory;

const FUEL_MAX: u64 = 200_000;
const SLICE_FUEL_MAX: u64 = 20_000;
/// About one module of the generator.
const LONGER_BYTES: usize = 1024;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("address space"));

/// What random modules may import, and must export.
static IMPORTS: LazyLock<Vec<u8>> =
    LazyLock::new(|| wat::parse_str(format!("(module {})", imports())).expect("it is a module"));
static EXPORTS: LazyLock<Vec<u8>> = LazyLock::new(|| {
    wat::parse_str(
        "(module (memory (export \"memory\") 1)
           (func (export \"run\") (result i32) (i32.const 0)))",
    )
    .expect("it is a module")
});

fn random(octets: &mut Unstructured<'_>) -> Option<Vec<u8>> {
    let config = wasm_smith::Config {
        available_imports: Some(IMPORTS.clone()),
        exports: Some(EXPORTS.clone()),
        max_memory32_bytes: 1 << 20,
        max_memories: 1,
        max_imports: 12,
        bulk_memory_enabled: true,
        simd_enabled: true,
        relaxed_simd_enabled: false,
        threads_enabled: false,
        memory64_enabled: false,
        gc_enabled: false,
        exceptions_enabled: false,
        reference_types_enabled: false,
        allow_start_export: true,
        ..wasm_smith::Config::default()
    };
    Some(wasm_smith::Module::new(config, octets).ok()?.to_bytes())
}

/// What was given, and more that follows from it: short inputs, which most are, would make modules
/// of nothing.
fn longer(data: &[u8]) -> Vec<u8> {
    let mut state = data.iter().fold(0xcbf2_9ce4_8422_2325, |state: u64, &octet| {
        (state ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3)
    });
    let more = std::iter::repeat_with(|| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (state >> 56) as u8
    });
    data.iter().copied().chain(more.take(LONGER_BYTES)).collect()
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let data = longer(data);
    let mut octets = Unstructured::new(&data);
    let Ok(changes) = <Option<[(u16, u8); 3]>>::arbitrary(&mut octets) else { return };
    let Some(mut bytes) = random(&mut octets) else { return };
    for (at, flip) in changes.iter().flatten() {
        let at = usize::from(*at) % bytes.len();
        bytes[at] ^= flip;
    }
    let options = ModuleOptions { fuel_max: FUEL_MAX, memory_bytes_max: 1 << 20, own_space: false };
    let Ok(module) = RUNTIME.module(&bytes, options) else { return };
    let mut view = Memory::new();
    let mut memory = NodeMemory::new(&mut view);
    let limits = OffloadLimits::NONE;
    let call = module.begin(&limits, &data).expect("it has slices");
    let Ok(mut call) = call else { return };
    let mut before = 0;
    for slice in 0.. {
        assert!(slice <= FUEL_MAX / 10_000 + 1, "it has no end");
        let stepped = call.step(&mut memory);
        let used = call.fuel_used();
        assert!(used <= FUEL_MAX && used >= before, "{used} after {before}");
        assert!(used - before <= SLICE_FUEL_MAX, "a slice of {} units", used - before);
        before = used;
        match stepped {
            Poll::Pending => {}
            Poll::Ready(Ok(result)) => return assert!(result.len() <= 65_000),
            Poll::Ready(Err(OffloadError::Failed(line))) => return assert!(line.len() <= 2048),
            Poll::Ready(Err(_)) => return,
        }
    }
});
