//! Stabilised bi-conjugate gradients with residual polynomials of higher degree, for general square systems.
use super::method::{Listed, MethodInfo, Needs, Options};
use crate::System;
use crate::named::{OptionInfo, Settings};
use lacuna_engine::{Cell, Formula, Pass, Reason, Recorder, Result, Vector};

/// A residual below this many units of rounding of that at the start of the cycle consists of rounding errors.
const ROUNDING: f64 = 16.0;

/// BiCGStab(ℓ): after ℓ steps of bi-conjugate gradients the residual is minimised over ℓ directions at once.
/// For spectra with large imaginary parts, as from strong convection, on which `bicgstab` stalls.
///
/// * Solves: square `A`, with any preconditioner from the right, or none.
/// * Cost of an iteration, which is ℓ steps: 2 ℓ products with `A`, 2 ℓ with `M`. Storage: 2 ℓ + 3 vectors, 2
///   more with a preconditioner.
/// * A step that brings the residual down to the tolerance, or to the rounding errors of the cycle, ends the cycle: later steps
///   would divide rounding errors by each other. Such a cycle counts only if no other does.
/// * Outcome: `Breakdown` if `⟨r₀, A u⟩` or `⟨r₀, r⟩` vanishes and restarting does not help.
/// * Reference: Sleijpen and Fokkema 1993, the algorithm of section 3, ETNA 1, 11–32.
#[derive(Clone, Copy, Debug)]
pub struct BiCgStabL {
    /// The degree of the residual polynomial, from 1.
    pub degree: usize,
}

impl Default for BiCgStabL {
    fn default() -> Self {
        BiCgStabL { degree: 2 }
    }
}

impl Listed for BiCgStabL {
    const INFO: MethodInfo = MethodInfo {
        name: "bicgstab-l",
        about: "stabilised bi-conjugate gradients, residual polynomials of degree 2 or more; any square system",
        needs: Needs::Square,
        adjoint: false,
        options: &[OptionInfo { key: "degree", default: "2", about: "of the residual polynomial, 1 to 8" }],
    };

    fn named(settings: &Settings<'_>, _: &Options) -> Result<Self> {
        let holds = |degree: &usize| (1..=8).contains(degree);
        Ok(BiCgStabL { degree: settings.number("degree", "a whole number from 1 to 8", holds)? })
    }

    fn record(&self, k: &mut Recorder<'_>, s: &System<'_>) {
        let (a, b, l) = (s.a, s.b, self.degree.clamp(1, 8));
        let (r0, y, t) = (k.vector(s.n()), s.right_sum(k), s.m.map(|_| k.vector(s.n())));
        let r: Vec<_> = (0..=l).map(|_| k.vector(s.n())).collect();
        let u: Vec<_> = (0..=l).map(|_| k.vector(s.n())).collect();
        let [rr, rho, next, sigma, alpha, beta, omega, floor] = k.cells();
        let rounding = (ROUNDING * rr.epsilon()).powi(2);

        let residual = Pass::new("residual").set(r[0], b - u[0]).dot(rr, r[0], r[0]);
        let start = Pass::new("start").set(r0, r[0]).set(u[0], Formula::real(0.0));
        let start = start.eval(rho, 1.0).eval(alpha, 0.0).eval(omega, 1.0);

        k.restart(|k| {
            s.correct(k, y, u[0]);
            k.spmv_dot(a, s.x, u[0], s.confirm(residual, rr));
            k.multi_axpy_dot(start);
        });
        k.each(|k| {
            let turn = Pass::new("turn").eval(rho, -omega * rho).eval(floor, (rounding * rr).max(s.goal));
            k.multi_axpy_dot(turn.dot(next, r0, r[0]));
            for j in 0..l {
                let found = Pass::new("found")
                    .stop_if(rho.is_zero(), Reason::Breakdown("<r0, r>"))
                    .eval(beta, alpha * next / rho)
                    .eval(rho, next);
                k.multi_axpy_dot(found);
                let directions =
                    (0..=j).fold(Pass::new("directions"), |p, i| p.set(u[i], r[i] - beta * u[i]));
                k.multi_axpy_dot(directions);
                let along = Pass::new("along")
                    .dot(sigma, r0, u[j + 1])
                    .stop_if(sigma.is_zero(), Reason::Breakdown("<r0, A u>"))
                    .eval(alpha, rho / sigma);
                s.operate(k, u[j], t, u[j + 1], along);
                let step = (0..=j).fold(Pass::new("step"), |p, i| p.set(r[i], r[i] - alpha * u[i + 1]));
                let step = step.set(y, y + alpha * u[0]).dot(rr, r[0], r[0]);
                let leave = |pass: Pass| pass.leave_if(rr.le(floor));
                let v = match s.m.zip(t) {
                    // Not left before `M r`, which is one pass with the step where `M` is a diagonal.
                    Some((m, t)) => {
                        k.multi_axpy_dot(step);
                        k.spmv_dot(m, r[j], t, leave(Pass::new("enough")));
                        t
                    }
                    None => {
                        k.multi_axpy_dot(leave(step));
                        r[j]
                    }
                };
                k.spmv_dot(a, v, r[j + 1], Pass::new("ahead").dot(next, r0, r[j + 1]));
            }
            let [gamma, ahead, after] = minimize(k, &r, omega);
            let step = Pass::new("minimum").set(y, y + gamma[0] * r[0]);
            let step = (1..l).fold(step, |p, j| p.set(y, y + after[j - 1] * r[j]));
            let step = (1..=l).fold(step, |p, j| p.set(u[0], u[0] - gamma[j - 1] * u[j]));
            let step = (1..=l).fold(step, |p, j| p.set(r[0], r[0] - ahead[j - 1] * r[j]));
            k.multi_axpy_dot(s.count(step.dot(rr, r[0], r[0]), rr));
        });
    }
}

