//! The imports of a module, all of them from `ethermem`.
//!
//! An access suspends the module; its stepper does the access and resumes it. Each access takes
//! fuel according to its cost, so that no work is free.

use std::future::poll_fn;
use std::task::Poll;

use ethermem_clio::Address;
use ethermem_clio::offload::OffloadError;
use ethermem_wire::RmwOperation;
use ethermem_wire::clio::{ClioStatus, Permissions};
use wasmtime::{Caller, Linker, Memory, Result, Trap};

use crate::access::{Access, Answer, Given, PIECE_BYTES, Shared, status};
use crate::call::Memories;

/// Module name of the imports.
pub(crate) const IMPORTS: &str = "ethermem";

/// Fuel of any access, and octets per further unit.
const ACCESS_FUEL: u64 = 200;
const OCTETS_EACH_FUEL: u64 = 8;
/// Fuel of allocating or freeing a region, and of each KiB of it.
const REGION_FUEL: u64 = 5_000;
/// Longest result in bytes.
const RESULT_BYTES_MAX: usize = 65_000;
/// Longest line for people in bytes.
const PROBLEM_BYTES_MAX: usize = 1024;

/// State of a running module beside its memory.
pub(crate) struct Host {
    pub(crate) shared: Shared,
    pub(crate) memories: Memories,
    pub(crate) arguments: Vec<u8>,
    pub(crate) result: Vec<u8>,
    pub(crate) problem: String,
    /// Error of the last refused access.
    pub(crate) refused: Option<OffloadError>,
}

/// A forbidden action of a module, which stops it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    #[error("{what}: {bytes} B at {at:#x} of the module's memory: it has {has} B")]
    Pointer { what: &'static str, at: u32, bytes: u32, has: usize },
    #[error("arguments: {bytes} B at {at}: there are {has} B")]
    Arguments { at: u32, bytes: u32, has: usize },
    #[error("result: must be at most {RESULT_BYTES_MAX} B")]
    Result,
    #[error("{what}: {found}: must be {allowed}")]
    Number { what: &'static str, found: i32, allowed: &'static str },
}

type Called<'a> = Caller<'a, Host>;
/// Name and operation of an atomic with one operand.
type Atomic = (&'static str, fn(u64) -> RmwOperation);

fn burn(caller: &mut Called<'_>, fuel: u64) -> Result<()> {
    let left = caller.get_fuel()?.checked_sub(fuel).ok_or(Trap::OutOfFuel)?;
    caller.set_fuel(left)?;
    caller.data().shared.lock().fuel_left = left;
    Ok(())
}

fn memory(caller: &mut Called<'_>) -> Memory {
    let exported = caller.get_export("memory").and_then(wasmtime::Extern::into_memory);
    exported.expect("a module is loaded only if it exports its memory")
}

/// A part of the module's memory.
fn part<'c>(
    caller: &'c mut Called<'_>,
    what: &'static str,
    (at, bytes): (i32, u32),
) -> Result<&'c mut [u8]> {
    let all = memory(caller).data_mut(&mut *caller);
    let (at, has) = (at.cast_unsigned(), all.len());
    let end = (at as usize).checked_add(bytes as usize);
    let part = end.and_then(|end| all.get_mut(at as usize..end));
    part.ok_or_else(|| Fault::Pointer { what, at, bytes, has }.into())
}

/// Suspends the module until an access has been done.
async fn ask(caller: &mut Called<'_>, access: Access) -> Answer {
    let shared = caller.data().shared.clone();
    shared.lock().access = Some(access);
    let answer = poll_fn(|_| match shared.lock().answer.take() {
        Some(answer) => Poll::Ready(answer),
        None => Poll::Pending,
    });
    answer.await
}

/// The status of an access for the module. The caller of the module receives the error of the last
/// refused access, if the module returns that status.
fn told(caller: &mut Called<'_>, answer: Result<(), OffloadError>) -> i32 {
    match answer {
        Ok(()) => ClioStatus::Ok as i32,
        Err(error) => {
            let status = status(&error) as i32;
            caller.data_mut().refused = Some(error);
            status
        }
    }
}

