//! What a program calls, for all number types. Crates compiled without much optimisation link to these
//! instances: debug builds of programs, the examples and the tests. Each would compile its own for ten seconds otherwise.
use crate::{LinearSystem, Prepared};
use lacuna_engine::{Complex32, Complex64, Result, Scalar};
use lacuna_solvers::{Outcome, Watch};
use ndarray::{ArrayView1, ArrayView2, ArrayViewMut1, ArrayViewMut2};
use std::ops::ControlFlow;

type Watching<'a> = Option<&'a mut dyn FnMut(Watch) -> ControlFlow<()>>;

/// The functions for a number type.
#[expect(clippy::type_complexity, reason = "each is the type of one function")]
struct Instances<T: Scalar> {
    _prepare: fn(LinearSystem<T>) -> Result<Prepared<T>>,
    _solve: for<'a> fn(
        &'a mut Prepared<T>,
        ArrayView1<'_, T>,
        ArrayViewMut1<'_, T>,
        Watching<'_>,
    ) -> Result<&'a Outcome>,
    _solve_columns: fn(&mut Prepared<T>, ArrayView2<'_, T>, ArrayViewMut2<'_, T>) -> Result<Vec<Outcome>>,
    _update_values: fn(&mut Prepared<T>, &[T]) -> Result<()>,
}

macro_rules! instances {
    ($($name:ident: $t:ty),*) => {$(
        #[used]
        static $name: Instances<$t> = Instances {
            _prepare: LinearSystem::prepare,
            _solve: Prepared::solve_views,
            _solve_columns: Prepared::solve_columns,
            _update_values: Prepared::update_values,
        };
    )*};
}
instances!(F32: f32, F64: f64, C32: Complex32, C64: Complex64);
