//! Richardson's iteration: the preconditioner as the solver.
use super::method::{Listed, MethodInfo, Needs, Options};
use super::spectrum::largest_eigenvalue;
use crate::System;
use crate::attained::Attained;
use crate::named::{OptionInfo, Settings};
use lacuna_engine::{Formula, Pass, Recorder, Result};

/// `x ← x + ω M (b − A x)`; without a preconditioner `ω` is divided by an estimate of the largest eigenvalue.
/// With the preconditioner `jacobi` this is Jacobi's method, with `sor` the Gauss–Seidel method,
/// with `amg` multigrid as a solver.
///
/// * Solves: square `A` such that the spectral radius of `I − ω M A` is below 1.
/// * Cost of an iteration: one product with `A`, one with `M`; two sweeps. Storage: 3 vectors; without a
///   preconditioner 2, and 3 for the estimate. The residual is the true one at every step.
/// * Outcome: `AccuracyAttained` if the residual stays at the level of rounding errors; `Diverged` if the radius is above 1; `Limit` is common, since the method needs many more
///   iterations than a Krylov method.
/// * Reference: Saad 2003, section 4.1, doi:10.1137/1.9780898718003; Jost et al. 2009, section 2,
///   doi:10.1007/978-3-642-03869-3_92.
#[derive(Clone, Copy, Debug)]
pub struct Richardson {
    /// Damping.
    pub omega: f64,
}

impl Default for Richardson {
    fn default() -> Self {
        Richardson { omega: 1.0 }
    }
}

impl Listed for Richardson {
    const INFO: MethodInfo = MethodInfo {
        name: "richardson",
        about: "the preconditioner as the solver: with jacobi Jacobi's method, with amg multigrid; any square system",
        needs: Needs::Square,
        adjoint: false,
        options: &[OptionInfo { key: "omega", default: "1", about: "damping, above 0" }],
    };

    fn named(settings: &Settings<'_>, _: &Options) -> Result<Self> {
        let holds = |omega: &f64| *omega > 0.0 && omega.is_finite();
        Ok(Richardson { omega: settings.number("omega", "a number above 0", holds)? })
    }

    fn reads_norm(&self) -> bool {
        true
    }

    fn record(&self, k: &mut Recorder<'_>, s: &System<'_>) {
        let (a, b, x) = (s.a, s.b, s.x);
        let [r, q] = k.vectors(s.n());
        let z = s.preconditioned(k, r);
        let [rr, omega, largest] = k.cells();
        let damping = match s.m {
            Some(_) => Formula::real(self.omega),
            None => {
                largest_eigenvalue(k, s, largest);
                self.omega / Formula::from(largest)
            }
        };
        let attained = Attained::new(k);
        k.multi_axpy_dot(Pass::new("damping").eval(omega, damping));
        let residual = || Pass::new("residual").set(r, b - q).dot(rr, r, r);
        k.restart(|k| k.spmv_dot(a, x, q, attained.begin(s.confirm(residual(), rr), rr)));
        k.each(|k| {
            s.precondition(k, r, z, attained.measure(Pass::new("step").set(x, x + omega * z), x));
            k.spmv_dot(a, x, q, attained.test(s, s.count(residual(), rr), rr));
        });
    }
}
