//! The four instances of functions generic over the number type, compiled once, in this crate.
//!
//! A crate compiles the instances of the generic functions that it calls. Calls through these tables avoid
//! that.
use crate::Prepared;
use crate::plan::compile::Compiled;
use crate::run::arena::Arena;
use crate::run::execute::{self, Start};
use crate::run::watch::Watching;
use lacuna_engine::{Complex32, Complex64, Control, HostStore, Program, Result, Scalar, instance};

/// The functions of the backend for one number type.
pub(crate) struct Instance<T: Scalar> {
    /// Prepares a program for a number of threads.
    pub(crate) prepare: fn(&Program<T>, &HostStore, usize) -> Result<Prepared<T>>,
    /// As [`execute::run`].
    pub(crate) run: Executes<T>,
}

type Executes<T> =
    unsafe fn(&Program<T>, &Compiled<T>, &mut Arena<T>, Start<'_, T>, Watching<'_>) -> Result<Control>;

impl<T: Scalar> Instance<T> {
    const NEW: Self = Instance { prepare: Prepared::new, run: execute::run };

    /// The instance of the number type.
    pub(crate) fn get() -> &'static Self {
        instance([&F32, &F64, &C32, &C64])
    }
}

static F32: Instance<f32> = Instance::NEW;
static F64: Instance<f64> = Instance::NEW;
static C32: Instance<Complex32> = Instance::NEW;
static C64: Instance<Complex64> = Instance::NEW;
