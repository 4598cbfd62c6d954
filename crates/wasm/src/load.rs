//! Modules that clients bring. The operation `load` of the node reads a module from the caller's
//! memory, has it compiled on another thread, and registers it for the caller's tenant.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::thread::JoinHandle;

use ethermem_clio::Address;
use ethermem_clio::offload::{
    NodeMemory, Offload, OffloadError, OffloadLimits, Sliced, check_name,
};

use crate::access::PIECE_BYTES;
use crate::meter::MODULE_BYTES_MAX;
use crate::module::{FUEL_MAX, LoadError, MEMORY_BYTES_MAX, Module, ModuleOptions, Runtime};

/// A module in the caller's memory that is to become an operation of the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    /// First address of the module.
    pub start: Address,
    /// Length in bytes; 0 removes the operation of this name.
    pub bytes: u32,
    /// True if it runs in an address space of its own, and not in the caller's.
    pub own_space: bool,
    /// Name of the new operation, for processes of the caller's tenant.
    pub name: String,
}

impl Load {
    /// The operation's name.
    pub const NAME: &'static str = "load";
    const HEAD_BYTES: usize = 16;

    /// The operation's arguments: the address, the length and 0 or 1 as little-endian numbers of 8,
    /// 4 and 4 octets, and the name.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = self.start.0.to_le_bytes().to_vec();
        bytes.extend(self.bytes.to_le_bytes());
        bytes.extend(u32::from(self.own_space).to_le_bytes());
        bytes.extend(self.name.as_bytes());
        bytes
    }

    fn decode(arguments: &[u8]) -> Option<Load> {
        let (head, name) = arguments.split_at_checked(Load::HEAD_BYTES)?;
        let (start, rest) = head.split_first_chunk()?;
        let (bytes, rest) = rest.split_first_chunk()?;
        let own_space = match u32::from_le_bytes(rest.try_into().ok()?) {
            0 => false,
            1 => true,
            _ => return None,
        };
        let (start, bytes) = (Address(u64::from_le_bytes(*start)), u32::from_le_bytes(*bytes));
        let name = String::from_utf8(name.to_vec()).ok()?;
        Some(Load { start, bytes, own_space, name })
    }
}

/// The operation that loads others. One module is compiled at a time.
pub struct Loader {
    runtime: Runtime,
    compiling: Arc<AtomicBool>,
}

impl Loader {
    /// A loader that compiles with this runtime.
    #[must_use]
    pub fn new(runtime: Runtime) -> Loader {
        Loader { runtime, compiling: Arc::new(AtomicBool::new(false)) }
    }

    fn loading(&self, limits: &OffloadLimits, arguments: &[u8]) -> Result<Loading, OffloadError> {
        if limits.loaded_max == 0 {
            return Err(OffloadError::failed("the tenant may bring no operations to the node"));
        }
        let allowed = "must be an address, a length, 0 or 1, and a name";
        let load = Load::decode(arguments).ok_or_else(|| OffloadError::failed(allowed))?;
        check_name(&load.name)?;
        if load.bytes as usize > MODULE_BYTES_MAX {
            let problem = format!("{} B: must be 1 to {MODULE_BYTES_MAX}", load.bytes);
            return Err(OffloadError::Failed(problem));
        }
        let (runtime, compiling) = (self.runtime.clone(), Arc::clone(&self.compiling));
        let said = |most: u64, unsaid: u64| if most == u64::MAX { unsaid } else { most };
        let options = ModuleOptions {
            fuel_max: said(limits.fuel_max, FUEL_MAX),
            memory_bytes_max: said(limits.memory_bytes_max, MEMORY_BYTES_MAX),
            own_space: load.own_space,
        };
        let stage = Stage::Read(Vec::with_capacity(load.bytes as usize));
        Ok(Loading { load, options, runtime, compiling, stage })
    }
}

impl Offload for Loader {
    fn run(&self, memory: &mut NodeMemory<'_>, arguments: &[u8]) -> Result<Vec<u8>, OffloadError> {
        self.loading(&OffloadLimits::NONE, arguments)?.run_to_end(memory)
    }

    fn begin(
        &self,
        limits: &OffloadLimits,
        arguments: &[u8],
    ) -> Option<Result<Box<dyn Sliced>, OffloadError>> {
        let loading = self.loading(limits, arguments);
        Some(loading.map(|loading| Box::new(loading) as Box<dyn Sliced>))
    }
}

/// A module that is being loaded.
struct Loading {
    load: Load,
    options: ModuleOptions,
    runtime: Runtime,
    compiling: Arc<AtomicBool>,
    stage: Stage,
}

enum Stage {
    Read(Vec<u8>),
    /// The module was read, and waits while another is being compiled.
    Wait(Vec<u8>),
    Compile(JoinHandle<Result<Module, LoadError>>),
    Ended,
}

/// The right to compile, until it is dropped.
struct Turn(Arc<AtomicBool>);

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Loading {
    fn compile(&self, bytes: Vec<u8>) -> Result<Stage, OffloadError> {
        if self.compiling.swap(true, Ordering::Acquire) {
            return Ok(Stage::Wait(bytes));
        }
        let turn = Turn(Arc::clone(&self.compiling));
        let (runtime, options) = (self.runtime.clone(), self.options);
        let compile = move || {
            let _turn = turn;
            runtime.module(&bytes, options)
        };
        let thread = std::thread::Builder::new().name("compile".to_owned()).spawn(compile);
        let failed = |error| OffloadError::Failed(format!("no thread: {error}"));
        thread.map(Stage::Compile).map_err(failed)
    }

    fn go_on(&mut self, memory: &mut NodeMemory<'_>) -> Result<Option<Stage>, OffloadError> {
        match mem::replace(&mut self.stage, Stage::Ended) {
            Stage::Read(_) if self.load.bytes == 0 => {
                memory.install(&self.load.name, None)?;
                Ok(None)
            }
            Stage::Read(mut read) => {
                let at = read.len() as u32;
                let piece = (self.load.bytes - at).min(PIECE_BYTES);
                let from = self.load.start.add(at.into());
                read.extend_from_slice(memory.read(from, piece.into())?);
                let whole = read.len() == self.load.bytes as usize;
                Ok(Some(if whole { Stage::Wait(read) } else { Stage::Read(read) }))
            }
            Stage::Wait(read) => self.compile(read).map(Some),
            Stage::Compile(thread) if !thread.is_finished() => Ok(Some(Stage::Compile(thread))),
            Stage::Compile(thread) => {
                let compiled = thread.join();
                let compiled =
                    compiled.map_err(|_| OffloadError::failed("the compiler has no answer"))?;
                let module = compiled.map_err(|error| OffloadError::failed(error.to_string()))?;
                memory.install(&self.load.name, Some(Arc::new(module)))?;
                Ok(None)
            }
            Stage::Ended => unreachable!("it is not asked again"),
        }
    }
}

impl Sliced for Loading {
    fn step(&mut self, memory: &mut NodeMemory<'_>) -> Poll<Result<Vec<u8>, OffloadError>> {
        match self.go_on(memory) {
            Ok(Some(stage)) => {
                self.stage = stage;
                Poll::Pending
            }
            Ok(None) => Poll::Ready(Ok(Vec::new())),
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}
