//! Number types by name, and dispatch on them.
use clap::ValueEnum;
use lacuna::NumberType;

/// A number type by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TypeName {
    F64,
    F32,
    C64,
    C32,
}

impl TypeName {
    pub fn kind(self) -> NumberType {
        match self {
            TypeName::F64 => NumberType::F64,
            TypeName::F32 => NumberType::F32,
            TypeName::C64 => NumberType::C64,
            TypeName::C32 => NumberType::C32,
        }
    }
}

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
