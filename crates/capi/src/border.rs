//! What comes over the border, and what goes back: pointers of the caller.

use std::ffi::{CStr, c_char, c_void};
use std::slice;

use crate::status::{Failure, Status};

fn null(name: &str) -> Failure {
    Failure::new(Status::NullArgument, format!("`{name}` is null"))
}

/// A length that memory of this machine can have.
fn length(count: u64, element_bytes: usize, name: &str) -> Result<usize, Failure> {
    let most = isize::MAX as usize / element_bytes.max(1);
    let length = usize::try_from(count).ok().filter(|&length| length <= most);
    length.ok_or_else(|| {
        let text = format!("`{name}`: {count} elements: allowed are up to {most}");
        Failure::new(Status::TooLong, text)
    })
}

/// An array of the caller; null may be given for an empty one.
///
/// # Safety
/// Unless `count` is 0, so many elements can be read from `pointer` on, and nobody changes them
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
    // SAFETY: not null, and the rest is the caller's promise.
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
    // SAFETY: the caller's promise is the same.
    unsafe { array(pointer.cast::<u8>(), count, name) }
}

/// Bytes of the caller to fill, as [`array()`].
///
/// # Safety
/// Unless `count` is 0, so many bytes can be written from `pointer` on, and nobody else uses them
/// during the call.
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
    // SAFETY: not null, and the rest is the caller's promise.
    Ok(unsafe { slice::from_raw_parts_mut(pointer.cast::<u8>(), length) })
}

/// A text of the caller.
///
/// # Safety
/// Unless it is null, `pointer` is to a text with a zero at its end that nobody changes during the
/// call.
pub(crate) unsafe fn text<'a>(pointer: *const c_char, name: &str) -> Result<&'a str, Failure> {
    if pointer.is_null() {
        return Err(null(name));
    }
    // SAFETY: not null, and the rest is the caller's promise.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map_err(|_| {
        Failure::new(Status::BadArgument, format!("`{name}` is not UTF-8: allowed is UTF-8"))
    })
}

/// Where a result goes. It may be the result of an operation that ends during a later call.
#[derive(Clone, Copy)]
pub(crate) struct Target<T>(*mut T);

// SAFETY: it is used by one call at a time, and what it points to was promised to that call.
unsafe impl<T> Send for Target<T> {}

impl<T> Target<T> {
    /// A place that must be there.
    pub(crate) fn new(pointer: *mut T, name: &str) -> Result<Target<T>, Failure> {
        if pointer.is_null() { Err(null(name)) } else { Ok(Target(pointer)) }
    }

    /// A place that null says is not wanted.
    pub(crate) fn optional(pointer: *mut T) -> Target<T> {
        Target(pointer)
    }

    /// Stores a result.
    ///
    /// # Safety
    /// Unless it is null, a `T` can be written there now.
    pub(crate) unsafe fn put(self, value: T) {
        if !self.0.is_null() {
            // SAFETY: not null, and the rest is the caller's promise.
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
    /// Null may be given for a buffer of 0 bytes.
    pub(crate) fn new(to: *mut c_void, bytes_max: u64, name: &str) -> Result<Buffer, Failure> {
        length(bytes_max, 1, name)?;
        let to = to.cast();
        let to = if bytes_max == 0 { Target::optional(to) } else { Target::new(to, name)? };
        Ok(Buffer { to, bytes_max })
    }

    /// Stores a result, all or nothing of it.
    ///
    /// # Safety
    /// So many bytes as the buffer has can be written there now.
    pub(crate) unsafe fn fill(self, result: &[u8]) -> Result<(), Failure> {
        if result.len() as u64 > self.bytes_max {
            let text =
                format!("the result has {} B: the buffer has {}", result.len(), self.bytes_max);
            return Err(Failure::new(Status::BufferTooSmall, text));
        }
        if !result.is_empty() {
            // SAFETY: it fits, as was checked; the result is Rust's own, so they do not overlap.
            unsafe { self.to.0.copy_from_nonoverlapping(result.as_ptr(), result.len()) }
        }
        Ok(())
    }
}
