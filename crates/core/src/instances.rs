//! Generic functions compiled once.
//!
//! Each crate compiles the instances of the generic functions that it calls, again and again over a tree of crates. There are four
//! number types, so that the crate that has a function can compile all there will be; others then call these.
use std::any::Any;

/// The one of type `V` among what is declared for each of the four number types.
///
/// # Panics
/// Where none is of that type.
pub fn instance<V: Any>(of: [&'static dyn Any; 4]) -> &'static V {
    of.into_iter().find_map(|each| each.downcast_ref()).expect("one for each of the four number types")
}

/// A function generic over the number type `T`, written as a closure that captures nothing, whose four instances are compiled in the
/// crate that this stands in, and in no other:
/// `compiled_here!(T, |a: &Csr<T>| -> Result<Csr<T>> { … })(a)`.
#[macro_export]
macro_rules! compiled_here {
    ($t:ident, |$($name:ident: $type:ty),* $(,)?| -> $result:ty $body:block) => {{
        fn compiled<$t: $crate::Scalar>($($name: $type),*) -> $result $body
        type Function<$t> = fn($($type),*) -> $result;
        static F32: Function<f32> = compiled;
        static F64: Function<f64> = compiled;
        static C32: Function<$crate::Complex32> = compiled;
        static C64: Function<$crate::Complex64> = compiled;
        $crate::instance::<Function<$t>>([&F32, &F64, &C32, &C64])
    }};
}
