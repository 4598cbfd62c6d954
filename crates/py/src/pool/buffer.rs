//! Python buffers, including NumPy arrays, accessed in place.
#![expect(unsafe_code, reason = "without it, every array would be copied once more")]

use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::types::PyMemoryView;

use crate::error::Failure;

fn usable(data: &Bound<'_, PyAny>) -> PyResult<PyUntypedBuffer> {
    let buffer = PyUntypedBuffer::get(data).map_err(|error| {
        let is_scalar = error.is_instance_of::<PyBufferError>(data.py()) && dimensions(data) == 0;
        let line = "a buffer of one value alone: must be an array of one dimension or more";
        if is_scalar { Failure::Input(line.to_owned()).into() } else { error }
    })?;
    let line = if !buffer.is_c_contiguous() {
        "a buffer with gaps or in another order: must be C-contiguous"
    } else if has_objects(buffer.format().to_bytes()) {
        "a buffer of Python's objects: must be those of numbers and bytes"
    } else {
        return Ok(buffer);
    };
    Err(Failure::Input(line.to_owned()).into())
}

/// Number of dimensions of an array; 1 if it is unknown.
fn dimensions(data: &Bound<'_, PyAny>) -> usize {
    let view = PyMemoryView::from(data).and_then(|view| view.getattr("ndim")?.extract());
    view.unwrap_or(1)
}

/// True if elements of this format are object pointers. They have no meaning in another process,
/// and would crash the interpreter if they were read back. Names of fields stand between colons.
fn has_objects(format: &[u8]) -> bool {
    format.split(|&byte| byte == b':').step_by(2).any(|types| types.contains(&b'O'))
}

/// Accesses the bytes of `data` while no other Python code runs.
pub(crate) fn read<R>(data: &Bound<'_, PyAny>, act: impl FnOnce(&[u8]) -> R) -> PyResult<R> {
    let buffer = usable(data)?;
    // SAFETY: `act` cannot release the interpreter, so no Python code changes the bytes.
    Ok(act(unsafe { bytes(&buffer) }))
}

/// Accesses the bytes of `data` while other Python threads run.
pub(crate) fn lend<R: Send>(
    data: &Bound<'_, PyAny>,
    act: impl FnOnce(&[u8]) -> R + Send,
) -> PyResult<R> {
    let buffer = usable(data)?;
    // SAFETY: the caller must ensure that no other thread changes the bytes, as for `write` of
    // Python's files.
    let bytes = unsafe { bytes(&buffer) };
    Ok(data.py().detach(|| act(bytes)))
}

/// # Safety
///
/// Nothing may change the bytes while they are in use.
unsafe fn bytes(buffer: &PyUntypedBuffer) -> &[u8] {
    if buffer.len_bytes() == 0 {
        return &[];
    }
    // SAFETY: the exporter keeps that many bytes there while `buffer` is held.
    unsafe {
        std::slice::from_raw_parts(buffer.buf_ptr().cast::<u8>().cast_const(), buffer.len_bytes())
    }
}

/// Fills the bytes of `data` by `act`, while other Python threads run.
pub(crate) fn fill<R: Send>(
    data: &Bound<'_, PyAny>,
    act: impl FnOnce(&mut [u8]) -> R + Send,
) -> PyResult<R> {
    let buffer = usable(data)?;
    if buffer.readonly() {
        let line = "a buffer that cannot be written: must be writable";
        return Err(Failure::Input(line.to_owned()).into());
    }
    if buffer.len_bytes() == 0 {
        return Ok(act(&mut []));
    }
    // SAFETY: the exporter keeps that many writable bytes there while `buffer` is held. The caller
    // must ensure that no other thread uses them, as for `readinto` of Python's files.
    let bytes = unsafe {
        std::slice::from_raw_parts_mut(buffer.buf_ptr().cast::<u8>(), buffer.len_bytes())
    };
    Ok(data.py().detach(|| act(bytes)))
}
