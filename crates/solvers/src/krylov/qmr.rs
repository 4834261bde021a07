//! Quasi-minimal residuals, for general square systems whose adjoint is available.
use super::bicg::Biorthogonal;
use super::method::{Listed, MethodInfo, Needs};
use crate::System;
use lacuna_engine::{Formula, Pass, Recorder};

/// QMR without look-ahead, computed by smoothing the iterates of bi-conjugate gradients: `x` is their average
/// with the weights `1 / ‖r‖²`, so that its residual decreases almost smoothly where theirs jumps.
///
/// * Solves: as [`BiCg`](crate::BiCg).
/// * Cost of an iteration: as [`BiCg`](crate::BiCg), and one more sweep. Storage: 8 vectors, 10 with a
///   preconditioner.
/// * Outcome: as [`BiCg`](crate::BiCg). Restarts from the true residual whenever that has fallen by half the
///   working digits.
/// * Reference: Freund and Nachtigal 1991, doi:10.1007/BF01385726; as smoothing: Zhou and Walker 1994,
///   Algorithm 3.2.2 and Theorem 3.2, doi:10.1137/0915021.
#[derive(Clone, Copy, Debug, Default)]
pub struct Qmr;

impl Listed for Qmr {
    const INFO: MethodInfo = MethodInfo {
        name: "qmr",
        about: "quasi-minimal residuals, with products by the adjoint; any square system",
        needs: Needs::Square,
        adjoint: true,
        options: &[],
    };

    fn record(&self, k: &mut Recorder<'_>, s: &System<'_>) {
        let (x, [y, u]) = (s.x, k.vectors(s.n()));
        let to = Biorthogonal::new(k, s);
        let Biorthogonal { r, rr, .. } = to;
        let [uu, weights, share, worn] = k.cells();

        let one = || Formula::real(1.0);
        let residual = s.confirm(to.residual(s).set(u, r).set(y, x).dot(uu, r, r), uu);
        // The average gains little once the recurrences have lost half their digits.
        let start = Pass::new("weights").eval(weights, one() / uu).eval(worn, uu.epsilon() * uu);
        // If ‖r‖² vanishes, the weight of the new iterate is 1.
        let weigh = Pass::new("weigh")
            .eval(rr, rr.max(rr.tiny()))
            .eval(weights, weights + one() / rr)
            .eval(share, one() / (rr * weights));
        let smooth =
            Pass::new("smooth").set(x, x + share * (y - x)).set(u, u + share * (r - u)).dot(uu, u, u);

        k.restart(|k| to.begin(k, s, residual, start));
        k.each(|k| {
            to.multiply(k, s);
            k.multi_axpy_dot(to.step(y).then(weigh));
            k.multi_axpy_dot(s.count(smooth, uu).leave_if(uu.le(worn)));
            to.turn(k, s);
        });
    }
}
