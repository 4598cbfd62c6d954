//! Checked and compiled modules, and their runtime.

use std::sync::Arc;

use ethermem_clio::offload::{NodeMemory, Offload, OffloadError, OffloadLimits, Sliced};
use thiserror::Error;
use wasmtime::{
    Config, Engine, ExternType, InstanceAllocationStrategy, InstancePre, Linker,
    PoolingAllocationConfig,
};

use crate::call::Call;
use crate::host::{Host, IMPORTS, link};
use crate::meter::{MeterError, meter, one_line};

/// Default fuel of a call: some tens of milliseconds.
pub const FUEL_MAX: u64 = 100_000_000;
/// Default memory of a call in bytes: enough for a small Rust or C program with its stack.
pub const MEMORY_BYTES_MAX: u64 = 4 << 20;

/// Number of concurrent calls, including a reserve for calls that a node has just ended.
const CALLS_MAX: u32 = 96;
/// Deepest stack of a module's own calls, in bytes.
const STACK_BYTES: usize = 256 << 10;
/// Deepest stack in bytes, including that of imports.
const ASYNC_STACK_BYTES: usize = 512 << 10;
/// Memory in bytes that stays mapped and zeroed for the next call, to avoid page faults.
const RESIDENT_BYTES: usize = 128 << 10;
/// Largest number of elements of a module's table, also after growth.
const TABLE_ELEMENTS: usize = 10_000;

/// Limits of a module's calls, and its address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModuleOptions {
    /// Units of fuel, about one per instruction.
    pub fuel_max: u64,
    /// The module's own memory in bytes, beside the node's.
    pub memory_bytes_max: u64,
    /// True if it runs in an address space of its own, one per tenant.
    pub own_space: bool,
}

impl Default for ModuleOptions {
    fn default() -> ModuleOptions {
        ModuleOptions { fuel_max: FUEL_MAX, memory_bytes_max: MEMORY_BYTES_MAX, own_space: false }
    }
}

/// The reason why a module cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LoadError {
    /// The module is not accepted by the meter.
    #[error(transparent)]
    Meter(#[from] MeterError),
    /// The module lacks a required export.
    #[error("must be a module that exports a function `run` from nothing to i32, and `memory`")]
    Exports,
    /// The module has an unknown import.
    #[error("{0}; must be the imports from `{IMPORTS}`")]
    Imports(String),
    /// The compiler failed, or the machine lacks resources.
    #[error("{0}")]
    Compile(String),
}

/// Compiles modules, and owns the memory of all running ones. Clones share one runtime.
#[derive(Clone)]
pub struct Runtime {
    engine: Engine,
    linker: Arc<Linker<Host>>,
}

impl Runtime {
    /// A runtime with room for the calls of one node.
    ///
    /// # Errors
    /// [`LoadError::Compile`] if the machine lacks the address space.
    pub fn new() -> Result<Runtime, LoadError> {
        let failed = |error: wasmtime::Error| LoadError::Compile(one_line(&format!("{error:#}")));
        let engine = Engine::new(&config()).map_err(failed)?;
        let mut linker = Linker::new(&engine);
        link(&mut linker).map_err(failed)?;
        Ok(Runtime { engine, linker: Arc::new(linker) })
    }

    /// Checks and compiles a module, which takes milliseconds to seconds.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn module(&self, bytes: &[u8], options: ModuleOptions) -> Result<Module, LoadError> {
        let metered = meter(bytes)?;
        let failed = |error: wasmtime::Error| LoadError::Compile(one_line(&format!("{error:#}")));
        let module = wasmtime::Module::from_binary(&self.engine, &metered).map_err(failed)?;
        let run = match module.get_export("run") {
            Some(ExternType::Func(run)) => run,
            _ => return Err(LoadError::Exports),
        };
        let returns_i32 = run.results().len() == 1 && run.results().all(|result| result.is_i32());
        let has_memory = matches!(module.get_export("memory"), Some(ExternType::Memory(_)));
        if run.params().len() != 0 || !returns_i32 || !has_memory {
            return Err(LoadError::Exports);
        }
        let linked = self.linker.instantiate_pre(&module);
        let pre = linked
            .map_err(|error| LoadError::Imports(one_line(&error.root_cause().to_string())))?;
        Ok(Module { pre, options })
    }
}

fn config() -> Config {
    let mut pool = PoolingAllocationConfig::default();
    pool.total_core_instances(CALLS_MAX)
        .total_memories(CALLS_MAX)
        .total_tables(CALLS_MAX)
        .total_stacks(CALLS_MAX)
        .max_memories_per_module(1)
        .max_tables_per_module(1)
        .table_elements(TABLE_ELEMENTS)
        .linear_memory_keep_resident(RESIDENT_BYTES)
        .table_keep_resident(RESIDENT_BYTES)
        .async_stack_keep_resident(RESIDENT_BYTES);
    let mut config = Config::new();
    config
        .async_support(true)
        .consume_fuel(true)
        .max_wasm_stack(STACK_BYTES)
        .async_stack_size(ASYNC_STACK_BYTES)
        .async_stack_zeroing(true)
        .wasm_relaxed_simd(false)
        .wasm_multi_memory(false)
        .wasm_memory64(false)
        // NaNs are canonical, so that a simulated pool is reproducible on every machine.
        .cranelift_nan_canonicalization(true)
        .wasm_backtrace(false)
        .allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    config
}

/// A loaded module: an operation of a memory node, and of in-process pools.
pub struct Module {
    pre: InstancePre<Host>,
    options: ModuleOptions,
}

impl Module {
    fn call(&self, limits: &OffloadLimits, arguments: &[u8]) -> Result<Call, OffloadError> {
        let fuel = self.options.fuel_max.min(limits.fuel_max);
        let memory = self.options.memory_bytes_max.min(limits.memory_bytes_max);
        Call::new(self.pre.clone(), arguments, fuel, memory)
    }
}

impl Offload for Module {
    fn run(&self, memory: &mut NodeMemory<'_>, arguments: &[u8]) -> Result<Vec<u8>, OffloadError> {
        self.call(&OffloadLimits::NONE, arguments)?.run_to_end(memory)
    }

    fn begin(
        &self,
        limits: &OffloadLimits,
        arguments: &[u8],
    ) -> Option<Result<Box<dyn Sliced>, OffloadError>> {
        let call = self.call(limits, arguments);
        Some(call.map(|call| Box::new(call) as Box<dyn Sliced>))
    }

    fn has_own_space(&self) -> bool {
        self.options.own_space
    }
}
