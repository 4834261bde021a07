//! Dispatch on the number type of the input.

/// Evaluates an expression with `T` as the number type of a kind: `with_type!(kind, T => solve::<T>(a))`.
#[doc(hidden)]
#[macro_export]
macro_rules! with_type {
    ($kind:expr, $t:ident => $body:expr) => {
        match $kind {
            lacuna::NumberType::F32 => {
                type $t = f32;
                $body
            }
            lacuna::NumberType::F64 => {
                type $t = f64;
                $body
            }
            lacuna::NumberType::C32 => {
                type $t = lacuna::Complex32;
                $body
            }
            lacuna::NumberType::C64 => {
                type $t = lacuna::Complex64;
                $body
            }
        }
    };
}
pub use with_type;
