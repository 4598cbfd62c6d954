//! Memory: allocating, sharing, reading and writing.

use std::ffi::c_void;

use ethermem::{Address, Permissions, ProcessId};

use crate::border::{self, Buffer, Target};
use crate::handles::{self, PendingHandle, ThreadHandle};
use crate::operation::end;
use crate::status::{Failure, Status, call};

/// The process may read.
pub const PERMISSION_READ: u32 = 1;
/// The process may write.
pub const PERMISSION_WRITE: u32 = 2;

/// A contiguous range of bytes in remote memory.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// Address of the first byte.
    pub address: u64,
    /// Length in bytes.
    pub bytes: u64,
}

impl From<&Segment> for ethermem::Segment {
    fn from(segment: &Segment) -> ethermem::Segment {
        ethermem::Segment { address: Address(segment.address), bytes: segment.bytes }
    }
}

fn permissions(bits: u32) -> Result<Permissions, Failure> {
    let known = u8::try_from(bits).ok().and_then(Permissions::from_bits);
    known.ok_or_else(|| {
        let most = PERMISSION_READ | PERMISSION_WRITE;
        Failure::new(Status::BadArgument, format!("permissions {bits}: must be 0 to {most}"))
    })
}

/// Checks that `bytes` is the sum of the segments' lengths.
fn sum(segments: &[Segment], bytes: u64, name: &str) -> Result<(), Failure> {
    let sum = segments.iter().try_fold(0_u64, |sum, segment| sum.checked_add(segment.bytes));
    if sum == Some(bytes) {
        return Ok(());
    }
    let text = format!("`{name}`: {bytes} B: must be the sum of the segments");
    Err(Failure::new(Status::BadArgument, text))
}

/// Allocates a region of zeros on the next memory node in round-robin order, and stores its
/// address. `permissions` are those of `thread`'s process: ETHERMEM_READ, ETHERMEM_WRITE, or both.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ralloc(
    thread: ThreadHandle,
    bytes: u64,
    permissions: u32,
    address: *mut u64,
    pending: *mut PendingHandle,
) -> Status {
    call(|| {
        let (to, (thread, owner)) = (Target::new(address, "address")?, handles::thread(thread)?);
        let allocating = thread.alloc(bytes, self::permissions(permissions)?);
        // SAFETY: the header requires that both can be written; the handle may be null.
        unsafe {
            end(owner, pending, allocating, move |region| {
                to.put(region.address().0);
                Ok(())
            })
        }
    })
}

/// Allocates as `ralloc`, on the given memory node, from 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ralloc_on(
    thread: ThreadHandle,
    memory_node: u16,
    bytes: u64,
    permissions: u32,
    address: *mut u64,
    pending: *mut PendingHandle,
) -> Status {
    call(|| {
        let (to, (thread, owner)) = (Target::new(address, "address")?, handles::thread(thread)?);
        let allocating = thread.alloc_on(memory_node, bytes, self::permissions(permissions)?);
        // SAFETY: the header requires that both can be written; the handle may be null.
        unsafe {
            end(owner, pending, allocating, move |region| {
                to.put(region.address().0);
                Ok(())
            })
        }
    })
}

/// Frees a region, by the address that `ralloc` stored and its length in bytes. Only its owner may.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rfree(
    thread: ThreadHandle,
    address: u64,
    bytes: u64,
    pending: *mut PendingHandle,
) -> Status {
    call(|| {
        let (thread, owner) = handles::thread(thread)?;
        let freeing = thread.region(Address(address), bytes).free();
        // SAFETY: the header requires that a handle can be written, or null.
        unsafe { end(owner, pending, freeing, Ok) }
    })
}

