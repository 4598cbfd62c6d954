//! The library's pool on the memory node: what an application has, and what it costs over the bare
//! exchange of the same bytes.

use std::time::Instant;

use ethermem::{Address, Error, Permissions, Pool, Region, Segment, Thread};

use super::node::{NodeKind, start_server, tenant};
use super::relay::Loss;
use super::{Cpus, Pinned, Probe, ProbeError};
use crate::measure::{Round, Samples};

const REGION_BYTES: u64 = 1 << 20;
/// Between two operations that follow each other: a quarter of a page, as a program that walks its
/// memory.
const STEP_BYTES: u64 = 1024;
/// Operations of a sample with a window.
const BATCH: u64 = 256;
/// Who waits never sleeps, as in the floor.
const PARAMETERS: &str = "poll_us=60000000";

/// An operation of the pool, in clear or encrypted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolProbe {
    pub(crate) operation: PoolOperation,
    pub(crate) encrypted: bool,
    /// Longest datagram, where that is not what the loopback carries.
    pub(crate) datagram_bytes: Option<u16>,
    /// Of what goes each way.
    pub(crate) loss: Option<Loss>,
    /// Over raw Ethernet on the loopback.
    pub(crate) ring: bool,
}

/// An operation of the pool.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PoolOperation {
    Read(u16),
    Write(u16),
    CompareAndSwap,
    FetchAndAdd,
    Lock,
    /// Many reads under way, so many of which are one operation: a gather.
    Reads {
        bytes: u16,
        window: u16,
        places: u16,
    },
}

impl From<Error> for ProbeError {
    fn from(error: Error) -> ProbeError {
        ProbeError::Failed(error.to_string())
    }
}

impl Probe for PoolProbe {
    fn round(&self, cpus: Cpus, count: u32) -> Result<Round, ProbeError> {
        let kind = NodeKind { encrypted: self.encrypted, loss: self.loss, ring: self.ring };
        let (_server, url) = start_server(Some(cpus.server), kind)?;
        let _pinned = Pinned::on(cpus.client)?;
        self.measure(&format!("{url}?{PARAMETERS}"), count)
    }
}

impl PoolProbe {
    /// A round with both ends on this thread's CPUs, and with the defaults of both.
    pub(crate) fn round_here(&self, count: u32) -> Result<Round, ProbeError> {
        let kind = NodeKind { encrypted: self.encrypted, loss: self.loss, ring: self.ring };
        let (_server, url) = start_server(None, kind)?;
        self.measure(&format!("{url}?"), count)
    }

    /// Does the work on a region of so many bytes, both ends on this thread's CPUs, with the
    /// defaults of both.
    pub(crate) fn with_region<T>(
        &self,
        bytes: u64,
        work: impl FnOnce(&Region) -> Result<T, ProbeError>,
    ) -> Result<T, ProbeError> {
        let kind = NodeKind { encrypted: self.encrypted, loss: self.loss, ring: self.ring };
        let (_server, url) = start_server(None, kind)?;
        let pool = self.open(&format!("{url}?"))?;
        let thread = pool.thread()?;
        let region = thread.alloc(bytes, Permissions::READ_WRITE).wait()?;
        work(&region)
    }

    fn measure(&self, url: &str, count: u32) -> Result<Round, ProbeError> {
        let pool = self.open(url)?;
        let thread = pool.thread()?;
        let region = thread.alloc(REGION_BYTES, Permissions::READ_WRITE).wait()?;
        self.operation.round(&thread, &region, count)
    }

    fn open(&self, url: &str) -> Result<Pool, ProbeError> {
        let failed = |error: String| ProbeError::Failed(error);
        let mut url = url.to_owned();
        if let Some(bytes) = self.datagram_bytes {
            url += &format!("&datagram_bytes={bytes}");
        }
        let folder = tempfile::tempdir()?;
        if self.encrypted {
            let path = folder.path().join("key.toml");
            tenant().key.write(&path).map_err(|error| failed(error.to_string()))?;
            url += &format!("&key={}", path.display());
        }
        Pool::open(&url).map_err(|error| failed(error.to_string()))
    }
}

impl PoolOperation {
    fn round(self, thread: &Thread, region: &Region, count: u32) -> Result<Round, ProbeError> {
        if let PoolOperation::Reads { bytes, window, places } = self {
            let at = |index: u64| index * STEP_BYTES % (REGION_BYTES - 8192);
            if places == 1 {
                return windowed(count, (window, 1), |index| region.read(at(index), bytes.into()));
            }
            let place = |index| Segment { address: region.at(at(index)), bytes: u64::from(bytes) };
            return windowed(count, (window, places), |gather| {
                let first = gather * u64::from(places);
                let segments: Vec<Segment> =
                    (first..first + u64::from(places)).map(place).collect();
                thread.gather(&segments)
            });
        }
        let mut bytes = vec![7; 8192];
        let (warm, mut samples) = (count / 10, Samples::new());
        for index in 0..count + warm {
            let offset = u64::from(index) * STEP_BYTES % (REGION_BYTES - 8192);
            let word = region.at(offset);
            let start = Instant::now();
            match self {
                PoolOperation::Read(length) => {
                    region.read_into(offset, &mut bytes[..usize::from(length)])?;
                }
                PoolOperation::Write(length) => {
                    region.write_from(offset, &bytes[..usize::from(length)])?;
                }
                PoolOperation::CompareAndSwap => {
                    thread.compare_and_swap(word, 0, 0).wait()?;
                }
                PoolOperation::FetchAndAdd => {
                    thread.fetch_add(word, 1).wait()?;
                }
                PoolOperation::Lock => thread.lock(word).wait()?,
                PoolOperation::Reads { .. } => unreachable!("it was measured above"),
            }
            let took = start.elapsed();
            if matches!(self, PoolOperation::Lock) {
                unlock(thread, word)?;
            }
            if index >= warm {
                samples.add(took);
            }
        }
        Ok(samples.one_by_one())
    }
}

fn unlock(thread: &Thread, word: Address) -> Result<(), ProbeError> {
    thread.unlock_wait(word).map_err(Into::into)
}

/// As many reads as the window has room for are under way, so many of which are one operation; the
/// oldest is waited for.
fn windowed(
    count: u32,
    (window, places): (u16, u16),
    begin: impl Fn(u64) -> ethermem::Pending<Vec<u8>>,
) -> Result<Round, ProbeError> {
    let mut samples = Samples::new();
    let mut under_way: std::collections::VecDeque<_> =
        (0..u64::from(window / places)).map(&begin).collect();
    let (warm, mut next) = (count / 10, u64::from(window / places));
    for batch in 0..count + warm {
        let start = Instant::now();
        for _ in 0..BATCH / u64::from(places) {
            let oldest = under_way.pop_front().expect("the window is above 0");
            oldest.wait()?;
            under_way.push_back(begin(next));
            next += 1;
        }
        if batch >= warm {
            samples.add(start.elapsed());
        }
    }
    for pending in under_way {
        pending.wait()?;
    }
    Ok(samples.in_batches(BATCH))
}