/// Orthogonalises `r[1]` to `r[ℓ]` by modified Gram–Schmidt and finds the linear combination of them that is
/// closest to `r[0]`: the coefficients `γ`, `γ'` and `γ''` of the listing.
fn minimize(k: &mut Recorder<'_>, r: &[Vector], omega: Cell) -> [Vec<Cell>; 3] {
    let l = r.len() - 1;
    let mut cells = |count: usize| -> Vec<Cell> { (0..count).map(|_| k.cells::<1>()[0]).collect() };
    let (sigma, ahead, gamma, after) = (cells(l), cells(l), cells(l), cells(l));
    let tau: Vec<Vec<_>> = (0..l).map(|_| cells(l)).collect();
    for j in 1..=l {
        for i in 1..j {
            let of = tau[i - 1][j - 1];
            let project = Pass::new("project").dot(of, r[i], r[j]).eval(of, of / sigma[i - 1].max(of.tiny()));
            k.multi_axpy_dot(project);
            k.multi_axpy_dot(Pass::new("orthogonal").set(r[j], r[j] - of * r[i]));
        }
        let (sigma, ahead) = (sigma[j - 1], ahead[j - 1]);
        let measure = Pass::new("measure").dot(sigma, r[j], r[j]).dot(ahead, r[j], r[0]);
        k.multi_axpy_dot(measure.eval(ahead, ahead / sigma.max(sigma.tiny())));
    }
    let sum = |start: Cell, terms: &mut dyn Iterator<Item = (Cell, Cell)>, sign: f64| {
        terms.fold(Formula::from(start), |sum, (t, g)| sum + sign * (t * g))
    };
    let mut solve = Pass::new("coefficients").eval(gamma[l - 1], ahead[l - 1]).eval(omega, ahead[l - 1]);
    for j in (1..l).rev() {
        let mut terms = (j + 1..=l).map(|i| (tau[j - 1][i - 1], gamma[i - 1]));
        solve = solve.eval(gamma[j - 1], sum(ahead[j - 1], &mut terms, -1.0));
    }
    for j in 1..l {
        let mut terms = (j + 1..l).map(|i| (tau[j - 1][i - 1], gamma[i]));
        solve = solve.eval(after[j - 1], sum(gamma[j], &mut terms, 1.0));
    }
    k.multi_axpy_dot(solve);
    [gamma, ahead, after]
}
