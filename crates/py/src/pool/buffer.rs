//! Buffers of Python, NumPy's arrays among them, used where they are.
#![expect(unsafe_code, reason = "without it, every array would be copied once more")]

use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::types::PyMemoryView;

use crate::error::Failure;

fn usable(data: &Bound<'_, PyAny>) -> PyResult<PyUntypedBuffer> {
    let buffer = PyUntypedBuffer::get(data).map_err(|error| {
        let is_scalar = error.is_instance_of::<PyBufferError>(data.py()) && dimensions(data) == 0;
        let line = "a buffer of one value alone: allowed are arrays of one dimension or more";
        if is_scalar { Failure::Input(line.to_owned()).into() } else { error }
    })?;
    let line = if !buffer.is_c_contiguous() {
        "a buffer with gaps or in another order: allowed are C-contiguous ones"
    } else if has_objects(buffer.format().to_bytes()) {
        "a buffer of Python's objects: allowed are those of numbers and bytes"
    } else {
        return Ok(buffer);
    };
    Err(Failure::Input(line.to_owned()).into())
}

/// How many dimensions an array has; 1 where nobody can tell.
fn dimensions(data: &Bound<'_, PyAny>) -> usize {
    let view = PyMemoryView::from(data).and_then(|view| view.getattr("ndim")?.extract());
    view.unwrap_or(1)
}

/// Whether elements of this format are pointers of the interpreter, which mean nothing elsewhere,
/// and would crash it if they came from there. Names of fields stand between colons.
fn has_objects(format: &[u8]) -> bool {
    format.split(|&byte| byte == b':').step_by(2).any(|types| types.contains(&b'O'))
}

/// Uses the bytes of `data` while no other code of Python runs.
pub(crate) fn read<R>(data: &Bound<'_, PyAny>, act: impl FnOnce(&[u8]) -> R) -> PyResult<R> {
    let buffer = usable(data)?;
    // SAFETY: `act` cannot release the interpreter, so none of its code changes them.
    Ok(act(unsafe { bytes(&buffer) }))
}

/// Uses the bytes of `data` while other threads of Python run.
pub(crate) fn lend<R: Send>(
    data: &Bound<'_, PyAny>,
    act: impl FnOnce(&[u8]) -> R + Send,
) -> PyResult<R> {
    let buffer = usable(data)?;
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
    let buffer = usable(data)?;
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
