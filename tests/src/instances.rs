//! Every case in every number type, compiled here once: the test programs of the backends link to these.
use lacuna_engine::{Complex32, Complex64, Device, Scalar};

/// A case, on the devices that a function makes.
pub type Case = fn(fn() -> Device);

macro_rules! cases {
    ($($file:ident: $($case:ident)*;)*) => {
        /// All cases in a number type, by name.
        fn cases<T: Scalar>() -> Vec<(&'static str, Case)> {
            vec![$($((concat!(stringify!($file), "::", stringify!($case)), crate::$file::$case::<T>),)*)*]
        }
    };
}
crate::every_case! { (cases) }

/// All cases by name, in `f32`, `f64`, `Complex32` and `Complex64`.
pub fn instances() -> [Vec<(&'static str, Case)>; 4] {
    [cases::<f32>(), cases::<f64>(), cases::<Complex32>(), cases::<Complex64>()]
}
