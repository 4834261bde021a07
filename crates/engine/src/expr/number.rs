//! Number types known at run time: a value for each, and dispatch to code that is generic over [`Scalar`].
use crate::{Complex32, Complex64, NumberType, Scalar};
use std::fmt;

/// Evaluates an expression with `$t` as the type of a [`NumberType`]: `with_number!(kind, T => f::<T>(x))`.
#[macro_export]
macro_rules! with_number {
    ($kind:expr, $t:ident => $body:expr) => {
        match $kind {
            $crate::NumberType::F32 => {
                type $t = f32;
                $body
            }
            $crate::NumberType::F64 => {
                type $t = f64;
                $body
            }
            $crate::NumberType::C32 => {
                type $t = $crate::Complex32;
                $body
            }
            $crate::NumberType::C64 => {
                type $t = $crate::Complex64;
                $body
            }
        }
    };
}

/// Evaluates an expression with `$value` as what is in an [`Each`]: `with_each!(each, v => v.len())`.
#[macro_export]
macro_rules! with_each {
    ($each:expr, $value:ident => $body:expr) => {
        match $each {
            $crate::Each::F32($value) => $body,
            $crate::Each::F64($value) => $body,
            $crate::Each::C32($value) => $body,
            $crate::Each::C64($value) => $body,
        }
    };
}

/// Types that depend on a number type: vectors of numbers, matrices, files of cells.
pub trait Family {
    /// The type for one number type.
    type Of<T: Scalar>;
}

/// A member of a [`Family`], of a number type known at run time.
pub enum Each<F: Family> {
    /// For `f32`.
    F32(F::Of<f32>),
    /// For `f64`.
    F64(F::Of<f64>),
    /// For `Complex<f32>`.
    C32(F::Of<Complex32>),
    /// For `Complex<f64>`.
    C64(F::Of<Complex64>),
}

impl<F: Family> Each<F> {
    /// The number type.
    pub fn kind(&self) -> NumberType {
        match self {
            Each::F32(_) => NumberType::F32,
            Each::F64(_) => NumberType::F64,
            Each::C32(_) => NumberType::C32,
            Each::C64(_) => NumberType::C64,
        }
    }
    /// The member, if it is of this number type.
    pub fn get<T: Scalar>(&self) -> Option<&F::Of<T>> {
        T::member(self)
    }
    /// The member, if it is of this number type.
    pub fn take<T: Scalar>(self) -> Option<F::Of<T>> {
        T::into_member(self)
    }
}

impl<F: Family> Clone for Each<F>
where
    F::Of<f32>: Clone,
    F::Of<f64>: Clone,
    F::Of<Complex32>: Clone,
    F::Of<Complex64>: Clone,
{
    fn clone(&self) -> Self {
        match self {
            Each::F32(member) => Each::F32(member.clone()),
            Each::F64(member) => Each::F64(member.clone()),
            Each::C32(member) => Each::C32(member.clone()),
            Each::C64(member) => Each::C64(member.clone()),
        }
    }
}

/// All members of a [`Family`].
pub struct All<F: Family> {
    pub(crate) f32: F::Of<f32>,
    pub(crate) f64: F::Of<f64>,
    pub(crate) c32: F::Of<Complex32>,
    pub(crate) c64: F::Of<Complex64>,
}

impl<F: Family> All<F> {
    /// The member of a number type.
    pub fn get<T: Scalar>(&self) -> &F::Of<T> {
        T::member_of_all(self)
    }
    /// The member of a number type.
    pub fn get_mut<T: Scalar>(&mut self) -> &mut F::Of<T> {
        T::member_of_all_mut(self)
    }
}

impl<F: Family> Default for All<F>
where
    F::Of<f32>: Default,
    F::Of<f64>: Default,
    F::Of<Complex32>: Default,
    F::Of<Complex64>: Default,
{
    fn default() -> Self {
        All {
            f32: Default::default(),
            f64: Default::default(),
            c32: Default::default(),
            c64: Default::default(),
        }
    }
}

/// One number, of a number type known at run time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Number {
    kind: NumberType,
    bytes: [u8; 16],
}

impl Number {
    /// The number as a value of its type.
    pub fn new<T: Scalar>(value: T) -> Self {
        let mut bytes = [0; 16];
        bytes[..size_of::<T>()].copy_from_slice(bytemuck::bytes_of(&value));
        Number { kind: T::KIND, bytes }
    }
    /// The real number `value`, rounded to the type.
    pub fn real(kind: NumberType, value: f64) -> Self {
        with_number!(kind, T => Number::new(T::from_real(value)))
    }
    /// The number type.
    pub fn kind(self) -> NumberType {
        self.kind
    }
    /// The bytes of the number in memory.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.kind.size()]
    }
    /// The value, if it is of this number type.
    pub fn get<T: Scalar>(self) -> Option<T> {
        (self.kind == T::KIND).then(|| bytemuck::pod_read_unaligned(self.bytes()))
    }
    fn value<T: Scalar>(self) -> T {
        self.get().unwrap_or(T::from_real(f64::NAN))
    }
    /// Whether it equals a real number; −0 equals 0.
    pub(crate) fn is(self, value: f64) -> bool {
        with_number!(self.kind, T => self.value::<T>() == T::from_real(value))
    }
    pub(crate) fn negative(self) -> Self {
        with_number!(self.kind, T => Number::new(-self.value::<T>()))
    }
    pub(crate) fn times(self, by: Self) -> Self {
        with_number!(self.kind, T => Number::new(self.value::<T>() * by.value::<T>()))
    }
    pub(crate) fn plus(self, other: Self) -> Self {
        with_number!(self.kind, T => Number::new(self.value::<T>() + other.value::<T>()))
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        with_number!(self.kind, T => fmt::Debug::fmt(&self.value::<T>(), f))
    }
}