async fn read(caller: &mut Called<'_>, address: u64, to: i32, bytes: u32) -> Result<i32> {
    part(caller, "read", (to, bytes))?;
    let mut done = 0;
    while done < bytes {
        let piece = (bytes - done).min(PIECE_BYTES);
        burn(caller, ACCESS_FUEL + u64::from(piece) / OCTETS_EACH_FUEL)?;
        let access = Access::Read(Address(address).add(done.into()), piece);
        match ask(caller, access).await {
            Ok(Given::Bytes(found)) => {
                let at = to.wrapping_add_unsigned(done);
                part(caller, "read", (at, piece))?.copy_from_slice(&found);
            }
            Ok(_) => unreachable!("a read gives bytes"),
            Err(error) => return Ok(told(caller, Err(error))),
        }
        done += piece;
    }
    Ok(told(caller, Ok(())))
}

async fn write(caller: &mut Called<'_>, address: u64, from: i32, bytes: u32) -> Result<i32> {
    part(caller, "write", (from, bytes))?;
    let mut done = 0;
    while done < bytes {
        let piece = (bytes - done).min(PIECE_BYTES);
        burn(caller, ACCESS_FUEL + u64::from(piece) / OCTETS_EACH_FUEL)?;
        let at = from.wrapping_add_unsigned(done);
        let data = part(caller, "write", (at, piece))?.to_vec();
        let access = Access::Write(Address(address).add(done.into()), data);
        if let Err(error) = ask(caller, access).await {
            return Ok(told(caller, Err(error)));
        }
        done += piece;
    }
    Ok(told(caller, Ok(())))
}

/// Does an access that gives a number, and stores the number in the module's memory.
async fn number(
    caller: &mut Called<'_>,
    (what, fuel): (&'static str, u64),
    access: Access,
    to: i32,
) -> Result<i32> {
    part(caller, what, (to, 8))?;
    burn(caller, fuel)?;
    let answer = match ask(caller, access).await {
        Ok(Given::Number(number)) => {
            part(caller, what, (to, 8))?.copy_from_slice(&number.to_le_bytes());
            Ok(())
        }
        Ok(_) => unreachable!("it gives a number"),
        Err(error) => Err(error),
    };
    Ok(told(caller, answer))
}

fn region_fuel(bytes: u64) -> u64 {
    REGION_FUEL.saturating_add(bytes >> 10)
}

fn permissions(bits: i32) -> Result<Permissions> {
    let known = u8::try_from(bits).ok().and_then(Permissions::from_bits);
    let allowed = "0 to 3: 1 to read, 2 to write";
    known.ok_or_else(|| Fault::Number { what: "permissions", found: bits, allowed }.into())
}

/// Copies a part of the call's arguments.
fn arguments(caller: &mut Called<'_>, (at, to, bytes): (i32, i32, i32)) -> Result<()> {
    let (at, bytes) = (at.cast_unsigned(), bytes.cast_unsigned());
    let has = caller.data().arguments.len();
    let end = (at as usize).checked_add(bytes as usize);
    let range = end.filter(|&end| end <= has).map(|end| at as usize..end);
    let range = range.ok_or(Fault::Arguments { at, bytes, has })?;
    burn(caller, ACCESS_FUEL + u64::from(bytes) / OCTETS_EACH_FUEL)?;
    let all = std::mem::take(&mut caller.data_mut().arguments);
    let copied = part(caller, "arguments", (to, bytes)).map(|to| to.copy_from_slice(&all[range]));
    caller.data_mut().arguments = all;
    copied
}

/// Appends bytes to the result.
fn result(caller: &mut Called<'_>, (from, bytes): (i32, i32)) -> Result<()> {
    let bytes = bytes.cast_unsigned();
    if bytes as usize > RESULT_BYTES_MAX - caller.data().result.len() {
        return Err(Fault::Result.into());
    }
    burn(caller, ACCESS_FUEL + u64::from(bytes) / OCTETS_EACH_FUEL)?;
    let bytes = part(caller, "result", (from, bytes))?.to_vec();
    caller.data_mut().result.extend_from_slice(&bytes);
    Ok(())
}

/// Sets the error text of the call.
fn problem(caller: &mut Called<'_>, (from, bytes): (i32, i32)) -> Result<()> {
    let bytes = bytes.cast_unsigned().min(PROBLEM_BYTES_MAX as u32);
    burn(caller, ACCESS_FUEL + u64::from(bytes) / OCTETS_EACH_FUEL)?;
    let text = String::from_utf8_lossy(part(caller, "problem", (from, bytes))?).into_owned();
    caller.data_mut().problem = text.replace(char::is_control, " ");
    Ok(())
}

/// Registers all imports.
pub(crate) fn link(linker: &mut Linker<Host>) -> Result<()> {
    linker.func_wrap(IMPORTS, "arguments_bytes", |caller: Called<'_>| {
        u32::try_from(caller.data().arguments.len()).unwrap_or(u32::MAX)
    })?;
    linker.func_wrap(
        IMPORTS,
        "arguments",
        |mut caller: Called<'_>, at: i32, to: i32, n: i32| arguments(&mut caller, (at, to, n)),
    )?;
    linker.func_wrap(IMPORTS, "result", |mut caller: Called<'_>, from: i32, bytes: i32| {
        result(&mut caller, (from, bytes))
    })?;
    linker.func_wrap(IMPORTS, "problem", |mut caller: Called<'_>, from: i32, bytes: i32| {
        problem(&mut caller, (from, bytes))
    })?;
    link_memory(linker)?;
    link_atomics(linker)
}

