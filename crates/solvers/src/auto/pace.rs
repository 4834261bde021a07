//! How long iterations take, estimated from their traffic.
use lacuna_engine::Scalar;
use lacuna_formats::Csr;

/// Seconds of an iteration besides its traffic, and the bytes moved in a second: on the host from its caches,
/// from its memory, and on a separate device.
const IN_CACHE: (f64, f64) = (3e-6, 4e10);
const ON_HOST: (f64, f64) = (3e-6, 1.2e10);
const ON_DEVICE: (f64, f64) = (8e-6, 2e12);
/// The largest traffic of an iteration whose data stay in the caches.
const CACHES: usize = 8 << 20;

/// Seconds that an iteration is expected to take which moves so many bytes, on the host or on a separate device.
pub fn seconds_of_iteration(bytes: usize, on_host: bool) -> f64 {
    let (latency, bandwidth) = match on_host {
        true if bytes <= CACHES => IN_CACHE,
        true => ON_HOST,
        false => ON_DEVICE,
    };
    latency + bytes as f64 / bandwidth
}

/// What the iterations of a method are expected to take, in seconds, before anything is made for them.
pub(super) struct Pace {
    /// Format, vectors and program.
    pub(super) preparing: f64,
    /// An iteration.
    pub(super) iteration: f64,
}

/// Seconds in which a byte of a vector is had from the system.
const NEW_BYTE: f64 = 4e-10;

impl Pace {
    /// Of a method with a diagonal as preconditioner.
    pub(super) fn of<T: Scalar>(method: &str, a: &Csr<T>, on_host: bool) -> Self {
        // Seconds of recording and compiling; products of an iteration, and vectors that it reads or writes.
        let (program, products, vectors) = match method {
            "bicgstab" => (2e-4, 2, 14),
            "idr" => (4e-4, 1, 20),
            _ => (1.5e-4, 1, 8),
        };
        let vectors = vectors * a.rows() * size_of::<T>();
        let bytes = products * a.nnz() * (size_of::<T>() + size_of::<u32>()) + vectors;
        Pace {
            preparing: program + NEW_BYTE * vectors as f64,
            iteration: seconds_of_iteration(bytes, on_host),
        }
    }
}
