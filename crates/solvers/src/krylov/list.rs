//! The methods by name.
use super::method::Listed;
use super::*;
use crate::System;
use crate::named::{Settings, name_of, unknown};
use lacuna_engine::{Recorder, Result, Scalar, compiled_here};

/// Defines the list and the lookup function, and makes each a [`Method`] in every number type, from one line per method.
macro_rules! methods {
    ($($kind:ident),* $(,)?) => {
        /// Every method, by name.
        pub const METHODS: &[MethodInfo] = &[$($kind::INFO),*];

        $(impl<T: Scalar> Method<T> for $kind {
            fn info(&self) -> &'static MethodInfo {
                &Self::INFO
            }
            fn record(&self, k: &mut Recorder<'_, T>, s: &System<'_, T>) {
                s.untyped(&mut |s| Listed::record(self, k.untyped(), s));
            }
            fn columns(&self) -> Option<&dyn ColumnMethod> {
                Listed::columns(self)
            }
            fn shrink(&self) -> f64 {
                Listed::shrink(self)
            }
            fn keeps_best(&self) -> bool {
                Listed::keeps_best(self)
            }
            fn estimates_variances(&self) -> bool {
                Listed::estimates_variances(self)
            }
            fn reads_norm(&self) -> bool {
                Listed::reads_norm(self)
            }
            fn fallback(&self) -> Option<&'static str> {
                Listed::fallback(self)
            }
        })*

        /// The method given by a name with options, `NAME:key=value,…`. Options in the name take precedence
        /// over the settings.
        ///
        /// # Errors
        /// [`Error::Argument`](lacuna_engine::Error::Argument) for an unknown name, with the names there are;
        /// for an unknown key, with the keys of that method; for an invalid value.
        pub fn method<T: Scalar>(text: &str, options: &Options) -> Result<Box<dyn Method<T>>> {
            compiled_here!(T, |text: &str, options: &Options| -> Result<Box<dyn Method<T>>> {
                let name = name_of(text);
                $(if name == $kind::INFO.name {
                    let settings = Settings::parse("method", text, $kind::INFO.options)?;
                    return Ok(Box::new($kind::named(&settings, options)?));
                })*
                Err(unknown("method", METHODS.iter().map(|m| m.name), name))
            })(text, options)
        }
    };
}

methods![
    Cg,
    ClassicalCg,
    PipelinedCg,
    FlexibleCg,
    Cr,
    MinRes,
    BiCgStab,
    ClassicalBiCgStab,
    BiCgStabL,
    Idr,
    Gmres,
    PipelinedGmres,
    FGmres,
    CbGmres,
    BiCg,
    Cgs,
    Qmr,
    TfQmr,
    Richardson,
    ChebyshevIteration,
    Lsmr,
    Lsqr,
    Cgls,
    Craig,
];
