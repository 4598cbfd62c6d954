//! Handles: numbers for objects of Rust. A number is never reused, so a closed handle is
//! recognized.

use std::sync::{Arc, LazyLock, Mutex, PoisonError, RwLock};

use ethermem::{Pool, Thread};
use ethermem_kv::{Client, Store};
use slotmap::{DefaultKey, Key, KeyData, SlotMap};

use crate::operation::Operation;
use crate::status::{Failure, Status};

/// A pool. `{0}` is none.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolHandle {
    id: u64,
}

/// A thread: an ordered stream of operations. `{0}` is none. Machine threads may share one.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadHandle {
    id: u64,
}

/// An operation in flight. `{0}` is none.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingHandle {
    id: u64,
}

/// A key-value store. `{0}` is none.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreHandle {
    id: u64,
}

/// A client of a store: a stream of operations, one at a time. `{0}` is none.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientHandle {
    id: u64,
}

impl PendingHandle {
    pub(crate) const NONE: PendingHandle = PendingHandle { id: 0 };
}

/// Key of the pool that an object belongs to.
pub(crate) type Owner = DefaultKey;
/// An operation, until its result is taken.
pub(crate) type Slot = Arc<Mutex<Option<Box<dyn Operation>>>>;

/// A client of a store; `None` while an operation in flight holds it.
pub(crate) type SharedClient = Arc<Mutex<Option<Client>>>;

/// The object of a handle. All kinds are in one table, and a number has one kind.
enum Entry {
    Pool(Pool),
    Thread(Thread, Owner),
    Pending(Slot, Owner),
    Store(Store, Owner),
    Client(SharedClient, Owner),
}

impl Entry {
    fn owner(&self) -> Option<Owner> {
        match self {
            Entry::Pool(_) => None,
            Entry::Thread(_, owner)
            | Entry::Pending(_, owner)
            | Entry::Store(_, owner)
            | Entry::Client(_, owner) => Some(*owner),
        }
    }
}

type Table = SlotMap<DefaultKey, Entry>;
static TABLE: LazyLock<RwLock<Table>> = LazyLock::new(RwLock::default);

fn key(id: u64) -> DefaultKey {
    KeyData::from_ffi(id).into()
}

fn read<R>(look: impl FnOnce(&Table) -> R) -> R {
    look(&TABLE.read().unwrap_or_else(PoisonError::into_inner))
}

fn write<R>(change: impl FnOnce(&mut Table) -> R) -> R {
    change(&mut TABLE.write().unwrap_or_else(PoisonError::into_inner))
}

fn bad(kind: &str) -> Failure {
    let text = format!("not a handle of {kind}: null, closed, already polled, or of another kind");
    Failure::new(Status::BadHandle, text)
}

/// A number for an object of a pool, unless the pool was closed meanwhile.
fn insert(entry: Entry) -> Result<u64, Failure> {
    write(|table| {
        if entry.owner().is_some_and(|owner| !table.contains_key(owner)) {
            return Err(bad("an open pool"));
        }
        Ok(table.insert(entry).data().as_ffi())
    })
}

pub(crate) fn add_pool(pool: Pool) -> Result<PoolHandle, Failure> {
    insert(Entry::Pool(pool)).map(|id| PoolHandle { id })
}

pub(crate) fn add_thread(thread: Thread, owner: Owner) -> Result<ThreadHandle, Failure> {
    insert(Entry::Thread(thread, owner)).map(|id| ThreadHandle { id })
}

pub(crate) fn add_pending(
    operation: Box<dyn Operation>,
    owner: Owner,
) -> Result<PendingHandle, Failure> {
    let slot = Arc::new(Mutex::new(Some(operation)));
    insert(Entry::Pending(slot, owner)).map(|id| PendingHandle { id })
}

pub(crate) fn add_store(store: Store, owner: Owner) -> Result<StoreHandle, Failure> {
    insert(Entry::Store(store, owner)).map(|id| StoreHandle { id })
}

pub(crate) fn add_client(client: Client, owner: Owner) -> Result<ClientHandle, Failure> {
    let client = Arc::new(Mutex::new(Some(client)));
    insert(Entry::Client(client, owner)).map(|id| ClientHandle { id })
}

