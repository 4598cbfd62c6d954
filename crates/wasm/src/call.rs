//! One call of a module: a coroutine that is resumed for one slice at a time.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use ethermem_clio::offload::{NodeMemory, OffloadError, Sliced, Stop};
use wasmtime::{InstancePre, ResourceLimiter, Store, Trap};

use crate::access::{Shared, status};
use crate::host::{Fault, Host};

/// Fuel of a slice. The node's other work waits as long as a slice runs.
pub(crate) const SLICE_FUEL: u64 = 10_000;
/// Largest number of elements of a module's table.
const TABLE_ELEMENTS_MAX: usize = 10_000;

/// End of a call by itself: the returned number, the fuel left, and the rest.
struct Returned {
    code: i32,
    result: Vec<u8>,
    problem: String,
    refused: Option<OffloadError>,
}

type Running = Pin<Box<dyn Future<Output = (wasmtime::Result<Returned>, u64)> + Send>>;

/// One call of a module; see there.
pub(crate) struct Call {
    running: Running,
    shared: Shared,
    fuel_max: u64,
    fuel_used: u64,
}

/// Limits the memory of a call.
#[derive(Debug)]
pub(crate) struct Memories {
    pub(crate) bytes_max: usize,
}

/// The module requests more memory than its limit.
#[derive(Debug, thiserror::Error)]
#[error("{wanted} B of memory: must be {allowed}")]
struct TooMuch {
    wanted: usize,
    allowed: usize,
}

impl ResourceLimiter for Memories {
    fn memory_growing(&mut self, _: usize, to: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        if to <= self.bytes_max {
            return Ok(true);
        }
        Err(TooMuch { wanted: to, allowed: self.bytes_max }.into())
    }

    fn table_growing(&mut self, _: usize, to: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        Ok(to <= TABLE_ELEMENTS_MAX)
    }
}

impl Call {
    pub(crate) fn new(
        module: InstancePre<Host>,
        arguments: &[u8],
        fuel_max: u64,
        memory_bytes_max: u64,
    ) -> Result<Call, OffloadError> {
        let shared = Shared::default();
        shared.lock().fuel_left = fuel_max;
        let host = Host {
            shared: shared.clone(),
            memories: Memories {
                bytes_max: usize::try_from(memory_bytes_max).unwrap_or(usize::MAX),
            },
            arguments: arguments.to_vec(),
            result: Vec::new(),
            problem: String::new(),
            refused: None,
        };
        let mut store = Store::new(module.module().engine(), host);
        store.limiter(|host| &mut host.memories);
        let prepared = store
            .fuel_async_yield_interval(Some(SLICE_FUEL))
            .and_then(|()| store.set_fuel(fuel_max));
        prepared.map_err(|error| OffloadError::failed(error.to_string()))?;
        let running = Box::pin(run(store, module));
        Ok(Call { running, shared, fuel_max, fuel_used: 0 })
    }

    fn ended(&self, returned: wasmtime::Result<Returned>) -> Result<Vec<u8>, OffloadError> {
        let Returned { code, result, problem, refused } =
            returned.map_err(|error| self.stopped(&error))?;
        if code == 0 {
            return Ok(result);
        }
        if !problem.is_empty() {
            return Err(OffloadError::Failed(problem));
        }
        // The module returned the status that it had received.
        let refused = refused.filter(|refused| status(refused) as i32 == code);
        Err(refused.unwrap_or_else(|| OffloadError::Failed(format!("it returned {code}"))))
    }

    fn stopped(&self, error: &wasmtime::Error) -> OffloadError {
        if let Some(Trap::OutOfFuel) = error.downcast_ref() {
            let problem = format!("must take at most {} units", self.fuel_max);
            return OffloadError::Stopped { why: Stop::Fuel, problem };
        }
        if let Some(much) = error.downcast_ref::<TooMuch>() {
            return OffloadError::Stopped { why: Stop::Memory, problem: much.to_string() };
        }
        let problem = match (error.downcast_ref::<Fault>(), error.downcast_ref::<Trap>()) {
            (Some(fault), _) => fault.to_string(),
            (None, Some(trap)) => trap.to_string(),
            // The runtime's pool is empty, or the system refuses.
            (None, None) => return OffloadError::Failed(error.root_cause().to_string()),
        };
        OffloadError::Stopped { why: Stop::Trap, problem }
    }
}

async fn run(
    mut store: Store<Host>,
    module: InstancePre<Host>,
) -> (wasmtime::Result<Returned>, u64) {
    let called = enter(&mut store, &module).await;
    let left = store.get_fuel().unwrap_or(0);
    let Host { result, problem, refused, .. } = store.into_data();
    (called.map(|code| Returned { code, result, problem, refused }), left)
}

async fn enter(store: &mut Store<Host>, module: &InstancePre<Host>) -> wasmtime::Result<i32> {
    let instance = module.instantiate_async(&mut *store).await?;
    let run = instance.get_typed_func::<(), i32>(&mut *store, "run")?;
    run.call_async(&mut *store, ()).await
}

impl Sliced for Call {
    /// Runs until a slice's fuel is used. Code between two accesses uses at most that much, so a
    /// slice uses at most twice as much.
    fn step(&mut self, memory: &mut NodeMemory<'_>) -> Poll<Result<Vec<u8>, OffloadError>> {
        let before = self.fuel_used;
        loop {
            let asked = self.shared.lock().access.take();
            if let Some(access) = asked {
                let answer = access.on(memory);
                self.shared.lock().answer = Some(answer);
            }
            let mut context = Context::from_waker(Waker::noop());
            match self.running.as_mut().poll(&mut context) {
                Poll::Ready((ended, left)) => {
                    self.fuel_used = self.fuel_max - left;
                    return Poll::Ready(self.ended(ended));
                }
                Poll::Pending => {
                    let mail = self.shared.lock();
                    if mail.access.is_none() {
                        // The next access reports the exact amount.
                        self.fuel_used = (self.fuel_used + SLICE_FUEL).min(self.fuel_max);
                        return Poll::Pending;
                    }
                    self.fuel_used = self.fuel_used.max(self.fuel_max - mail.fuel_left);
                    if self.fuel_used - before >= SLICE_FUEL {
                        return Poll::Pending;
                    }
                }
            }
        }
    }

    fn fuel_used(&self) -> u64 {
        self.fuel_used
    }
}
