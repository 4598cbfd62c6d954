//! Objects whose addresses the client knows: one read or one write per operation.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ethermem::{Address, Error, Permissions, Pool, Segment, Thread};

use super::config::{LOCAL_LATENCY, LocalToRemote, WriteEnd, YcsbConfig};
use super::mix::Action;
use super::zipfian::fnv_hash;
use crate::error::BenchError;

/// Alignment of objects in bytes.
const ALIGN_BYTES: u64 = 8;

/// All objects of a run.
pub(crate) struct Objects {
    /// Address of the region on each memory node.
    regions: Vec<Address>,
    record_bytes: u64,
    stride_bytes: u64,
    split: Option<Split>,
    writes: WriteEnd,
    /// Records by the hash of their key, if the workload scans.
    ordered: Option<Mutex<BTreeMap<u64, u64>>>,
}

/// Objects in the DRAM of the compute node.
struct Split {
    ratio: LocalToRemote,
    salt: u64,
    objects: Mutex<BTreeMap<u64, Vec<u8>>>,
}

/// One client's access to the objects.
pub(crate) struct Client {
    pub(crate) objects: Arc<Objects>,
    pub(crate) thread: Thread,
}

impl Objects {
    /// Allocates the objects of a run, in equal parts on all memory nodes. `thread` owns them.
    pub(crate) async fn open(
        pool: &Pool,
        thread: &Thread,
        config: &YcsbConfig,
    ) -> Result<Objects, BenchError> {
        for (name, is_asked) in [
            ("local-to-remote", config.local_to_remote.is_some()),
            ("writes in-memory", config.writes == WriteEnd::InMemory),
        ] {
            if is_asked && !pool.is_simulated() {
                return Err(BenchError::Refused(format!(
                    "{name}: allowed on sim: pools, whose time is modelled; pool {} has the \
                     machine's",
                    config.pool
                )));
            }
        }
        let (_, memories) = pool.nodes();
        let stride_bytes = config.record_bytes.next_multiple_of(ALIGN_BYTES);
        let each = config.slots().div_ceil(memories.into());
        let bytes = each * stride_bytes;
        let mut regions = Vec::new();
        for memory in 0..memories {
            let region = thread.alloc_on(memory, bytes, Permissions::READ_WRITE).await;
            let region = region.map_err(|error| BenchError::Load {
                url: config.pool.clone(),
                needed: format!(
                    "{} records of {} B need {bytes} B on each of {memories} memory nodes \
                     (memory_bytes={bytes})",
                    config.slots(),
                    config.record_bytes
                ),
                error,
            })?;
            regions.push(region.address());
        }
        let split = config.local_to_remote.map(|ratio| Split {
            ratio,
            salt: fnv_hash(config.seed),
            objects: Mutex::default(),
        });
        let scans = config.workload.share(Action::Scan) > 0.0;
        let ordered = scans.then(Mutex::default);
        let (record_bytes, writes) = (config.record_bytes, config.writes);
        Ok(Objects { regions, record_bytes, stride_bytes, split, writes, ordered })
    }

    fn address(&self, record: u64) -> Address {
        let memories = self.regions.len() as u64;
        let slot = record / memories * self.stride_bytes;
        self.regions[(record % memories) as usize].add(slot)
    }

    /// The objects in the compute node's DRAM, if this one is there.
    fn local(&self, record: u64) -> Option<MutexGuard<'_, BTreeMap<u64, Vec<u8>>>> {
        let split = self.split.as_ref()?;
        if self.is_remote(record) {
            return None;
        }
        Some(split.objects.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn is_remote(&self, record: u64) -> bool {
        let Some(Split { ratio, salt, .. }) = &self.split else { return true };
        let parts = u64::from(ratio.local) + u64::from(ratio.remote);
        fnv_hash(record ^ salt) % parts >= ratio.local.into()
    }

    /// The records from `record` on in key order.
    fn behind(&self, record: u64, count: u64) -> Vec<u64> {
        let ordered = self.ordered.as_ref().expect("made where somebody scans");
        let ordered = ordered.lock().unwrap_or_else(PoisonError::into_inner);
        ordered.range(fnv_hash(record)..).take(count as usize).map(|(_, &record)| record).collect()
    }
}

impl Client {
    pub(crate) async fn insert(&self, record: u64, data: &[u8]) -> Result<(), Error> {
        let is_local = self.objects.local(record).is_some_and(|mut objects| {
            objects.insert(record, data.to_vec());
            true
        });
        if is_local {
            self.thread.sleep(LOCAL_LATENCY).await?;
        } else {
            self.write(record, 0, data).await?;
        }
        if let Some(ordered) = &self.objects.ordered {
            let mut ordered = ordered.lock().unwrap_or_else(PoisonError::into_inner);
            ordered.insert(fnv_hash(record), record);
        }
        Ok(())
    }

    pub(crate) async fn update(&self, record: u64, from: u64, data: &[u8]) -> Result<(), Error> {
        let is_local = self.objects.local(record).is_some_and(|mut objects| {
            let object = objects.get_mut(&record).expect("only what is there is updated");
            object[from as usize..][..data.len()].copy_from_slice(data);
            true
        });
        if is_local {
            return self.thread.sleep(LOCAL_LATENCY).await;
        }
        self.write(record, from, data).await
    }

    async fn write(&self, record: u64, from: u64, data: &[u8]) -> Result<(), Error> {
        self.thread.write(self.objects.address(record).add(from), data).await?;
        match self.objects.writes {
            WriteEnd::AtNode => Ok(()),
            WriteEnd::InMemory => self.thread.sleep(LOCAL_LATENCY).await,
        }
    }

    pub(crate) async fn read(&self, record: u64, from: u64, bytes: u64) -> Result<Vec<u8>, Error> {
        let found = self
            .objects
            .local(record)
            .map(|objects| objects[&record][from as usize..][..bytes as usize].to_vec());
        if let Some(found) = found {
            self.thread.sleep(LOCAL_LATENCY).await?;
            return Ok(found);
        }
        self.thread.read(self.objects.address(record).add(from), bytes).await
    }

    /// Reads records from `record` on in key order, as one operation. Records at the compute node
    /// are read after that. Returns their numbers and their bytes.
    pub(crate) async fn scan(&self, record: u64, count: u64) -> Result<Vec<(u64, Vec<u8>)>, Error> {
        let bytes = self.objects.record_bytes;
        let (remote, local): (Vec<u64>, Vec<u64>) = self
            .objects
            .behind(record, count)
            .into_iter()
            .partition(|&r| self.objects.is_remote(r));
        let places: Vec<Segment> = remote
            .iter()
            .map(|&record| Segment { address: self.objects.address(record), bytes })
            .collect();
        let mut found = Vec::with_capacity(remote.len() + local.len());
        if !places.is_empty() {
            let all = self.thread.gather(&places).await?;
            let parts = all.chunks(bytes as usize).map(<[u8]>::to_vec);
            found.extend(remote.into_iter().zip(parts));
        }
        for record in local {
            found.push((record, self.read(record, 0, bytes).await?));
        }
        Ok(found)
    }
}
