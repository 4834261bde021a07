//! `z ← Mᴴ r` for preconditioners that keep their adjoint if asked to.
use crate::named::{OptionInfo, Settings};
use lacuna_engine::{Error, Recorder, Result, Scalar};

/// The option that keeps the adjoint.
pub(super) const ADJOINT: OptionInfo = OptionInfo {
    key: "adjoint",
    default: "no",
    about: "yes keeps that too, for methods with products by the adjoint",
};

/// Whether the adjoint is requested.
pub(super) fn named(settings: &Settings<'_>) -> Result<bool> {
    Ok(settings.choice(ADJOINT.key, &[("no", false), ("yes", true)])?.unwrap_or(false))
}

/// The setting as text for a name, if it is not the default.
pub(super) fn said(adjoint: bool) -> Option<String> {
    adjoint.then(|| "adjoint=yes".into())
}

/// Records an error instead of `z ← Mᴴ r`. The message says what to ask for.
#[cold]
pub(super) fn refuse<T: Scalar>(k: &mut Recorder<'_, T>, name: &str, message: &str) {
    k.fail(Error::Unsupported {
        operation: format!("the adjoint of preconditioner `{name}`"),
        message: message.into(),
    });
}

/// The adjoint methods of a preconditioner with a field `adjoint`. The argument records `z ← Mᴴ r`, then the
/// pass, where the adjoint was kept.
macro_rules! kept_adjoint {
    ($record:expr) => {
        fn knows_adjoint(&self) -> bool {
            self.adjoint
        }
        fn apply_adjoint(
            &self,
            k: &mut Recorder<'_, T>,
            on: &Handles<T>,
            r: Vector<T>,
            z: Vector<T>,
            then: Pass<T>,
        ) {
            if self.adjoint {
                let record: fn(&Self, &mut Recorder<'_, T>, &Handles<T>, [Vector<T>; 2], Pass<T>) = $record;
                return record(self, k, on, [r, z], then);
            }
            let name = Preconditioner::<T>::name(self);
            crate::precond::adjoint::refuse(k, &name, "it was not kept; ask for `adjoint=yes`");
        }
    };
}
pub(super) use kept_adjoint;