pub(crate) fn store(handle: StoreHandle) -> Result<(Store, Owner), Failure> {
    read(|table| match table.get(key(handle.id)) {
        Some(Entry::Store(store, owner)) => Ok((store.clone(), *owner)),
        _ => Err(bad("a store")),
    })
}

pub(crate) fn client(handle: ClientHandle) -> Result<(SharedClient, Owner), Failure> {
    read(|table| match table.get(key(handle.id)) {
        Some(Entry::Client(client, owner)) => Ok((client.clone(), *owner)),
        _ => Err(bad("a client of a store")),
    })
}

pub(crate) fn pool(handle: PoolHandle) -> Result<(Pool, Owner), Failure> {
    let owner = key(handle.id);
    read(|table| match table.get(owner) {
        Some(Entry::Pool(pool)) => Ok((pool.clone(), owner)),
        _ => Err(bad("a pool")),
    })
}

/// The pool that an object belongs to.
pub(crate) fn owning(owner: Owner) -> Result<Pool, Failure> {
    pool(PoolHandle { id: owner.data().as_ffi() }).map(|(pool, _)| pool)
}

pub(crate) fn thread(handle: ThreadHandle) -> Result<(Thread, Owner), Failure> {
    read(|table| match table.get(key(handle.id)) {
        Some(Entry::Thread(thread, owner)) => Ok((thread.clone(), *owner)),
        _ => Err(bad("a thread")),
    })
}

pub(crate) fn pending(handle: PendingHandle) -> Result<(Slot, Owner), Failure> {
    read(|table| match table.get(key(handle.id)) {
        Some(Entry::Pending(slot, owner)) => Ok((slot.clone(), *owner)),
        _ => Err(bad("an operation under way")),
    })
}

/// Closes the handle of a thread.
pub(crate) fn remove_thread(handle: ThreadHandle) -> Result<(), Failure> {
    remove(handle.id, "a thread", |entry| matches!(entry, Entry::Thread(..)))
}

/// Closes the handle of a store.
pub(crate) fn remove_store(handle: StoreHandle) -> Result<(), Failure> {
    remove(handle.id, "a store", |entry| matches!(entry, Entry::Store(..)))
}

/// Closes the handle of a client of a store.
pub(crate) fn remove_client(handle: ClientHandle) -> Result<(), Failure> {
    remove(handle.id, "a client of a store", |entry| matches!(entry, Entry::Client(..)))
}

fn remove(id: u64, kind: &str, is_it: impl FnOnce(&Entry) -> bool) -> Result<(), Failure> {
    // The entry is dropped after the table is unlocked, because dropping it may use the pool.
    let _entry = write(|table| match table.get(key(id)) {
        Some(entry) if is_it(entry) => Ok(table.remove(key(id))),
        _ => Err(bad(kind)),
    })?;
    Ok(())
}

/// Closes the handle of an operation, and gives the operation to one caller only.
pub(crate) fn remove_pending(handle: PendingHandle) -> Result<Box<dyn Operation>, Failure> {
    let slot = write(|table| match table.get(key(handle.id)) {
        Some(Entry::Pending(slot, _)) => {
            let slot = slot.clone();
            table.remove(key(handle.id));
            Ok(slot)
        }
        _ => Err(bad("an operation under way")),
    })?;
    // Another machine thread may have taken its result by `rtest` a moment ago.
    let taken = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
    taken.ok_or_else(|| bad("an operation under way"))
}

/// Closes the handles of a pool and of its objects, unless operations are in flight.
pub(crate) fn remove_pool(handle: PoolHandle) -> Result<Pool, Failure> {
    let owner = key(handle.id);
    let (pool, _rest) = write(|table| {
        let Some(Entry::Pool(pool)) = table.get(owner) else {
            return Err(bad("a pool"));
        };
        let pool = pool.clone();
        let of_it = |entry: &Entry| entry.owner() == Some(owner);
        let open = table.values().filter(|e| of_it(e) && matches!(e, Entry::Pending(..))).count();
        if open > 0 {
            let text = format!("{open} operations under way: poll or forget them first");
            return Err(Failure::new(Status::Busy, text));
        }
        let names = table.iter().filter(|(_, entry)| of_it(entry)).map(|(key, _)| key);
        let names: Vec<_> = names.chain([owner]).collect();
        let rest: Vec<_> = names.into_iter().map(|name| table.remove(name)).collect();
        Ok((pool, rest))
    })?;
    Ok(pool)
}
