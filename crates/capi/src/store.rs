//! The key-value store, and its clients.

use std::ffi::c_void;
use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::sync::PoisonError;

use ethermem_kv::{Client, Config, Error, Index, Store, Value};

use crate::border::{self, Buffer, Target};
use crate::handles::{
    self, ClientHandle, Owner, PendingHandle, PoolHandle, SharedClient, StoreHandle,
};
use crate::operation::end_composed;
use crate::status::{Failure, Status, call};

/// The memory node walks the index, in one round trip.
pub const INDEX_NODE: u32 = 0;
/// The client walks the index: a round trip for the bucket and one for each record on the way.
pub const INDEX_CLIENT: u32 = 1;

fn index(number: u32) -> Result<Index, Failure> {
    match number {
        INDEX_NODE => Ok(Index::Node),
        INDEX_CLIENT => Ok(Index::Client),
        other => {
            let text = format!("index {other}: must be 0 to {INDEX_CLIENT}");
            Err(Failure::new(Status::BadArgument, text))
        }
    }
}

/// Creates an empty key-value store on the memory nodes of a pool, and waits for completion: on the
/// first `memory_nodes`, or on all if that is 0. `buckets` is the initial number per node, a power
/// of two; 1024 suits most uses. A program with untrusted keys draws `hash_seed` at random.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rstore(
    pool: PoolHandle,
    memory_nodes: u16,
    buckets: u64,
    hash_seed: u64,
    store: *mut StoreHandle,
) -> Status {
    call(|| {
        let (to, (pool, owner)) = (Target::new(store, "store")?, handles::pool(pool)?);
        let memory_nodes = (memory_nodes > 0).then_some(memory_nodes);
        let config = Config { memory_nodes, buckets, hash_seed };
        let handle = handles::add_store(pool.try_run(Store::create(&pool, config))??, owner)?;
        // SAFETY: the header requires that a handle can be written.
        unsafe { to.put(handle) };
        Ok(())
    })
}

/// Closes a store's handle. Its data in the memory nodes stays, and its clients go on.
#[unsafe(no_mangle)]
pub extern "C" fn rstore_close(store: StoreHandle) -> Status {
    call(|| handles::remove_store(store))
}

/// Creates a client on the next compute node in round-robin order. Its operations are done one at a
/// time. `index` is the side that walks the index: ETHERMEM_INDEX_NODE, by the operation
/// `key-value`, or ETHERMEM_INDEX_CLIENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rclient(
    store: StoreHandle,
    index: u32,
    client: *mut ClientHandle,
) -> Status {
    call(|| {
        let (to, (store, owner)) = (Target::new(client, "client")?, handles::store(store)?);
        let handle = handles::add_client(store.client(self::index(index)?), owner)?;
        // SAFETY: the header requires that a handle can be written.
        unsafe { to.put(handle) };
        Ok(())
    })
}

/// Creates a client as `rclient`, on the given compute node, from 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rclient_on(
    store: StoreHandle,
    compute_node: u16,
    index: u32,
    client: *mut ClientHandle,
) -> Status {
    call(|| {
        let (to, (store, owner)) = (Target::new(client, "client")?, handles::store(store)?);
        let made = store.client_on(compute_node, self::index(index)?)?;
        let handle = handles::add_client(made, owner)?;
        // SAFETY: the header requires that a handle can be written.
        unsafe { to.put(handle) };
        Ok(())
    })
}

/// Closes the handle of a client of a store.
#[unsafe(no_mangle)]
pub extern "C" fn rclient_close(client: ClientHandle) -> Status {
    call(|| handles::remove_client(client))
}

/// The client of an operation, until that ends or is forgotten.
struct Taken {
    /// Present until it is returned.
    client: Option<Client>,
    owner: SharedClient,
}

impl Deref for Taken {
    type Target = Client;

    fn deref(&self) -> &Client {
        self.client.as_ref().expect("it goes back last")
    }
}

impl DerefMut for Taken {
    fn deref_mut(&mut self) -> &mut Client {
        self.client.as_mut().expect("it goes back last")
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        *self.owner.lock().unwrap_or_else(PoisonError::into_inner) = self.client.take();
    }
}

/// Takes the client of a handle, unless it has an operation in flight.
fn take(handle: ClientHandle) -> Result<(Taken, Owner), Failure> {
    let (shared, owner) = handles::client(handle)?;
    let text = "the client has an operation under way: poll or forget that first";
    let client = shared.lock().unwrap_or_else(PoisonError::into_inner).take();
    let client = client.ok_or_else(|| Failure::new(Status::Busy, text))?;
    Ok((Taken { client: Some(client), owner: shared }, owner))
}

/// # Safety
/// Unless they are null, a handle must be writable at `pending`, and a bool at `done` until the
/// operation has ended.
unsafe fn tell<F>(
    client: ClientHandle,
    done: *mut bool,
    pending: *mut PendingHandle,
    operation: impl FnOnce(Taken) -> F,
) -> Result<(), Failure>
where
    F: Future<Output = Result<bool, Error>> + Send + 'static,
{
    let (taken, owner) = take(client)?;
    let to = Target::optional(done);
    // SAFETY: the caller upholds this function's contract.
    unsafe {
        end_composed(owner, pending, operation(taken), move |is_done| {
            to.put(is_done);
            Ok(())
        })
    }
}