fn link_memory(linker: &mut Linker<Host>) -> Result<()> {
    linker.func_wrap_async(
        IMPORTS,
        "read",
        |mut caller: Called<'_>, (address, to, bytes): (u64, i32, u32)| {
            Box::new(async move { read(&mut caller, address, to, bytes).await })
        },
    )?;
    linker.func_wrap_async(
        IMPORTS,
        "write",
        |mut caller: Called<'_>, (address, from, bytes): (u64, i32, u32)| {
            Box::new(async move { write(&mut caller, address, from, bytes).await })
        },
    )?;
    linker.func_wrap_async(
        IMPORTS,
        "allocate",
        |mut caller: Called<'_>, (bytes, bits, to): (u64, i32, i32)| {
            Box::new(async move {
                let access = Access::Allocate(bytes, permissions(bits)?);
                number(&mut caller, ("allocate", region_fuel(bytes)), access, to).await
            })
        },
    )?;
    linker.func_wrap_async(IMPORTS, "free", |mut caller: Called<'_>, (address,): (u64,)| {
        Box::new(async move {
            burn(&mut caller, REGION_FUEL)?;
            let freed = ask(&mut caller, Access::Free(Address(address))).await;
            Ok(told(&mut caller, freed.map(drop)))
        })
    })?;
    linker.func_wrap_async(IMPORTS, "process", |mut caller: Called<'_>, (): ()| {
        Box::new(async move {
            burn(&mut caller, ACCESS_FUEL)?;
            match ask(&mut caller, Access::Process).await {
                Ok(Given::Number(process)) => Ok(process as u32),
                _ => unreachable!("a process has a number"),
            }
        })
    })?;
    Ok(())
}

fn link_atomics(linker: &mut Linker<Host>) -> Result<()> {
    linker.func_wrap_async(
        IMPORTS,
        "compare_and_swap",
        |mut caller: Called<'_>, (address, expected, desired, to): (u64, u64, u64, i32)| {
            Box::new(async move {
                let operation = RmwOperation::CompareAndSwap { expected, desired };
                let access = Access::Modify(Address(address), operation);
                number(&mut caller, ("compare_and_swap", ACCESS_FUEL), access, to).await
            })
        },
    )?;
    let operations: [Atomic; 5] = [
        ("fetch_add", RmwOperation::FetchAndAdd),
        ("swap", RmwOperation::Swap),
        ("fetch_and", RmwOperation::And),
        ("fetch_or", RmwOperation::Or),
        ("fetch_xor", RmwOperation::Xor),
    ];
    for (name, operation) in operations {
        linker.func_wrap_async(
            IMPORTS,
            name,
            move |mut caller: Called<'_>, (address, operand, to): (u64, u64, i32)| {
                Box::new(async move {
                    let access = Access::Modify(Address(address), operation(operand));
                    number(&mut caller, (name, ACCESS_FUEL), access, to).await
                })
            },
        )?;
    }
    Ok(())
}
