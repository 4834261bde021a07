//! Arrays in the memory of a GPU, by DLPack or `__cuda_array_interface__`: an address there. Nothing is copied here.
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi::c_str;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::ffi::c_void;
use std::slice;

/// DLPack's numbers of device types: memory of CUDA, and such that the host shares.
const CUDA: [i32; 2] = [2, 13];

/// `DLTensor` of DLPack 0.8, which later versions keep behind `DLManagedTensor`.
#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    dimensions: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *const i64,
    strides: *const i64,
    offset: u64,
}

/// What is needed of a tensor: its address, shape, strides in elements, the character of its type, the device.
type Found = (u64, Vec<i64>, Option<Vec<i64>>, &'static str, i32);

/// The tensor that an object gives by DLPack, which stays the object's.
#[pyfunction]
pub(crate) fn dlpack_tensor(object: &Bound<'_, PyAny>) -> PyResult<Found> {
    // What the object has queued is done before its own default stream goes on, which we wait for with all others.
    let capsule = object.call_method("__dlpack__", (), None)?;
    let capsule =
        capsule.cast::<PyCapsule>().map_err(|_| PyTypeError::new_err("__dlpack__: expected a capsule"))?;
    let tensor = capsule.pointer_checked(Some(c_str!("dltensor")))?.cast::<Tensor>();
    // SAFETY: by the protocol a capsule of this name holds a tensor, which lives as long as the capsule.
    let tensor = unsafe { tensor.as_ref() };
    if !CUDA.contains(&tensor.device_type) {
        return Err(PyTypeError::new_err(format!(
            "expected memory of CUDA, got DLPack's device type {}",
            tensor.device_type
        )));
    }
    let char = match (tensor.code, tensor.bits, tensor.lanes) {
        (2, 32, 1) => "f",
        (2, 64, 1) => "d",
        (5, 64, 1) => "F",
        (5, 128, 1) => "D",
        (code, bits, _) => {
            return Err(PyTypeError::new_err(format!(
                "expected floating-point numbers, got DLPack's type {code} of {bits} bits"
            )));
        }
    };
    let count = usize::try_from(tensor.dimensions)
        .map_err(|_| PyValueError::new_err("a negative number of dimensions"))?;
    let list = |numbers: *const i64| match (numbers.is_null(), count) {
        (true, _) => None,
        (false, 0) => Some(Vec::new()),
        // SAFETY: one for each dimension.
        (false, count) => Some(unsafe { slice::from_raw_parts(numbers, count) }.to_vec()),
    };
    let address = tensor.data as u64 + tensor.offset;
    Ok((address, list(tensor.shape).unwrap_or_default(), list(tensor.strides), char, tensor.device_id))
}
