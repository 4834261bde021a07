//! What is allocated on a device, and who owns it.
use super::Device;
use crate::run::host::watched;
use crate::{
    Basis, Finish, LinOp, Matrix, Pass, PlanId, Program, Recorder, Resource, Result, Run, Scalar, Vector,
};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What is allocated on a device and not dropped: see [`Device::in_use`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InUse {
    /// Allocations of vectors and bases.
    pub vectors: usize,
    /// Allocations of cells.
    pub cells: usize,
    /// Matrices.
    pub matrices: usize,
    /// Plans.
    pub plans: usize,
}

/// Owns a resource of a device, which is freed when this is dropped.
pub struct Lease {
    device: Device,
    what: Resource,
}

impl Lease {
    pub(super) fn new(device: &Device, what: Resource) -> Self {
        device.0.leases[place(what)].fetch_add(1, Ordering::Relaxed);
        Lease { device: device.clone(), what }
    }
    /// What it owns.
    pub fn resource(&self) -> Resource {
        self.what
    }
}

/// Where the leases of a resource are counted.
fn place(what: Resource) -> usize {
    match what {
        Resource::Vectors(_) => 0,
        Resource::Cells(_) => 1,
        Resource::Matrix(_) => 2,
        Resource::Plan(_) => 3,
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.device.0.leases[place(self.what)].fetch_sub(1, Ordering::Relaxed);
        self.device.0.discard(self.what);
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.what.fmt(f)
    }
}

/// A handle with what it refers to, which is freed when this and all clones of it are dropped. It dereferences to the handle,
/// which is `Copy`; a handle that outlives its owners is stale, and using it is an error.
#[derive(Clone, Debug)]
#[must_use = "it is freed when it is dropped"]
pub struct Owned<H> {
    handle: H,
    lease: Arc<Lease>,
}

impl<H> Owned<H> {
    pub(super) fn new(device: &Device, handle: H, what: Resource) -> Self {
        Owned { handle, lease: Arc::new(Lease::new(device, what)) }
    }
    /// The handle, and the owner of what it refers to.
    pub fn into_parts(self) -> (H, Arc<Lease>) {
        (self.handle, self.lease)
    }
    /// The same resource with another handle.
    pub(super) fn map<G>(self, to: impl FnOnce(H) -> G) -> Owned<G> {
        Owned { handle: to(self.handle), lease: self.lease }
    }
    /// The device that it is on.
    pub fn device(&self) -> &Device {
        &self.lease.device
    }
}

impl<H> Deref for Owned<H> {
    type Target = H;
    fn deref(&self) -> &H {
        &self.handle
    }
}

impl<T: Scalar> LinOp<T> for Owned<Matrix<T>> {
    fn shape(&self) -> (usize, usize) {
        self.handle.shape()
    }
    fn keep(&self, k: &mut Recorder<'_, T>) {
        k.keep(&self.lease);
    }
    fn apply(&self, k: &mut Recorder<'_, T>, x: Vector<T>, y: Vector<T>, then: Pass<T>) {
        self.keep(k);
        self.handle.apply(k, x, y, then);
    }
    fn apply_columns(&self, k: &mut Recorder<'_, T>, x: Basis<T>, y: Basis<T>) {
        self.keep(k);
        self.handle.apply_columns(k, x, y);
    }
}

/// A program prepared for a device, with what was allocated while it was recorded. All of it is freed when it is dropped.
pub struct Plan {
    lease: Lease,
    id: PlanId,
    program: Program,
}

impl Plan {
    pub(super) fn new(device: &Device, id: PlanId, program: Program) -> Self {
        Plan { lease: Lease::new(device, Resource::Plan(id)), id, program }
    }
    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }
    /// The device that it runs on.
    pub fn device(&self) -> &Device {
        &self.lease.device
    }
    /// The backend's number for it.
    pub fn id(&self) -> PlanId {
        self.id
    }
    /// Runs the program until it stops.
    ///
    /// # Errors
    /// As [`Device::execute`].
    pub fn execute(&mut self, run: Run<'_>) -> Result<Finish> {
        watched(run, |run| self.lease.device.0.lock(self.program.name)?.execute(&self.program, self.id, run))
    }
}
