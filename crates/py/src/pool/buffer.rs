//! Buffers of Python, NumPy's arrays among them, used where they are.
#![expect(unsafe_code, reason = "without it, every array would be copied once more")]

use pyo3::buffer::PyUntypedBuffer;
use pyo3::prelude::*;

use crate::error::Failure;

fn contiguous(data: &Bound<'_, PyAny>) -> PyResult<PyUntypedBuffer> {
    let buffer = PyUntypedBuffer::get(data)?;
    if buffer.is_c_contiguous() {
        return Ok(buffer);
    }
    let line = "a buffer with gaps or in another order: allowed are C-contiguous ones";
    Err(Failure::Input(line.to_owned()).into())
}

/// Uses the bytes of `data` while no other code of Python runs.
pub(crate) fn read<R>(data: &Bound<'_, PyAny>, act: impl FnOnce(&[u8]) -> R) -> PyResult<R> {
    let buffer = contiguous(data)?;
    // SAFETY: `act` cannot release the interpreter, so none of its code changes them.
    Ok(act(unsafe { bytes(&buffer) }))
}

/// Uses the bytes of `data` while other threads of Python run.
pub(crate) fn lend<R: Send>(
    data: &Bound<'_, PyAny>,
    act: impl FnOnce(&[u8]) -> R + Send,
) -> PyResult<R> {
    let buffer = contiguous(data)?;
    // SAFETY: that no other thread changes them meanwhile is asked of the caller, as by `write` of
    // Python's files.
    let bytes = unsafe { bytes(&buffer) };
    Ok(data.py().detach(|| act(bytes)))
}

/// # Safety
///
/// Nobody may change them while they are in use.
unsafe fn bytes(buffer: &PyUntypedBuffer) -> &[u8] {
    if buffer.len_bytes() == 0 {
        return &[];
    }
    // SAFETY: the exporter keeps so many bytes there while `buffer` is held.
    unsafe {
        std::slice::from_raw_parts(buffer.buf_ptr().cast::<u8>().cast_const(), buffer.len_bytes())
    }
}

/// Fills the bytes of `data` by `act`, while other threads of Python run.
pub(crate) fn fill<R: Send>(
    data: &Bound<'_, PyAny>,
    act: impl FnOnce(&mut [u8]) -> R + Send,
) -> PyResult<R> {
    let buffer = contiguous(data)?;
    if buffer.readonly() {
        let line = "a buffer that cannot be written: allowed are writable ones";
        return Err(Failure::Input(line.to_owned()).into());
    }
    if buffer.len_bytes() == 0 {
        return Ok(act(&mut []));
    }
    // SAFETY: the exporter keeps so many writable bytes there while `buffer` is held. That no other
    // thread uses them meanwhile is asked of the caller, as by `readinto` of Python's files.
    let bytes = unsafe {
        std::slice::from_raw_parts_mut(buffer.buf_ptr().cast::<u8>(), buffer.len_bytes())
    };
    Ok(data.py().detach(|| act(bytes)))
}
