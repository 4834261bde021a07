//! Generic functions compiled once.
//!
//! Every crate that calls a generic function compiles its own instances of it. There are only four number
//! types, so the crate that defines a function can compile all instances, and other crates call those.
use std::any::Any;

/// The item of type `V` among those declared for the four number types.
///
/// # Panics
/// If none has that type.
pub fn instance<V: Any>(of: [&'static dyn Any; 4]) -> &'static V {
    of.into_iter().find_map(|each| each.downcast_ref()).expect("one for each of the four number types")
}

/// A function generic over the number type `T`, written as a closure without captures, whose four instances
/// are compiled only in the crate of the call:
/// `compiled_here!(T, |a: &Csr<T>| -> Result<Csr<T>> { … })(a)`.
#[macro_export]
macro_rules! compiled_here {
    ($t:ident, |$($name:ident: $type:ty),* $(,)?| -> $result:ty $body:block) => {{
        fn compiled<$t: $crate::Scalar>($($name: $type),*) -> $result $body
        type Function<$t> = fn($($type),*) -> $result;
        #[cfg(not(test))]
        let function: Function<$t> = {
            static F32: Function<f32> = compiled;
            static F64: Function<f64> = compiled;
            static C32: Function<$crate::Complex32> = compiled;
            static C64: Function<$crate::Complex64> = compiled;
            *$crate::instance::<Function<$t>>([&F32, &F64, &C32, &C64])
        };
        // The crate's own tests are compiled with what they use.
        #[cfg(test)]
        let function: Function<$t> = compiled;
        function
    }};
}
