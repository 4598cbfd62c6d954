//! Pools and threads.

use std::ffi::{CString, c_char};

use ethermem::Pool;

use crate::border::{self, Buffer, Target};
use crate::handles::{self, PoolHandle, ThreadHandle};
use crate::status::{Status, call};

/// Opens the pool that `url` names: `local:`, `sim:edm?nodes=144&link_gbps=100`, `udp://host:7400`,
/// `ring://eth0`, `node://host:7400`. It is open until `rclose`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropen(url: *const c_char, pool: *mut PoolHandle) -> Status {
    call(|| {
        let to = Target::new(pool, "pool")?;
        // SAFETY: the header asks for a text with a zero at its end.
        let url = unsafe { border::text(url, "url") }?;
        let handle = handles::add_pool(Pool::open(url)?)?;
        // SAFETY: the header asks for a place for a handle.
        unsafe { to.put(handle) };
        Ok(())
    })
}

/// Closes a pool, and with it its threads and their memory. Refused as `ETHERMEM_STATUS_BUSY` while
/// operations have handles. Checks the invariants of a simulated fabric: after
/// `ETHERMEM_STATUS_VIOLATED` the pool is closed too.
#[unsafe(no_mangle)]
pub extern "C" fn rclose(pool: PoolHandle) -> Status {
    call(|| Ok(handles::remove_pool(pool)?.close()?))
}

/// Stores how the node of a `node:` pool is reached, and what of the other way was measured: a text
/// with a zero at its end, empty where the URL left no choice. One of more than `text_bytes_max`
/// bytes is refused as `ETHERMEM_STATUS_BUFFER_TOO_SMALL`; 1,024 are enough.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rchoice(
    pool: PoolHandle,
    text: *mut c_char,
    text_bytes_max: u64,
) -> Status {
    call(|| {
        let to = Buffer::new(text.cast(), text_bytes_max, "text")?;
        let (pool, _) = handles::pool(pool)?;
        let choice = CString::new(pool.choice().unwrap_or_default()).unwrap_or_default();
        // SAFETY: the header asks for so many bytes.
        unsafe { to.fill(choice.as_bytes_with_nul()) }
    })
}

/// Stores how many compute nodes and memory nodes there are; either may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnodes(
    pool: PoolHandle,
    compute_nodes: *mut u16,
    memory_nodes: *mut u16,
) -> Status {
    call(|| {
        let (pool, _) = handles::pool(pool)?;
        let (computes, memories) = pool.nodes();
        // SAFETY: the header asks for places for both, or null.
        unsafe {
            Target::optional(compute_nodes).put(computes);
            Target::optional(memory_nodes).put(memories);
        }
        Ok(())
    })
}

/// Stores what a pool says.
///
/// # Safety
/// Unless it is null, a value can be written to `to`.
unsafe fn tell<T>(
    pool: PoolHandle,
    to: *mut T,
    name: &'static str,
    ask: impl FnOnce(&Pool) -> T,
) -> Status {
    call(|| {
        let (to, (pool, _)) = (Target::new(to, name)?, handles::pool(pool)?);
        // SAFETY: the caller's promise.
        unsafe { to.put(ask(&pool)) };
        Ok(())
    })
}

/// Stores the picoseconds since the pool was opened: the fabric's own where it has a time of its
/// own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnow(pool: PoolHandle, now_ps: *mut u64) -> Status {
    // SAFETY: the header asks for a place for a word.
    unsafe { tell(pool, now_ps, "now_ps", |pool| pool.now().0) }
}

/// Stores whether time is a simulated fabric's, which passes in operations and `rsleep` alone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ris_simulated(pool: PoolHandle, is_simulated: *mut bool) -> Status {
    // SAFETY: the header asks for a place for a bool.
    unsafe { tell(pool, is_simulated, "is_simulated", Pool::is_simulated) }
}

/// Stores how many events the simulated fabric has handled; 0 elsewhere.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn revents(pool: PoolHandle, events: *mut u64) -> Status {
    // SAFETY: the header asks for a place for a word.
    unsafe { tell(pool, events, "events", Pool::events) }
}

/// Lets what is under way go on until an operation ends or for a short rest, and stores false where
/// nothing is under way. For programs that ask many operations in turn by `rtest`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rstep(pool: PoolHandle, under_way: *mut bool) -> Status {
    // SAFETY: the header asks for a place for a bool.
    unsafe { tell(pool, under_way, "under_way", Pool::step) }
}

/// Makes a new process and its first thread, on the next of the compute nodes in turn.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rthread(pool: PoolHandle, thread: *mut ThreadHandle) -> Status {
    call(|| {
        let (to, (pool, owner)) = (Target::new(thread, "thread")?, handles::pool(pool)?);
        let handle = handles::add_thread(pool.thread()?, owner)?;
        // SAFETY: the header asks for a place for a handle.
        unsafe { to.put(handle) };
        Ok(())
    })
}

/// Makes a new process and its first thread, on a compute node, from 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rthread_on(
    pool: PoolHandle,
    compute_node: u16,
    thread: *mut ThreadHandle,
) -> Status {
    call(|| {
        let (to, (pool, owner)) = (Target::new(thread, "thread")?, handles::pool(pool)?);
        let handle = handles::add_thread(pool.thread_on(compute_node)?, owner)?;
        // SAFETY: the header asks for a place for a handle.
        unsafe { to.put(handle) };
        Ok(())
    })
}

/// Makes another thread of the same process, on the same compute node.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rfork(thread: ThreadHandle, forked: *mut ThreadHandle) -> Status {
    call(|| {
        let (to, (thread, owner)) = (Target::new(forked, "forked")?, handles::thread(thread)?);
        let handle = handles::add_thread(thread.fork_on(thread.compute())?, owner)?;
        // SAFETY: the header asks for a place for a handle.
        unsafe { to.put(handle) };
        Ok(())
    })
}

/// Makes another thread of the same process, on a compute node, from 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rfork_on(
    thread: ThreadHandle,
    compute_node: u16,
    forked: *mut ThreadHandle,
) -> Status {
    call(|| {
        let (to, (thread, owner)) = (Target::new(forked, "forked")?, handles::thread(thread)?);
        let handle = handles::add_thread(thread.fork_on(compute_node)?, owner)?;
        // SAFETY: the header asks for a place for a handle.
        unsafe { to.put(handle) };
        Ok(())
    })
}

/// Ends a thread's handle. Its memory stays, and what it has under way goes on.
#[unsafe(no_mangle)]
pub extern "C" fn rthread_close(thread: ThreadHandle) -> Status {
    call(|| handles::remove_thread(thread))
}

/// Stores the number of the thread's process, which `rshare` takes, and the compute node that it is
/// on; either may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rwhere(
    thread: ThreadHandle,
    process: *mut u32,
    compute_node: *mut u16,
) -> Status {
    call(|| {
        let (thread, _) = handles::thread(thread)?;
        // SAFETY: the header asks for places for both, or null.
        unsafe {
            Target::optional(process).put(thread.process().0);
            Target::optional(compute_node).put(thread.compute());
        }
        Ok(())
    })
}
