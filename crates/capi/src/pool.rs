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
        // SAFETY: the header requires a zero-terminated string.
        let url = unsafe { border::text(url, "url") }?;
        let handle = handles::add_pool(Pool::open(url)?)?;
        // SAFETY: the header requires that a handle can be written.
        unsafe { to.put(handle) };
        Ok(())
    })
}

/// Closes a pool, and with it its threads and their memory. It is refused as `ETHERMEM_STATUS_BUSY`
/// while operations have handles. It checks the invariants of a simulated fabric: after
/// `ETHERMEM_STATUS_VIOLATED` the pool is closed, too.
#[unsafe(no_mangle)]
pub extern "C" fn rclose(pool: PoolHandle) -> Status {
    call(|| Ok(handles::remove_pool(pool)?.close()?))
}

/// Stores the transport of a `node:` pool, with the measured round trips of both transports. The
/// text is zero-terminated, and empty if the URL left no choice. A text of more than
/// `text_bytes_max` bytes is refused as `ETHERMEM_STATUS_BUFFER_TOO_SMALL`; 1,024 are enough.
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
        // SAFETY: the header requires `text_bytes_max` writable bytes.
        unsafe { to.fill(choice.as_bytes_with_nul()) }
    })
}

/// Stores the numbers of compute nodes and of memory nodes; either may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnodes(
    pool: PoolHandle,
    compute_nodes: *mut u16,
    memory_nodes: *mut u16,
) -> Status {
    call(|| {
        let (pool, _) = handles::pool(pool)?;
        let (computes, memories) = pool.nodes();
        // SAFETY: the header requires that both can be written, or are null.
        unsafe {
            Target::optional(compute_nodes).put(computes);
            Target::optional(memory_nodes).put(memories);
        }
        Ok(())
    })
}

/// Stores a property of a pool.
///
/// # Safety
/// Unless it is null, a value must be writable at `to`.
unsafe fn tell<T>(
    pool: PoolHandle,
    to: *mut T,
    name: &'static str,
    ask: impl FnOnce(&Pool) -> T,
) -> Status {
    call(|| {
        let (to, (pool, _)) = (Target::new(to, name)?, handles::pool(pool)?);
        // SAFETY: the caller upholds this function's contract.
        unsafe { to.put(ask(&pool)) };
        Ok(())
    })
}

/// Stores the picoseconds since the pool was opened: in the fabric's virtual time if it has one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnow(pool: PoolHandle, now_ps: *mut u64) -> Status {
    // SAFETY: the header requires that a word can be written.
    unsafe { tell(pool, now_ps, "now_ps", |pool| pool.now().0) }
}

/// Stores whether time is a simulated fabric's, which advances only in operations and `rsleep`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ris_simulated(pool: PoolHandle, is_simulated: *mut bool) -> Status {
    // SAFETY: the header requires that a bool can be written.
    unsafe { tell(pool, is_simulated, "is_simulated", Pool::is_simulated) }
}

/// Stores the number of events that the simulated fabric has handled; 0 on other pools.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn revents(pool: PoolHandle, events: *mut u64) -> Status {
    // SAFETY: the header requires that a word can be written.
    unsafe { tell(pool, events, "events", Pool::events) }
}

/// Runs until an operation ends or for a short rest, and stores false if nothing is in flight. It
/// is for programs that poll many operations by `rtest`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rstep(pool: PoolHandle, under_way: *mut bool) -> Status {
    // SAFETY: the header requires that a bool can be written.
    unsafe { tell(pool, under_way, "under_way", Pool::step) }
}

/// Creates a process and its first thread, on the next compute node in round-robin order.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rthread(pool: PoolHandle, thread: *mut ThreadHandle) -> Status {
    call(|| {
        let (to, (pool, owner)) = (Target::new(thread, "thread")?, handles::pool(pool)?);
        let handle = handles::add_thread(pool.thread()?, owner)?;
        // SAFETY: the header requires that a handle can be written.
        unsafe { to.put(handle) };
        Ok(())
    })
}

/// Creates a process and its first thread, on the given compute node, from 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rthread_on(
    pool: PoolHandle,
    compute_node: u16,
    thread: *mut ThreadHandle,
) -> Status {
    call(|| {
        let (to, (pool, owner)) = (Target::new(thread, "thread")?, handles::pool(pool)?);
        let handle = handles::add_thread(pool.thread_on(compute_node)?, owner)?;
        // SAFETY: the header requires that a handle can be written.
        unsafe { to.put(handle) };
        Ok(())
    })
}

/// Creates another thread of the same process, on the same compute node.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rfork(thread: ThreadHandle, forked: *mut ThreadHandle) -> Status {
    call(|| {
        let (to, (thread, owner)) = (Target::new(forked, "forked")?, handles::thread(thread)?);
        let handle = handles::add_thread(thread.fork_on(thread.compute())?, owner)?;
        // SAFETY: the header requires that a handle can be written.
        unsafe { to.put(handle) };
        Ok(())
    })
}

/// Creates another thread of the same process, on the given compute node, from 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rfork_on(
    thread: ThreadHandle,
    compute_node: u16,
    forked: *mut ThreadHandle,
) -> Status {
    call(|| {
        let (to, (thread, owner)) = (Target::new(forked, "forked")?, handles::thread(thread)?);
        let handle = handles::add_thread(thread.fork_on(compute_node)?, owner)?;
        // SAFETY: the header requires that a handle can be written.
        unsafe { to.put(handle) };
        Ok(())
    })
}

/// Closes a thread's handle. Its memory stays, and its operations in flight go on.
#[unsafe(no_mangle)]
pub extern "C" fn rthread_close(thread: ThreadHandle) -> Status {
    call(|| handles::remove_thread(thread))
}

/// Stores the number of the thread's process, which `rshare` takes, and the index of its compute
/// node; either may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rwhere(
    thread: ThreadHandle,
    process: *mut u32,
    compute_node: *mut u16,
) -> Status {
    call(|| {
        let (thread, _) = handles::thread(thread)?;
        // SAFETY: the header requires that both can be written, or are null.
        unsafe {
            Target::optional(process).put(thread.process().0);
            Target::optional(compute_node).put(thread.compute());
        }
        Ok(())
    })
}
