//! Preconditioners by name.
#[cfg(feature = "direct")]
use super::Direct;
use super::{
    Amg, BlockIlu, BlockJacobi, Chebyshev, ColumnScaling, Fsai, Ic0, Ilu0, Ilut, Jacobi, Multigrid, Neumann,
    Polynomial, Preconditioner, Sor, Spai, Ssor,
};
use crate::named::{OptionInfo, Settings, name_of, unknown};
use lacuna_engine::{Result, Scalar, compiled_here};

/// A preconditioner in the list.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PrecondInfo {
    /// Its name.
    pub name: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
    /// Its options, for `NAME:key=value,…`.
    pub options: &'static [OptionInfo],
    /// Whether it needs a diagonal without zeros.
    pub needs_diagonal: bool,
    /// Whether it needs a Hermitian matrix.
    pub needs_hermitian: bool,
    /// Whether it needs the same coefficients at all points of a grid, like the format `stencil`.
    pub needs_stencil: bool,
}

/// No preconditioner.
const NONE: PrecondInfo = PrecondInfo {
    name: "none",
    about: "no preconditioner",
    options: &[],
    needs_diagonal: false,
    needs_hermitian: false,
    needs_stencil: false,
};

/// The options that every preconditioner takes in addition to its own.
pub const SHARED_OPTIONS: &[OptionInfo] =
    &[OptionInfo { key: "polynomial", default: "0", about: "order of a polynomial on top, 0 to 16" }];

/// Defines the list and the lookup function, from one line per preconditioner.
macro_rules! preconditioners {
    ($($(#[$if:meta])* $kind:ident),* $(,)?) => {
        /// Every preconditioner, by name.
        pub const PRECONDITIONERS: &[PrecondInfo] = &[NONE, $($(#[$if])* $kind::INFO),*];

        /// The preconditioner given by a name with options, `NAME:key=value,…`; `None` for `none`. Each takes
        /// `polynomial=ORDER`, see [`Polynomial`].
        ///
        /// # Errors
        /// [`Error::Argument`](lacuna_engine::Error::Argument) for an unknown name, with the names there are;
        /// for an unknown key, with the keys of that preconditioner; for an invalid value.
        pub fn preconditioner<T: Scalar>(text: &str) -> Result<Option<Box<dyn Preconditioner<T>>>> {
            compiled_here!(T, |text: &str| -> Result<Option<Box<dyn Preconditioner<T>>>> {
                const WHAT: &str = "preconditioner";
                let name = name_of(text);
                let info = PRECONDITIONERS.iter().find(|info| info.name == name);
                let info = info.ok_or_else(|| unknown(WHAT, PRECONDITIONERS.iter().map(|p| p.name), name))?;
                let shared = if name == NONE.name { &[][..] } else { SHARED_OPTIONS };
                let settings = Settings::parse_with(WHAT, text, info.options, shared)?;
                $($(#[$if])* if name == $kind::INFO.name {
                    let kind = Box::new($kind::named(&settings)?);
                    // `block-ilu` has a shorter key for the polynomial.
                    let keys: &[_] = if name == BlockIlu::INFO.name { &["order", "polynomial"] } else { &["polynomial"] };
                    return Polynomial::on(kind, &settings, keys).map(Some);
                })*
                Ok(None)
            })(text)
        }
    };
}

preconditioners![
    Jacobi,
    ColumnScaling,
    BlockJacobi,
    Neumann,
    Chebyshev,
    Ssor,
    Sor,
    Ilu0,
    Ic0,
    BlockIlu,
    Ilut,
    Fsai,
    Spai,
    Amg,
    Multigrid,
    #[cfg(feature = "direct")]
    Direct,
];
