//! Sparse linear systems, solved by Krylov methods that are written once and run on every backend.
//!
//! ```
//! use lacuna::prelude::*;
//!
//! let a = Spec::parse("gen:poisson2d:64x64")?.build::<f64>()?;
//! let b = Array1::ones(a.rows());
//! let (x, outcome) = solve(&a, &b)?;
//! assert!(outcome.converged() && outcome.true_residual <= 1e-8);
//! # assert_eq!(x.len(), 4096);
//! # Ok::<(), lacuna::Error>(())
//! ```
//!
//! # Where things are
//! - [`solve`] is one call that chooses everything for you. [`LinearSystem`] lets you choose, and solves for
//!   a new right-hand side without allocating.
//! - [`Csr`] and [`Triplets`] hold a matrix, [`CsrRef`] borrows one; [`Assembly`] and [`Elements`] build one;
//!   [`from_dense`] converts an `ndarray`, [`dense`] keeps its zeros; [`formats`] has the rest.
//! - [`LinearSystem::on`] says where to solve; [`open`] opens a [`Device`] by its name. Without it the [`default_device`] is
//!   taken, the best there is.
//! - [`solvers`] has the methods. A method of your own is a function of about 20 lines, see below.
//! - [`Pass`] and [`LinOp`] explain what formulas, passes and operators are.
//! - [`backend`] has the engine, for backends, formats and operations of your own. It may change in any version; the rest
//!   follows Semantic Versioning.
//!
//! # Backends
//! The features `cuda`, `opencl` and `cpu` of this crate say which backends are built in; they add up. Which one runs is said
//! at run time. `cuda` needs `nvcc` to build, `opencl` an OpenCL loader to link; `cpu` needs nothing.
//!
//! # Files and model problems
//! The feature `io` adds the module `io`, which reads and writes files, and `Spec`, the generators that the examples here take
//! their matrices from. Without it no archive reader or decompressor is compiled.
//!
//! # A method of your own
//! A method records its operations: passes that update vectors, take dot products and compute coefficients,
//! all on the device. This one is steepest descent. It runs on every backend and in every number type, with
//! the same stopping test, confirmation of the true residual and reports as any other method.
//!
//! ```
//! use lacuna::prelude::*;
//!
//! fn steepest_descent<T: Scalar>(k: &mut Recorder<'_, T>, s: &System<'_, T>) {
//!     let (a, b, x) = (s.a, s.b, s.x);
//!     let [r, q] = k.vectors(s.n());
//!     let [rr, rq, alpha] = k.cells();
//!
//!     let residual = Pass::new("residual").set(r, b - q).dot(rr, r, r);
//!     let along_r = Pass::new("along_r")
//!         .dot(rq, r, q)
//!         .stop_if(rq.not_positive(), Reason::IndefiniteOperator)
//!         .eval(alpha, rr / rq);
//!     let step = Pass::new("step").set(x, x + alpha * r).set(r, r - alpha * q).dot(rr, r, r);
//!     let step = s.count(step, rr);
//!
//!     k.restart(|k| k.spmv_dot(a, x, q, s.confirm(residual, rr)));
//!     k.each(|k| {
//!         k.spmv_dot(a, r, q, along_r);
//!         k.multi_axpy_dot(step);
//!     });
//! }
//!
//! let a = Spec::parse("gen:poisson2d:12x12")?.build::<f64>()?;
//! let b = Array1::ones(a.rows());
//! let mut system = LinearSystem::new(a).method(steepest_descent).prepare()?;
//! let (_, outcome) = system.solve(&b)?;
//! assert!(outcome.converged());
//! # Ok::<(), lacuna::Error>(())
//! ```
mod advise;
mod applied;
mod arrays;
mod device_list;
mod devices;
#[cfg(feature = "ranks")]
mod divided;
pub mod dynamic;
#[cfg(all(instances_are_shared, not(test)))]
mod instances;
#[cfg(feature = "mpi")]
pub mod mpi;
mod preconditioned;
mod prepared;
mod remembered_method;
mod system;
mod timed_product;
mod tuned_format;
mod vectors;

/// The whole engine, for backends, formats and operations of your own.
///
/// **It may change in any version**, except for what this crate has at its root too: how programs are recorded, lowered, encoded
/// and run is not settled as methods, matrices and outcomes are. Depend on an exact version if you need it.
/// [`Backend`](backend::Backend) and [`Program`](backend::Program) explain what a backend must provide.
pub mod backend {
    pub use lacuna_engine::*;
}

