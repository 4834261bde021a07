//! How long iterations take, estimated from their traffic.

/// Seconds of an iteration besides its traffic, and the bytes moved in a second: on the host from its caches,
/// from its memory, and on a separate device.
const IN_CACHE: (f64, f64) = (3e-6, 4e10);
const ON_HOST: (f64, f64) = (3e-6, 1.2e10);
const ON_DEVICE: (f64, f64) = (8e-6, 2e12);
/// The largest traffic of an iteration whose data stay in the caches.
const CACHES: usize = 8 << 20;

/// Seconds of an iteration that moves so many bytes.
pub(super) fn seconds_of_iteration(bytes: usize, on_host: bool) -> f64 {
    let (latency, bandwidth) = match on_host {
        true if bytes <= CACHES => IN_CACHE,
        true => ON_HOST,
        false => ON_DEVICE,
    };
    latency + bytes as f64 / bandwidth
}
