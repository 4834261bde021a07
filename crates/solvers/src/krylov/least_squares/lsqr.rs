//! Least squares by bidiagonalisation.
use super::super::method::{Listed, MethodInfo, Needs};
use super::bidiagonal::Bidiagonal;
use crate::named::{OptionInfo, Settings};
use crate::{Options, System};
use lacuna_engine::{Formula, Pass, Reason, Recorder, Result};

/// LSQR: the iterates of [`Cgls`](crate::Cgls) by bidiagonalisation, which avoids `Aᴴ A` and its squared
/// condition number.
///
/// * Solves: `min ‖b − A x‖` for a matrix of any shape; from the guess 0 it finds the minimiser `x` of least
///   norm, or of least `‖M⁻¹ x‖` with a preconditioner, which is applied from the right and needs its adjoint.
/// * Cost of an iteration: one product with `A`, one with `Aᴴ`; four sweeps. Storage: 2 vectors as long as `b`, 4 as
///   long as `x`, 5 with a preconditioner; one more with [`Lsqr::variances`].
/// * Outcome: `Breakdown` if the bidiagonal matrix becomes singular and restarting does not help.
/// * Reference: Paige and Saunders 1982, section 4, doi:10.1145/355984.355989.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Lsqr {
    /// Whether to estimate the diagonal of `(Aᴴ A)⁻¹`, from below, as section 6.2 of the paper does, for real matrices: see
    /// [`Solver::variances`](crate::Solver::variances).
    pub variances: bool,
}

lacuna_engine::setters!(Lsqr { variances: bool });

impl Listed for Lsqr {
    const INFO: MethodInfo = MethodInfo {
        name: "lsqr",
        about: "least squares by bidiagonalisation; any shape",
        needs: Needs::Nothing,
        adjoint: true,
        options: &[OptionInfo {
            key: "variances",
            default: "no",
            about: "yes estimates the diagonal of the inverse of A^H A",
        }],
    };

    fn named(settings: &Settings<'_>, _: &Options) -> Result<Self> {
        let variances = settings.choice("variances", &[("no", false), ("yes", true)])?;
        Ok(Lsqr { variances: variances.unwrap_or(false) })
    }

    fn estimates_variances(&self) -> bool {
        self.variances
    }

    fn record(&self, k: &mut Recorder<'_>, sys: &System<'_>) {
        let (x, w) = (sys.x, k.vector(sys.x.len));
        let to = Bidiagonal::new(k, sys);
        let Bidiagonal { z, alpha, beta, normal, .. } = to;
        let [rho, rho_bar, phi, phi_bar, c, s, theta, nn] = k.cells();
        // ‖A‖² and ‖A⁻¹‖² as far as they are known: section 6 of the paper.
        let [norm, inverse, ww] = k.cells();

        let (first, along) =
            (Pass::new("start").set(w, z / alpha), Pass::new("step").set(x, x + (phi / rho) * w));
        let (first, along) = match sys.variances {
            Some(sum) => {
                let squares = (1.0 / (rho * rho)) * (w * w);
                (first.set(sum, Formula::real(0.0)), along.set(sum, sum + squares))
            }
            None => (first, along),
        };
        let start =
            first.eval(phi_bar, beta).eval(rho_bar, alpha).eval(norm, alpha * alpha).eval(inverse, 0.0);
        let rotate = Pass::new("rotate")
            .eval(rho, (rho_bar * rho_bar + beta * beta).sqrt())
            .stop_if(rho.is_zero(), Reason::Breakdown("the bidiagonal matrix"))
            .eval(c, rho_bar / rho)
            .eval(s, beta / rho)
            .eval(theta, s * alpha)
            .eval(rho_bar, -c * alpha)
            .eval(phi, c * phi_bar)
            .eval(phi_bar, s * phi_bar)
            .eval(nn, phi_bar * rho_bar)
            .eval(normal, nn * nn);
        let step = along
            .dot(ww, w, w)
            .eval(norm, norm + beta * beta)
            .eval(inverse, inverse + ww / (rho * rho))
            .eval(sys.norm_a2, norm)
            .eval(sys.cond_a2, norm * inverse)
            .eval(norm, norm + alpha * alpha);
        let step = to.count(sys, step);
        let turn = Pass::new("turn").set(w, z / alpha - (theta / rho) * w);

        k.restart(|k| to.begin(k, sys, start));
        k.each(|k| {
            to.step(k, sys, rotate);
            k.multi_axpy_dot(step);
            to.turn(k, sys, turn);
        });
    }
}
