//! Operations that the memory node executes by itself.

use std::ffi::{c_char, c_void};

use ethermem::{Address, Chase, Comparison, Error, Filter};

use crate::border::{self, Buffer, Target};
use crate::handles::{self, PendingHandle, ThreadHandle};
use crate::memory::Segment;
use crate::operation::end;
use crate::status::{Failure, Status, call};

/// Follows pointers from element to element until a key is found. Lengths and offsets are in bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ChaseRequest {
    /// Address of the first element; 0 is an empty chain.
    pub start: u64,
    /// Offset in an element of the next element's address.
    pub next_offset: u32,
    /// Offset in an element of its key.
    pub key_offset: u32,
    /// Offset in an element of the bytes to return.
    pub value_offset: u32,
    /// Number of bytes to return.
    pub value_bytes: u32,
    /// Largest number of elements to visit.
    pub elements_max: u32,
    /// Length of the key.
    pub key_bytes: u32,
    /// Key to find. It is not used after the call.
    pub key: *const c_void,
}

/// Selects the records of an array by comparing a field. Lengths and offsets are in bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FilterRequest {
    /// Address of the first record.
    pub start: u64,
    /// Length of a record.
    pub record_bytes: u32,
    /// Number of records.
    pub records: u32,
    /// Offset in a record of the field, an eight-byte little-endian word.
    pub field_offset: u32,
    /// ETHERMEM_LESS, ETHERMEM_EQUAL or ETHERMEM_GREATER.
    pub comparison: u32,
    /// Value to which the field is compared.
    pub operand: u64,
}

/// The field is below the operand.
pub const COMPARISON_LESS: u32 = 0;
/// The field equals the operand.
pub const COMPARISON_EQUAL: u32 = 1;
/// The field is above the operand.
pub const COMPARISON_GREATER: u32 = 2;

fn comparison(number: u32) -> Result<Comparison, Failure> {
    match number {
        COMPARISON_LESS => Ok(Comparison::Less),
        COMPARISON_EQUAL => Ok(Comparison::Equal),
        COMPARISON_GREATER => Ok(Comparison::Greater),
        _ => {
            let text = format!("comparison {number}: must be 0 to {COMPARISON_GREATER}");
            Err(Failure::new(Status::BadArgument, text))
        }
    }
}

/// Runs the operation `name` at the memory node of `at` in one round trip, whatever it does there.
/// `touches` are the ranges that it uses; operations of this thread on them are ordered with it.
/// The result's length is stored in `result_bytes`. A result longer than `result_bytes_max` is
/// refused as ETHERMEM_STATUS_BUFFER_TOO_SMALL, and its length is stored anyway.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roffload(
    thread: ThreadHandle,
    name: *const c_char,
    at: u64,
    arguments: *const c_void,
    arguments_bytes: u64,
    touches: *const Segment,
    touches_count: u64,
    result: *mut c_void,
    result_bytes_max: u64,
    result_bytes: *mut u64,
    pending: *mut PendingHandle,
) -> Status {
    call(|| {
        let (thread, owner) = handles::thread(thread)?;
        let buffer = Buffer::new(result, result_bytes_max, "result")?;
        let length = Target::new(result_bytes, "result_bytes")?;
        // SAFETY: the header requires a string, `arguments_bytes` bytes, and `touches_count`
        // segments.
        let (name, arguments, touches) = unsafe {
            (
                border::text(name, "name")?,
                border::bytes(arguments, arguments_bytes, "arguments")?,
                border::array(touches, touches_count, "touches")?,
            )
        };
        let touches: Vec<ethermem::Segment> = touches.iter().map(Into::into).collect();
        let running = thread.offload(name, Address(at), arguments, &touches);
        // SAFETY: the header requires places that last until the operation has ended.
        unsafe {
            end(owner, pending, running, move |result| {
                length.put(result.len() as u64);
                buffer.fill(&result)
            })
        }
    })
}

/// Runs the operation `chase`. The address of the element with the key is stored in `found`, or 0
/// if there is none, and its `value_bytes` bytes in `value`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rchase(
    thread: ThreadHandle,
    request: *const ChaseRequest,
    found: *mut u64,
    value: *mut c_void,
    pending: *mut PendingHandle,
) -> Status {
    call(|| {
        let (thread, owner) = handles::thread(thread)?;
        let to = Target::new(found, "found")?;
        // SAFETY: the header requires a request, with a key of `key_bytes` bytes.
        let (request, key) = unsafe {
            let [request] = border::array(request, 1, "request")? else {
                unreachable!("one was asked for")
            };
            (request, border::bytes(request.key, request.key_bytes.into(), "key")?)
        };
        let value = Buffer::new(value, request.value_bytes.into(), "value")?;
        let chase = Chase {
            start: Address(request.start),
            next_offset: request.next_offset,
            key_offset: request.key_offset,
            value_offset: request.value_offset,
            value_bytes: request.value_bytes,
            elements_max: request.elements_max,
            key: key.to_vec(),
        };
        let running = thread.offload(Chase::NAME, chase.start, &chase.encode(), &[]);
        // SAFETY: the header requires places that last until the operation has ended.
        unsafe {
            end(owner, pending, running, move |result| {
                let chased = Chase::result(&result)
                    .map_err(|error| Error::of_offload(Chase::NAME, error))?;
                to.put(chased.as_ref().map_or(0, |chased| chased.address.0));
                chased.map_or(Ok(()), |chased| value.fill(&chased.value))
            })
        }
    })
}

/// Runs the operation `filter`. The selected records are stored in `records`, and the sum of their
/// lengths in `records_bytes`. If the sum exceeds `records_bytes_max`, the result is refused as
/// ETHERMEM_STATUS_BUFFER_TOO_SMALL, and the sum is stored anyway.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rfilter(
    thread: ThreadHandle,
    request: *const FilterRequest,
    records: *mut c_void,
    records_bytes_max: u64,
    records_bytes: *mut u64,
    pending: *mut PendingHandle,
) -> Status {
    call(|| {
        let (thread, owner) = handles::thread(thread)?;
        let buffer = Buffer::new(records, records_bytes_max, "records")?;
        let length = Target::new(records_bytes, "records_bytes")?;
        // SAFETY: the header requires a request.
        let [request] = (unsafe { border::array(request, 1, "request") })? else {
            unreachable!("one was asked for")
        };
        let filter = Filter {
            start: Address(request.start),
            record_bytes: request.record_bytes,
            records: request.records,
            field_offset: request.field_offset,
            comparison: comparison(request.comparison)?,
            operand: request.operand,
        };
        let running = thread.offload(Filter::NAME, filter.start, &filter.encode(), &[]);
        // SAFETY: the header requires places that last until the operation has ended.
        unsafe {
            end(owner, pending, running, move |result| {
                length.put(result.len() as u64);
                buffer.fill(&result)
            })
        }
    })
}