/// Grants another process access to a region at the same address, or revokes it with permissions of
/// 0. Only the region's owner may.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rshare(
    thread: ThreadHandle,
    address: u64,
    bytes: u64,
    with_process: u32,
    permissions: u32,
    pending: *mut PendingHandle,
) -> Status {
    call(|| {
        let (thread, owner) = handles::thread(thread)?;
        let region = thread.region(Address(address), bytes);
        let sharing = region.share(ProcessId(with_process), self::permissions(permissions)?);
        // SAFETY: the header requires that a handle can be written, or null.
        unsafe { end(owner, pending, sharing, Ok) }
    })
}

/// Reads `bytes` bytes from `address` on into `to`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rread(
    thread: ThreadHandle,
    address: u64,
    to: *mut c_void,
    bytes: u64,
    pending: *mut PendingHandle,
) -> Status {
    call(|| {
        let (thread, owner) = handles::thread(thread)?;
        if pending.is_null() {
            // SAFETY: the header requires a buffer of `bytes` bytes.
            let to = unsafe { border::bytes_mut(to, bytes, "to") }?;
            return Ok(thread.read_into(Address(address), to)?);
        }
        let to = Buffer::new(to, bytes, "to")?;
        let reading = thread.read(Address(address), bytes);
        // SAFETY: the header requires a buffer that lasts until the operation has ended.
        unsafe { end(owner, pending, reading, move |read| to.fill(&read)) }
    })
}

/// Writes `bytes` bytes of `from` from `address` on. `from` is not used after the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rwrite(
    thread: ThreadHandle,
    address: u64,
    from: *const c_void,
    bytes: u64,
    pending: *mut PendingHandle,
) -> Status {
    call(|| {
        let (thread, owner) = handles::thread(thread)?;
        // SAFETY: the header requires `bytes` readable bytes.
        let from = unsafe { border::bytes(from, bytes, "from") }?;
        if pending.is_null() {
            return Ok(thread.write_from(Address(address), from)?);
        }
        // SAFETY: the header requires that a handle can be written, or null.
        unsafe { end(owner, pending, thread.write(Address(address), from), Ok) }
    })
}

/// Reads several ranges into `to`, one after the other, as one operation. `bytes` is the sum of
/// their lengths. One refused range fails the operation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rgather(
    thread: ThreadHandle,
    segments: *const Segment,
    segments_count: u64,
    to: *mut c_void,
    bytes: u64,
    pending: *mut PendingHandle,
) -> Status {
    call(|| {
        let (thread, owner) = handles::thread(thread)?;
        // SAFETY: the header requires `segments_count` segments.
        let segments = unsafe { border::array(segments, segments_count, "segments") }?;
        sum(segments, bytes, "bytes")?;
        let to = Buffer::new(to, bytes, "to")?;
        let places: Vec<ethermem::Segment> = segments.iter().map(Into::into).collect();
        // SAFETY: the header requires a buffer that lasts until the operation has ended.
        unsafe { end(owner, pending, thread.gather(&places), move |read| to.fill(&read)) }
    })
}

/// Writes the bytes of `from` to several ranges, one after the other, as one operation. `bytes` is
/// the sum of their lengths. One refused range fails the operation; others may have been written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rscatter(
    thread: ThreadHandle,
    segments: *const Segment,
    segments_count: u64,
    from: *const c_void,
    bytes: u64,
    pending: *mut PendingHandle,
) -> Status {
    call(|| {
        let (thread, owner) = handles::thread(thread)?;
        // SAFETY: the header requires `segments_count` segments.
        let segments = unsafe { border::array(segments, segments_count, "segments") }?;
        sum(segments, bytes, "bytes")?;
        // SAFETY: the header requires `bytes` readable bytes.
        let mut rest = unsafe { border::bytes(from, bytes, "from") }?;
        let mut places = Vec::with_capacity(segments.len());
        for segment in segments {
            // The sum was checked, so each part exists.
            let (part, others) = rest.split_at(segment.bytes as usize);
            places.push((Address(segment.address), part));
            rest = others;
        }
        // SAFETY: the header requires that a handle can be written, or null.
        unsafe { end(owner, pending, thread.scatter(&places), Ok) }
    })
}
