//! Generic functions compiled once.
//!
//! Every crate that calls a generic function compiles its own instances of it. There are only four number
//! types, so the crate that defines a function can compile all instances, and other crates call those.
use std::any::Any;

/// The item of type `V` among those declared for each number type.
///
/// # Panics
/// If none has that type.
pub fn instance<V: Any>(of: &[&'static dyn Any]) -> &'static V {
    of.iter().find_map(|each| each.downcast_ref()).expect("one for each of the number types")
}

/// A value as one of another type, if that is the same type.
///
/// # Errors
/// The value, if it is not.
pub fn same<A: Any, B: Any>(value: A) -> Result<B, A> {
    let mut value = Some(value);
    match (&mut value as &mut dyn Any).downcast_mut::<Option<B>>().and_then(Option::take) {
        Some(value) => Ok(value),
        None => Err(value.expect("not taken")),
    }
}

/// A function generic over the number type `T`, written as a closure without captures, whose four instances
/// are compiled only in the crate of the call:
/// `compiled_here!(T, |a: &Csr<T>| -> Result<Csr<T>> { … })(a)`. Of a function for fewer types,
/// `compiled_here!(T: Double [f64, Complex64], |a: &Csr<T>| -> …)`.
#[macro_export]
macro_rules! compiled_here {
    ($t:ident, |$($name:ident: $type:ty),* $(,)?| -> $result:ty $body:block) => {
        $crate::compiled_here!(
            $t: $crate::Scalar [f32, f64, $crate::Complex32, $crate::Complex64],
            |$($name: $type),*| -> $result $body
        )
    };
    ($t:ident: $bound:path [$($number:ty),*], |$($name:ident: $type:ty),* $(,)?| -> $result:ty $body:block) => {{
        fn compiled<$t: $bound>($($name: $type),*) -> $result $body
        type Function<$t> = fn($($type),*) -> $result;
        #[cfg(not(test))]
        let function: Function<$t> = *$crate::instance::<Function<$t>>(&[$({
            static FUNCTION: Function<$number> = compiled;
            &FUNCTION
        }),*]);
        // The crate's own tests are compiled with what they use.
        #[cfg(test)]
        let function: Function<$t> = {
            $(let _: Option<$number> = None;)*
            compiled
        };
        function
    }};
}
