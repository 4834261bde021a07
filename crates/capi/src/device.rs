//! Devices.
use crate::error::guard;
use crate::pointers::{result, text};
use crate::text::{array, copied, string};
use lacuna::{Device, dynamic};
use std::ffi::{c_char, c_int};

/// `lac_device`
pub(crate) struct LacDevice(pub(crate) Device);

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn lac_device_open(name: *const c_char, device: *mut *mut LacDevice) -> c_int {
    guard(|| {
        // SAFETY: as the header asks of the caller.
        let (to, name) = unsafe { (result(device)?, text("the name of a device", name)?) };
        let opened = dynamic::open(name.unwrap_or("auto"), None)?;
        *to = Box::into_raw(Box::new(LacDevice(opened)));
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn lac_device_close(device: *mut LacDevice) {
    guard(|| {
        if !device.is_null() {
            // SAFETY: a handle of `lac_device_open` that is not closed yet, as the header asks of the caller.
            drop(unsafe { Box::from_raw(device) });
        }
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn lac_devices(json: *mut c_char, capacity: usize, length: *mut usize) -> c_int {
    guard(|| {
        let of = |backend: lacuna::BackendInfo| {
            let found = match backend.built_in {
                true => lacuna::devices(backend.name).map_err(|error| error.to_string()),
                false => Err("not built in".into()),
            };
            let (devices, message) = match found {
                Ok(devices) => (devices, String::new()),
                Err(message) => (Vec::new(), message),
            };
            let names = array(devices.iter().map(|device| string(&device.name)));
            let (backend, message) = (string(backend.name), string(&message));
            format!("{{\"backend\": {backend}, \"devices\": {names}, \"message\": {message}}}")
        };
        let all = array(lacuna::backends().into_iter().map(of));
        // SAFETY: as the header asks of the caller.
        unsafe { hand_over(&all, json, capacity, length) };
        Ok(())
    })
}

/// Copies a text to the caller, with its length.
///
/// # Safety
/// `to` must be null or point to `capacity` bytes, `length` be null or point to a number.
pub(crate) unsafe fn hand_over(text: &str, to: *mut c_char, capacity: usize, length: *mut usize) {
    // SAFETY: as the caller promises.
    unsafe {
        let needed = copied(text, to, capacity);
        if let Some(length) = length.as_mut() {
            *length = needed;
        }
    }
}
