//! Checks of the caller's pointers: arguments and places for results.

use std::ffi::{CStr, c_char, c_void};
use std::slice;

use crate::status::{Failure, Status};

fn null(name: &str) -> Failure {
    Failure::new(Status::NullArgument, format!("`{name}` is null"))
}

/// Converts a count to a length that memory of this machine can have.
fn length(count: u64, element_bytes: usize, name: &str) -> Result<usize, Failure> {
    let most = isize::MAX as usize / element_bytes.max(1);
    let length = usize::try_from(count).ok().filter(|&length| length <= most);
    length.ok_or_else(|| {
        let text = format!("`{name}`: {count} elements: must be at most {most}");
        Failure::new(Status::TooLong, text)
    })
}

/// An array of the caller; null is allowed for an empty one.
///
/// # Safety
/// Unless `count` is 0, `count` elements must be readable from `pointer` on, and must not change
/// during the call.
pub(crate) unsafe fn array<'a, T>(
    pointer: *const T,
    count: u64,
    name: &str,
) -> Result<&'a [T], Failure> {
    let length = length(count, size_of::<T>(), name)?;
    if length == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() {
        return Err(null(name));
    }
    // SAFETY: the pointer is not null, and the caller upholds the rest.
    Ok(unsafe { slice::from_raw_parts(pointer, length) })
}

/// Bytes of the caller, as [`array()`].
///
/// # Safety
/// As [`array()`].
pub(crate) unsafe fn bytes<'a>(
    pointer: *const c_void,
    count: u64,
    name: &str,
) -> Result<&'a [u8], Failure> {
    // SAFETY: the caller upholds the contract of `array`, which is equal.
    unsafe { array(pointer.cast::<u8>(), count, name) }
}

/// Bytes of the caller to fill, as [`array()`].
///
/// # Safety
/// Unless `count` is 0, `count` bytes must be writable from `pointer` on, and must not be used
/// elsewhere during the call.
pub(crate) unsafe fn bytes_mut<'a>(
    pointer: *mut c_void,
    count: u64,
    name: &str,
) -> Result<&'a mut [u8], Failure> {
    let length = length(count, 1, name)?;
    if length == 0 {
        return Ok(&mut []);
    }
    if pointer.is_null() {
        return Err(null(name));
    }
    // SAFETY: the pointer is not null, and the caller upholds the rest.
    Ok(unsafe { slice::from_raw_parts_mut(pointer.cast::<u8>(), length) })
}

/// A string of the caller.
///
/// # Safety
/// Unless it is null, `pointer` must point to a zero-terminated string that does not change during
/// the call.
pub(crate) unsafe fn text<'a>(pointer: *const c_char, name: &str) -> Result<&'a str, Failure> {
    if pointer.is_null() {
        return Err(null(name));
    }
    // SAFETY: the pointer is not null, and the caller upholds the rest.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map_err(|_| {
        Failure::new(Status::BadArgument, format!("`{name}` is not UTF-8: must be UTF-8"))
    })
}

/// A place for a result, possibly of an operation that ends during a later call.
#[derive(Clone, Copy)]
pub(crate) struct Target<T>(*mut T);

// SAFETY: one call at a time uses it, and that call was promised a valid target.
unsafe impl<T> Send for Target<T> {}

impl<T> Target<T> {
    /// A place that must not be null.
    pub(crate) fn new(pointer: *mut T, name: &str) -> Result<Target<T>, Failure> {
        if pointer.is_null() { Err(null(name)) } else { Ok(Target(pointer)) }
    }

    /// A place that may be null, if the result is not wanted.
    pub(crate) fn optional(pointer: *mut T) -> Target<T> {
        Target(pointer)
    }

    /// Stores a result.
    ///
    /// # Safety
    /// Unless it is null, a `T` must be writable there now.
    pub(crate) unsafe fn put(self, value: T) {
        if !self.0.is_null() {
            // SAFETY: the pointer is not null, and the caller upholds the rest.
            unsafe { self.0.write(value) }
        }
    }
}

/// A buffer of the caller for a result.
#[derive(Clone, Copy)]
pub(crate) struct Buffer {
    to: Target<u8>,
    bytes_max: u64,
}

impl Buffer {
    /// A buffer; null is allowed for one of 0 bytes.
    pub(crate) fn new(to: *mut c_void, bytes_max: u64, name: &str) -> Result<Buffer, Failure> {
        length(bytes_max, 1, name)?;
        let to = to.cast();
        let to = if bytes_max == 0 { Target::optional(to) } else { Target::new(to, name)? };
        Ok(Buffer { to, bytes_max })
    }

    /// Stores a result completely, or not at all.
    ///
    /// # Safety
    /// The buffer's bytes must be writable now.
    pub(crate) unsafe fn fill(self, result: &[u8]) -> Result<(), Failure> {
        if result.len() as u64 > self.bytes_max {
            let text =
                format!("the result has {} B: the buffer has {}", result.len(), self.bytes_max);
            return Err(Failure::new(Status::BufferTooSmall, text));
        }
        if !result.is_empty() {
            // SAFETY: the length was checked; the result is Rust's own, so the two do not overlap.
            unsafe { self.to.0.copy_from_nonoverlapping(result.as_ptr(), result.len()) }
        }
        Ok(())
    }
}
