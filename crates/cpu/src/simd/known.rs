//! What is known of a number type and an instruction set when a kernel is compiled.
use lacuna_engine::{NumberType, Scalar};
use pulp::Simd;
use std::marker::PhantomData;

/// Conditions for the choice of a kernel. An `if` on a constant compiles the branch that it takes alone; a `match` on the number
/// type compiles all of them, for every number type and instruction set.
pub(crate) struct Known<T, S = pulp::Scalar>(PhantomData<(T, S)>);

impl<T: Scalar> Known<T> {
    /// Complex numbers, whatever the instruction set.
    pub(crate) const PAIRS: bool = T::KIND.is_complex();
}

impl<T: Scalar, S: Simd> Known<T, S> {
    /// Vector instructions, and numbers of this type.
    pub(crate) const F32: bool = Self::is(NumberType::F32);
    pub(crate) const F64: bool = Self::is(NumberType::F64);
    pub(crate) const C32: bool = Self::is(NumberType::C32);
    pub(crate) const C64: bool = Self::is(NumberType::C64);
    pub(crate) const COMPLEX: bool = Self::C32 || Self::C64;
    /// The same with registers of 64 bytes.
    pub(crate) const F32_IN_64: bool = Self::F32 && Self::BYTES == 64;
    pub(crate) const F64_IN_64: bool = Self::F64 && Self::BYTES == 64;
    pub(crate) const C32_IN_64: bool = Self::C32 && Self::BYTES == 64;
    pub(crate) const C64_IN_64: bool = Self::C64 && Self::BYTES == 64;
    /// The same with registers of 32 bytes.
    pub(crate) const F32_IN_32: bool = Self::F32 && Self::BYTES == 32;
    pub(crate) const F64_IN_32: bool = Self::F64 && Self::BYTES == 32;

    const BYTES: usize = size_of::<S::f64s>();
    const fn is(kind: NumberType) -> bool {
        !S::IS_SCALAR && T::KIND as u8 == kind as u8
    }
}
