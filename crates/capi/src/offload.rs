//! Operations that the memory node does by itself.

use std::ffi::{c_char, c_void};

use ethermem::{Address, Chase, Comparison, Error, Filter};

use crate::border::{self, Buffer, Target};
use crate::handles::{self, PendingHandle, ThreadHandle};
use crate::memory::Segment;
use crate::operation::end;
use crate::status::{Failure, Status, call};

/// Follows pointers from element to element until a key is found. Lengths and offsets in bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ChaseRequest {
    /// The first element; 0 is an empty chain.
    pub start: u64,
    /// Where in an element the address of the next one is.
    pub next_offset: u32,
    /// Where in an element its key is.
    pub key_offset: u32,
    /// Where in an element the bytes begin that are asked for.
    pub value_offset: u32,
    /// How many bytes of the element are asked for.
    pub value_bytes: u32,
    /// Most elements looked at.
    pub elements_max: u32,
    /// How long the key is.
    pub key_bytes: u32,
    /// What is looked for. Not used after the call.
    pub key: *const c_void,
}

/// The records of an array with a field that compares so. Lengths and offsets in bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FilterRequest {
    /// The first record.
    pub start: u64,
    /// How long a record is.
    pub record_bytes: u32,
    /// How many there are.
    pub records: u32,
    /// Where in a record the field is, an eight-byte little-endian word.
    pub field_offset: u32,
    /// ETHERMEM_LESS, ETHERMEM_EQUAL or ETHERMEM_GREATER.
    pub comparison: u32,
    /// To what it is compared.
    pub operand: u64,
}

/// The field is below the operand.
pub const COMPARISON_LESS: u32 = 0;
/// The field is the operand.
pub const COMPARISON_EQUAL: u32 = 1;
/// The field is above the operand.
pub const COMPARISON_GREATER: u32 = 2;

fn comparison(number: u32) -> Result<Comparison, Failure> {
    match number {
        COMPARISON_LESS => Ok(Comparison::Less),
        COMPARISON_EQUAL => Ok(Comparison::Equal),
        COMPARISON_GREATER => Ok(Comparison::Greater),
        _ => {
            let text = format!("comparison {number}: allowed are 0 to {COMPARISON_GREATER}");
            Err(Failure::new(Status::BadArgument, text))
        }
    }
}

/// Runs the operation `name` at the memory node of `at`: one round trip, whatever it does there.
/// `touches` are the places that it uses; operations of this thread there are ordered with it.
/// The result's length is stored in `result_bytes`; a result longer than `result_bytes_max` is
/// refused as ETHERMEM_STATUS_BUFFER_TOO_SMALL, and its length is stored still.
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
        // SAFETY: the header asks for a text, so many bytes, and so many segments.
        let (name, arguments, touches) = unsafe {
            (
                border::text(name, "name")?,
                border::bytes(arguments, arguments_bytes, "arguments")?,
                border::array(touches, touches_count, "touches")?,
            )
        };
        let touches: Vec<ethermem::Segment> = touches.iter().map(Into::into).collect();
        let running = thread.offload(name, Address(at), arguments, &touches);
        // SAFETY: the header asks for places that last until the operation has ended.
        unsafe {
            end(owner, pending, running, move |result| {
                length.put(result.len() as u64);
                buffer.fill(&result)
            })
        }
    })
}

/// Runs the operation `chase`. The address of the element that has the key is stored in `found`, 0
/// where none has, and its `value_bytes` bytes in `value`.
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
        // SAFETY: the header asks for a request, and that for a key of so many bytes.
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
        // SAFETY: the header asks for places that last until the operation has ended.
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

/// Runs the operation `filter`. The records that are kept are stored in `records`, and the sum of
/// their lengths in `records_bytes`, also where that is more than `records_bytes_max` and refused
/// as ETHERMEM_STATUS_BUFFER_TOO_SMALL.
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
        // SAFETY: the header asks for a request.
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
        // SAFETY: the header asks for places that last until the operation has ended.
        unsafe {
            end(owner, pending, running, move |result| {
                length.put(result.len() as u64);
                buffer.fill(&result)
            })
        }
    })
}