pub use advise::{Trial, Trying, advise};
pub use arrays::{dense, from_dense, multiply, to_dense, to_device, to_host};
pub use devices::{
    BackendInfo, DeviceOptions, Place, Provider, backends, default_device, devices, open, open_with, register,
};
#[cfg(feature = "ranks")]
pub use divided::survey_ranks;
#[cfg(feature = "cpu")]
pub use lacuna_cpu as cpu;
#[cfg(feature = "cuda")]
pub use lacuna_cuda as cuda;
#[cfg(feature = "eigen")]
pub use lacuna_eigen as eigen;
pub use lacuna_engine::{
    Adjoint, Basis, Cell, Cells, Complex, Complex32, Complex64, Device, DeviceInfo, Diagonal, Error,
    ErrorKind, Expr, Format, Formula, HostOperator, HostResult, Identity, LinOp, Matrix, NotConverged,
    NumberType, Owned, Pass, Product, Reason, Recorder, Result, Scalar, Scaled, Scope, Shifted, Sum, Test,
    Transposed, Vector, WithAdjoint, WithTranspose,
};
pub use lacuna_formats as formats;
pub use lacuna_formats::{
    Assembled, Assembly, AssemblyPlan, Csr, CsrRef, Elements, Pair, Structure, Triplets,
};
#[cfg(feature = "io")]
pub use lacuna_io as io;
#[cfg(feature = "io")]
pub use lacuna_io::Spec;
#[cfg(feature = "opencl")]
pub use lacuna_opencl as opencl;
#[cfg(feature = "ranks")]
pub use lacuna_ranks as ranks;
pub use lacuna_solvers as solvers;
pub use lacuna_solvers::Chosen;
pub use lacuna_solvers::auto::{MethodChoice, PreconditionerChoice, check_method, check_preconditioner};
pub use lacuna_solvers::{
    Handles, Method, Norm, Observer, Options, Outcome, Parts, Placed, Preconditioner, Setup, Solver, Stop,
    System, Watch, Way,
};
pub use ndarray;
pub use preconditioned::Preconditioned;
pub use prepared::Prepared;
pub use system::{LinearSystem, solve};
pub use timed_product::TimedProduct;
pub use tuned_format::{Tuned, tune_format};
pub use vectors::{AsVector, AsVectorMut};

/// The items that most programs use.
pub mod prelude {
    #[cfg(feature = "io")]
    pub use crate::Spec;
    pub use crate::{
        AsVector, AsVectorMut, Assembled, Assembly, Cell, Complex, Complex32, Complex64, Csr, CsrRef, Device,
        Elements, Error, Handles, HostOperator, LinOp, LinearSystem, Matrix, Method, Norm, Outcome, Parts,
        Pass, Preconditioner, Prepared, Reason, Recorder, Result, Scalar, Setup, Solver, Stop, Structure,
        System, Triplets, Vector, default_device, from_dense, multiply, solve, to_dense, to_device, to_host,
    };
    pub use ndarray::{Array1, Array2, ArrayView1, ArrayView2, ArrayViewMut1};
}

/// Runs the programs of the README and of the guide as tests; those of `interop.md` are run by the crate
/// `lacuna-formats`.
#[cfg(doctest)]
mod pages {
    macro_rules! pages {
        ($($name:ident $file:literal)*) => {$(
            #[doc = include_str!(concat!("../../../", $file))]
            pub struct $name;
        )*};
    }
    pages! {
        Readme "README.md"
        Amg "docs/guide/amg.md"
        Assembly "docs/guide/assembly.md"
        Backends "docs/guide/backends.md"
        Devices "docs/guide/devices.md"
        Embedding "docs/guide/embedding.md"
        Eigenvalues "docs/guide/eigenvalues.md"
        Formats "docs/guide/formats.md"
        Methods "docs/guide/methods.md"
        Operators "docs/guide/operators.md"
        OwnPreconditioner "docs/guide/own-preconditioner.md"
        Ranks "docs/guide/ranks.md"
        Solving "docs/guide/solving.md"
        Time "docs/guide/time.md"
        Tutorial "docs/guide/tutorial.md"
    }
}
