//! Modules as operations: their rights, their limits, and their effect on a node.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../../clio/tests/support/client.rs"]
mod client;

mod abi;
mod escape;
mod imports;
mod memory;
mod meter;
mod node;

use std::cell::RefCell;
use std::sync::Arc;

use ethermem_clio::Address;
use ethermem_clio::offload::{NodeMemory, Offload, OffloadError, View};
use ethermem_wasm::{Module, ModuleOptions, Runtime};
use imports::imports;
use memory::{Memory, START};

/// Text of a module with this code as `run`, and with all imports.
fn text(code: &str) -> String {
    text_with("(memory (export \"memory\") 1)", code)
}

fn text_with(fields: &str, code: &str) -> String {
    format!(
        "(module\n{}{fields}\n(func (export \"run\") (result i32) (local $i i32)\n{code}))",
        imports()
    )
}

fn module(runtime: &Runtime, text: &str, options: ModuleOptions) -> Arc<Module> {
    let bytes = wat::parse_str(text).expect("the test's text is a module");
    Arc::new(runtime.module(&bytes, options).expect("it can be loaded"))
}

/// A module, and memory of its caller.
struct Bench {
    module: Arc<Module>,
    memory: RefCell<Memory>,
}

impl Bench {
    fn with(text: &str, options: ModuleOptions) -> Bench {
        let runtime = Runtime::new().expect("there is address space");
        let module = module(&runtime, text, options);
        Bench { module, memory: RefCell::new(Memory::new()) }
    }

    fn new(code: &str) -> Bench {
        Bench::with(&text(code), ModuleOptions::default())
    }

    /// Calls the module with the address of the memory and further arguments.
    fn call(&self, arguments: &[u8]) -> Result<Vec<u8>, OffloadError> {
        let arguments = [&START.0.to_le_bytes(), arguments].concat();
        let mut memory = self.memory.borrow_mut();
        self.module.run(&mut NodeMemory::new(&mut *memory), &arguments)
    }

    fn write(&self, data: &[u8]) {
        self.memory.borrow_mut().write(START, data).expect("there is room");
    }

    fn read(&self, at: Address, bytes: u64) -> Result<Vec<u8>, OffloadError> {
        let mut room = Vec::new();
        self.memory.borrow_mut().read(at, bytes, &mut room).map(<[u8]>::to_vec)
    }
}
