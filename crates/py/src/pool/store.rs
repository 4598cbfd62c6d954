//! The key-value store.

use std::future::Future;
use std::sync::Arc;

use async_lock::{Mutex, MutexGuardArc};
use ethermem_kv::{Config, Error, Index};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use super::error::raised;
use super::pending::{Answer, Pending};
use super::{Pool, Shared, buffer};
use crate::error::Failure;

/// A key-value store in remote memory, on the memory nodes of a pool.
#[pyclass(frozen, module = "ethermem._native")]
pub(crate) struct Store {
    pool: Shared,
    store: ethermem_kv::Store,
}

impl Store {
    pub(crate) fn new(pool: Shared, store: ethermem_kv::Store) -> Store {
        Store { pool, store }
    }
}

#[pymethods]
impl Store {
    /// Creates an empty store on the memory nodes of a pool: on all of them, or on the first
    /// `memory_nodes`. `buckets` is the initial number per node, a power of two. A program with
    /// untrusted keys draws `hash_seed` at random.
    #[staticmethod]
    #[pyo3(signature = (pool, *, memory_nodes=None, buckets=1024, hash_seed=0))]
    fn create(pool: &Pool, memory_nodes: Option<u16>, buckets: u64, hash_seed: u64) -> Pending {
        let (shared, opened) = (pool.shared().clone(), ethermem::Pool::clone(pool.shared()));
        let config = Config { memory_nodes, buckets, hash_seed };
        Pending::new(pool.shared(), async move {
            let store = ethermem_kv::Store::create(&opened, config).await?;
            Ok(Answer::Store(shared, store))
        })
    }

    /// Creates a client on the given compute node or the next in round-robin order. `index` is the
    /// side that walks the index: `node`, the memory node in one round trip, by the operation
    /// `key-value`; or `client`.
    #[pyo3(signature = (index="node", compute_node=None))]
    fn client(&self, index: &str, compute_node: Option<u16>) -> PyResult<Client> {
        let index = match index {
            "node" => Index::Node,
            "client" => Index::Client,
            other => {
                let line = format!("index = '{other}': must be one of node, client");
                return Err(Failure::Input(line).into());
            }
        };
        let client = match compute_node {
            Some(node) => self.store.client_on(node, index).map_err(raised)?,
            None => self.store.client(index),
        };
        Ok(Client { pool: self.pool.clone(), client: Arc::new(Mutex::new(client)) })
    }
}

/// One stream of operations on a store, one at a time.
#[pyclass(frozen, module = "ethermem._native")]
pub(crate) struct Client {
    pool: Shared,
    /// Locked while an operation is in flight.
    client: Arc<Mutex<ethermem_kv::Client>>,
}

/// The client of an operation, until that ends or is dropped.
type Taken = MutexGuardArc<ethermem_kv::Client>;

impl Client {
    /// Takes the client for an operation, unless another is in flight.
    fn take(&self) -> PyResult<Taken> {
        let line =
            "a client does one operation at a time: wait for the one before, or take another";
        self.client.try_lock_arc().ok_or_else(|| PyRuntimeError::new_err(line))
    }

    /// Begins an operation, unless another is in flight.
    fn begin<F>(&self, operation: impl FnOnce(Taken) -> F) -> PyResult<Pending>
    where
        F: Future<Output = Result<Answer, Error>> + Send + 'static,
    {
        Ok(Pending::new(&self.pool, operation(self.take()?)))
    }
}

#[pymethods]
impl Client {
    /// Stores a new key. Returns false if it exists.
    fn create(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<Pending> {
        let [key, value] = [copied(key)?, copied(value)?];
        self.begin(|mut taken| async move { taken.create(&key, &value).await.map(Answer::Flag) })
    }

    /// Replaces the value of a key. Returns false if the key does not exist.
    fn update(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<Pending> {
        let [key, value] = [copied(key)?, copied(value)?];
        self.begin(|mut taken| async move { taken.update(&key, &value).await.map(Answer::Flag) })
    }

    /// Stores a value for a key, whether or not the key exists.
    fn put(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<Pending> {
        let [key, value] = [copied(key)?, copied(value)?];
        self.begin(
            |mut taken| async move { taken.put(&key, &value).await.map(|()| Answer::Nothing) },
        )
    }

    /// Reads the value of a key, or None.
    fn read(&self, key: &Bound<'_, PyAny>) -> PyResult<Pending> {
        let key = copied(key)?;
        self.begin(|mut taken| async move {
            let found = taken.read(&key).await?;
            Ok(found.map_or(Answer::Nothing, |value| Answer::Bytes(value.bytes)))
        })
    }

    /// Fills the start of a writable buffer, such as a NumPy array, with the value of a key, waits
    /// for completion, and returns the value's length in bytes, or None. No other thread may use
    /// the buffer meanwhile. A long value takes no other memory on its way. Bytes behind the value
    /// may be changed, too, if another client replaces it meanwhile.
    fn read_into(
        &self,
        key: &Bound<'_, PyAny>,
        buffer: &Bound<'_, PyAny>,
    ) -> PyResult<Option<usize>> {
        let key = copied(key)?;
        let mut taken = self.take()?;
        buffer::fill(buffer, move |to| taken.read_into(&key, to))?.map_err(raised)
    }

    /// Deletes a key. Returns false if it does not exist.
    fn delete(&self, key: &Bound<'_, PyAny>) -> PyResult<Pending> {
        let key = copied(key)?;
        self.begin(|mut taken| async move { taken.delete(&key).await.map(Answer::Flag) })
    }

    /// Deletes every key that exists when its bucket is visited.
    fn clear(&self) -> PyResult<Pending> {
        self.begin(|mut taken| async move { taken.clear().await.map(|()| Answer::Nothing) })
    }
}

fn copied(data: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    buffer::read(data, <[u8]>::to_vec)
}