/// # Safety
/// Unless their length is 0, both must be readable.
unsafe fn key_and_value(
    key: (*const c_void, u64),
    value: (*const c_void, u64),
) -> Result<[Vec<u8>; 2], Failure> {
    // SAFETY: the caller upholds this function's contract.
    unsafe {
        let key = border::bytes(key.0, key.1, "key")?;
        Ok([key.to_vec(), border::bytes(value.0, value.1, "value")?.to_vec()])
    }
}

/// Stores a new key. Whether the key was absent is stored in `created`, which may be null. Keys and
/// values are not used after the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rkv_create(
    client: ClientHandle,
    key: *const c_void,
    key_bytes: u64,
    value: *const c_void,
    value_bytes: u64,
    created: *mut bool,
    pending: *mut PendingHandle,
) -> Status {
    call(|| {
        // SAFETY: the header requires readable bytes, and places that last.
        unsafe {
            let [key, value] = key_and_value((key, key_bytes), (value, value_bytes))?;
            tell(
                client,
                created,
                pending,
                |mut taken| async move { taken.create(&key, &value).await },
            )
        }
    })
}

/// Replaces the value of a key. Whether the key existed is stored in `updated`, which may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rkv_update(
    client: ClientHandle,
    key: *const c_void,
    key_bytes: u64,
    value: *const c_void,
    value_bytes: u64,
    updated: *mut bool,
    pending: *mut PendingHandle,
) -> Status {
    call(|| {
        // SAFETY: the header requires readable bytes, and places that last.
        unsafe {
            let [key, value] = key_and_value((key, key_bytes), (value, value_bytes))?;
            tell(
                client,
                updated,
                pending,
                |mut taken| async move { taken.update(&key, &value).await },
            )
        }
    })
}

/// Stores a value for a key, whether or not the key exists.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rkv_put(
    client: ClientHandle,
    key: *const c_void,
    key_bytes: u64,
    value: *const c_void,
    value_bytes: u64,
    pending: *mut PendingHandle,
) -> Status {
    call(|| {
        // SAFETY: the header requires readable bytes, and a place for a handle, or null.
        unsafe {
            let [key, value] = key_and_value((key, key_bytes), (value, value_bytes))?;
            tell(client, std::ptr::null_mut(), pending, |mut taken| async move {
                taken.put(&key, &value).await.map(|()| true)
            })
        }
    })
}

/// Reads the value of a key. Whether the key exists is stored in `found`. If so, its value is
/// stored in `value`, and the value's length in `value_bytes`. A value longer than
/// `value_bytes_max` is refused as ETHERMEM_STATUS_BUFFER_TOO_SMALL, and its length is stored
/// anyway.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rkv_read(
    client: ClientHandle,
    key: *const c_void,
    key_bytes: u64,
    value: *mut c_void,
    value_bytes_max: u64,
    value_bytes: *mut u64,
    found: *mut bool,
    pending: *mut PendingHandle,
) -> Status {
    call(|| {
        let buffer = Buffer::new(value, value_bytes_max, "value")?;
        let length = Target::new(value_bytes, "value_bytes")?;
        let is_there = Target::new(found, "found")?;
        // SAFETY: the header requires readable bytes.
        let key = unsafe { border::bytes(key, key_bytes, "key") }?.to_vec();
        let (mut taken, owner) = take(client)?;
        let reading = async move { taken.read(&key).await };
        let deliver = move |read: Option<Value>| {
            // SAFETY: the header requires places that last until the operation has ended.
            unsafe {
                is_there.put(read.is_some());
                let Some(read) = read else { return Ok(()) };
                length.put(read.bytes.len() as u64);
                buffer.fill(&read.bytes)
            }
        };
        // SAFETY: the header requires that a handle can be written, or null.
        unsafe { end_composed(owner, pending, reading, deliver) }
    })
}

/// Deletes a key. Whether the key existed is stored in `deleted`, which may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rkv_delete(
    client: ClientHandle,
    key: *const c_void,
    key_bytes: u64,
    deleted: *mut bool,
    pending: *mut PendingHandle,
) -> Status {
    call(|| {
        // SAFETY: the header requires readable bytes, and places that last.
        unsafe {
            let key = border::bytes(key, key_bytes, "key")?.to_vec();
            tell(client, deleted, pending, |mut taken| async move { taken.delete(&key).await })
        }
    })
}

/// Deletes every key that exists when its bucket is visited.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rkv_clear(client: ClientHandle, pending: *mut PendingHandle) -> Status {
    call(|| {
        // SAFETY: the header requires that a handle can be written, or null.
        unsafe {
            tell(client, std::ptr::null_mut(), pending, |mut taken| async move {
                taken.clear().await.map(|()| true)
            })
        }
    })
}
