//! Induced dimension reduction, for general square systems.
use super::method::{Listed, MethodInfo, Needs, Options};
use super::spectrum::hashed_vector;
use crate::System;
use crate::named::{OptionInfo, Settings};
use lacuna_engine::{Cell, Expr, Formula, Pass, Reason, Recorder, Result};

/// If the cosine of the angle between `A v` and `r` is smaller than this, `ω` is enlarged.
const COSINE: f64 = 0.7;

/// IDR(s) with bi-orthogonal vectors: residuals lie in spaces whose dimension shrinks by s every s + 1
/// products.
///
/// * Solves: square `A`, with any preconditioner from the right, or none. Needs nearly as few products as
///   GMRES, with a short recurrence; robust under strong convection.
/// * Cost of an iteration, which is one product with `A` and one with `M`: about `2 s + 4` vectors moved.
///   Storage: `3 s + 2` vectors, one more with a preconditioner. A run of the program is s + 1 iterations.
/// * Outcome: `Breakdown` if a pivot `⟨p, g⟩` or `ω` vanishes and restarting does not help.
/// * The shadow vectors are fixed: a hash of the row, the same on every device.
/// * Differs from the listing: a new vector is orthogonalised against all shadow vectors in one sweep, with
///   coefficients by substitution in the small triangular matrix.
/// * Reference: van Gijzen and Sonneveld 2011, Algorithm 913, doi:10.1145/2049662.2049667.
#[derive(Clone, Copy, Debug)]
pub struct Idr {
    /// Shadow vectors, `s`.
    pub shadows: usize,
}

impl Default for Idr {
    fn default() -> Self {
        Idr { shadows: 4 }
    }
}

impl Listed for Idr {
    const INFO: MethodInfo = MethodInfo {
        name: "idr",
        about: "induced dimension reduction, near GMRES by a short recurrence; any square system",
        needs: Needs::Square,
        adjoint: false,
        options: &[OptionInfo { key: "shadows", default: "4", about: "shadow vectors, 1 to 8" }],
    };

    fn named(settings: &Settings<'_>, _: &Options) -> Result<Self> {
        let holds = |shadows: &usize| (1..=8).contains(shadows);
        Ok(Idr { shadows: settings.number("shadows", "a whole number from 1 to 8", holds)? })
    }

    fn record(&self, k: &mut Recorder<'_>, sys: &System<'_>) {
        let (a, b, x, n, s) = (sys.a, sys.b, sys.x, sys.n(), self.shadows.clamp(1, 8));
        let p: Vec<_> = (0..s).map(|i| hashed_vector(k, n, i)).collect();
        let (g, u): (Vec<_>, Vec<_>) = (0..s).map(|_| (k.vector(n), k.vector(n))).unzip();
        let [r, v] = k.vectors(n);
        let mv = sys.preconditioned(k, v);
        let mut cells = |count: usize| -> Vec<Cell> { (0..count).map(|_| k.cells::<1>()[0]).collect() };
        let (f, c, h, alpha) = (cells(s), cells(s), cells(s), cells(s));
        // The lower triangle of Pᴴ G.
        let m: Vec<Vec<_>> = (0..s).map(|_| cells(s)).collect();
        let [rr, beta, omega, tt, tr, cosine] = k.cells();

        let nothing = || Formula::real(0.0);
        let residual = Pass::new("residual").set(r, b - v).dot(rr, r, r);
        let start = (0..s).fold(Pass::new("start"), |p, i| p.set(g[i], nothing()).set(u[i], nothing()));
        let shadows = |pass: Pass| (0..s).fold(pass, |pass, i| pass.dot(f[i], p[i], r));
        let start = (0..s * s).fold(shadows(start).eval(omega, 1.0), |pass, at| {
            let (i, j) = (at / s, at % s);
            pass.eval(m[i][j], if i == j { 1.0 } else { 0.0 })
        });

        k.restart(|k| {
            k.spmv_dot(a, x, v, sys.confirm(residual, rr));
            k.multi_axpy_dot(start);
        });
        k.each(|k| {
            for j in 0..s {
                // M c = f from row j on.
                let solve = (j..s).fold(Pass::new("solve"), |pass, i| {
                    let rest = (j..i).fold(Formula::from(f[i]), |rest, l| rest - m[i][l] * c[l]);
                    pass.eval(c[i], rest / m[i][i])
                });
                let reduce = (j..s).fold(Expr::from(r), |sum, i| sum - c[i] * g[i]);
                k.multi_axpy_dot(solve.set(v, reduce));
                let direction = (j..s).fold(omega * mv, |sum, i| sum + c[i] * u[i]);
                sys.precondition(k, v, mv, Pass::new("direction").set(u[j], direction));
                let meet = (0..s).fold(Pass::new("meet"), |pass, i| pass.dot(h[i], p[i], g[j]));
                // Coefficients against the earlier shadow vectors, and the remaining products with the
                // others.
                let meet = (0..j).fold(meet, |pass, i| {
                    let rest = (0..i).fold(Formula::from(h[i]), |rest, l| rest - alpha[l] * m[i][l]);
                    pass.eval(alpha[i], rest / m[i][i])
                });
                let meet = (j..s).fold(meet, |pass, i| {
                    let rest = (0..j).fold(Formula::from(h[i]), |rest, l| rest - alpha[l] * m[i][l]);
                    pass.eval(m[i][j], rest)
                });
                let meet =
                    meet.stop_if(m[j][j].is_zero(), Reason::Breakdown("<p, g>")).eval(beta, f[j] / m[j][j]);
                let meet = (j + 1..s).fold(meet, |pass, i| pass.eval(f[i], f[i] - beta * m[i][j]));
                k.spmv_dot(a, u[j], g[j], meet);
                let step = (0..j).fold(Pass::new("step"), |pass, i| {
                    pass.set(g[j], g[j] - alpha[i] * g[i]).set(u[j], u[j] - alpha[i] * u[i])
                });
                let step = step.set(r, r - beta * g[j]).set(x, x + beta * u[j]).dot(rr, r, r);
                k.multi_axpy_dot(sys.count(step, rr));
            }
            let z = if sys.m.is_some() { mv } else { r };
            sys.precondition(k, r, z, Pass::nothing());
            let shorten = Pass::new("shorten")
                .dot(tt, v, v)
                .dot(tr, v, r)
                .eval(cosine, tr / tt.sqrt().max(tt.tiny()) / rr.sqrt().max(rr.tiny()))
                .eval(cosine, (cosine.conj() * cosine).sqrt())
                .eval(omega, tr / tt.max(tt.tiny()) * (COSINE / cosine.max(cosine.tiny())).max(1.0))
                .stop_if(omega.is_zero(), Reason::Breakdown("omega"));
            k.spmv_dot(a, z, v, shorten);
            let step = Pass::new("step").set(x, x + omega * z).set(r, r - omega * v).dot(rr, r, r);
            k.multi_axpy_dot(sys.count(shadows(step), rr));
        });
    }
}
