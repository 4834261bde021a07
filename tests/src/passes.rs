//! Passes: canonical sums, every form of term, aliasing, all lengths.
use crate::bits::{Trace, cells_of, upload};
use crate::numbers::Rng;
use crate::on_both;
use crate::programs::run;
use lacuna_engine::sum::SEGMENT;
use lacuna_engine::{Device, Expr, Formula, Pass, Scalar};

/// Lengths around every boundary of a canonical sum.
pub const LENGTHS: [usize; 15] =
    [0, 1, 2, 31, 255, 256, 257, 511, 512, 513, 4097, 65535, 65536, 65537, 200_003];

/// Dot products with lengths around the boundaries of segments, of numbers with very different magnitudes.
pub fn canonical_sums<T: Scalar>(make: fn() -> Device) {
    on_both!(make, "canonical sums", |dev| {
        let mut trace = Trace::new();
        for (seed, n) in LENGTHS.into_iter().enumerate() {
            let mut rng = Rng::new(seed as u64);
            let (a, b) = (upload(dev, &rng.spread::<T>(n, 12)), upload(dev, &rng.vector::<T>(n)));
            let f = upload(dev, &rng.vector::<T>(n));
            let c = cells_of(dev, &[T::one(); 6]);
            let pass = Pass::new("sums").dot(c[0], a, b).dot(c[1], b, a).dot(c[2], a, a).dot(c[3], b, b);
            dev.multi_axpy_dot(pass.dot(c[4], a, f * b).dot(c[5], b, b * b)).unwrap();
            trace.cells(dev, format!("n = {n}: <a,b> <b,a> <a,a> <b,b> <a,f b> <b,b b>"), &c);
        }
        trace
    });
}

/// Maxima with lengths around the boundaries of segments, beside sums in the same pass: of numbers with very different magnitudes,
/// of zeros of both signs, and with NaN or an infinite element at either end.
pub fn maxima<T: Scalar>(make: fn() -> Device) {
    on_both!(make, "maxima", |dev| {
        let mut trace = Trace::new();
        for (seed, n) in LENGTHS.into_iter().enumerate() {
            let mut rng = Rng::new(seed as u64);
            let (a, b) = (rng.spread::<T>(n, 12), upload(dev, &rng.vector::<T>(n)));
            let with = |at: usize, value: f64| {
                let mut a = a.clone();
                a.iter_mut().skip(at).take(1).for_each(|v| *v = T::from_parts(value, 1.0));
                upload(dev, &a)
            };
            let last = n.saturating_sub(1);
            let [nan, late] = [with(0, f64::NAN), with(last, f64::NAN)];
            let [infinite, zeros] = [with(last, f64::NEG_INFINITY), upload(dev, &vec![-T::zero(); n])];
            let (a, c) = (upload(dev, &a), cells_of(dev, &[T::one(); 8]));
            let pass =
                Pass::new("maxima").largest(c[0], a).dot(c[1], a, a).largest(c[2], nan).largest(c[3], late);
            let pass = pass.largest(c[4], infinite).dot(c[5], a, b).largest(c[6], zeros).largest(c[7], a);
            dev.multi_axpy_dot(pass).unwrap();
            trace.cells(dev, format!("n = {n}: a, <a,a>, NaN first, NaN last, infinite, <a,b>, -0, a"), &c);
        }
        trace
    });
}

/// Numbers of segments around what a lane, a warp and a work-group of a GPU take, and what one exchange does.
const SEGMENTS: [usize; 12] = [1, 2, 3, 5, 8, 33, 70, 129, 132, 257, 600, 2100];

/// Dot products in a loop, with whole segments and with one element in the last; among them sums of −0, whose sign shows
/// what a segment sum without a neighbour is added to.
pub fn sums_in_a_loop<T: Scalar>(make: fn() -> Device) {
    on_both!(make, "sums in a loop", |dev| {
        let mut trace = Trace::new();
        for segments in SEGMENTS {
            for n in [SEGMENT * segments, SEGMENT * (segments - 1) + 1] {
                let mut rng = Rng::new(n as u64);
                let [a, b] = [12, 0].map(|spread| upload(dev, &rng.spread::<T>(n, spread)));
                let [ones, zeros] = [T::one(), -T::zero()].map(|v| upload(dev, &vec![v; n]));
                let c = cells_of(dev, &rng.vector::<T>(4));
                run(dev, 2, |k| {
                    let sums = Pass::new("sums").set(b, b + c[0] * a).dot(c[1], a, b).dot(c[2], ones, zeros);
                    k.each(|k| k.multi_axpy_dot(sums.dot(c[3], b, b).count(c[3])));
                });
                trace.cells(dev, format!("n = {n}: <a,b> <1,-0> <b,b>"), &c[1..]);
            }
        }
        trace
    });
}

/// Maxima in a loop, of what the pass has just computed, between sums: alone, and in a pass that follows a product by itself.
pub fn maxima_in_a_loop<T: Scalar>(make: fn() -> Device) {
    on_both!(make, "maxima in a loop", |dev| {
        let mut trace = Trace::new();
        for segments in SEGMENTS {
            for n in [SEGMENT * segments, SEGMENT * (segments - 1) + 1] {
                let mut rng = Rng::new(n as u64);
                let [a, b, zeros] = [12, 0, 0].map(|spread| upload(dev, &rng.spread::<T>(n, spread)));
                let c = cells_of(dev, &rng.vector::<T>(6));
                run(dev, 2, |k| {
                    let pass = Pass::new("maxima").set(b, b + c[0] * a).set(zeros, Formula::value(T::zero()));
                    let pass = pass.largest(c[1], b).dot(c[2], a, b).largest(c[3], zeros).largest(c[4], a);
                    k.each(|k| k.multi_axpy_dot(pass.dot(c[5], b, b).count(c[1])));
                });
                trace.cells(dev, format!("n = {n}: b, <a,b>, 0, a, <b,b>"), &c[1..]);
                // Passes of forms that have a sum in the same place.
                dev.multi_axpy_dot(Pass::new("alone").largest(c[1], a)).unwrap();
                let step = || Pass::new("step").set(b, b + c[0] * a).set(zeros, zeros - c[0] * b);
                dev.multi_axpy_dot(step().largest(c[2], zeros)).unwrap();
                dev.multi_axpy_dot(step().dot(c[3], zeros, zeros).largest(c[4], zeros)).unwrap();
                trace.cells(dev, format!("n = {n}: a, zeros, <zeros,zeros>, zeros"), &c[1..]);
            }
        }
        trace
    });
}

/// Each coefficient, with and without a factor, in first and later position, positive and negative.
pub fn every_form_of_term<T: Scalar>(make: fn() -> Device) {
    on_both!(make, "forms of term", |dev| {
        let mut trace = Trace::new();
        let (mut rng, n) = (Rng::new(1), 1003);
        let [u, v, w] = std::array::from_fn(|_| upload(dev, &rng.vector::<T>(n)));
        let c = cells_of(dev, &rng.vector::<T>(3));
        let forms: Vec<Expr<T>> = vec![
            v.into(),
            -v,
            w * v,
            -(w * v),
            c[0] * v,
            v * c[0],
            -(c[0] * v),
            c[1] * (w * v),
            (c[1] * w) * v,
            -(c[1] * (w * v)),
            (c[0] * c[1]) * v,
            v / c[2],
            (w * v) / c[2],
            2.5 * v,
            (-1.0) * v,
            0.0 * v,
            c[0].conj() * v,
            v * v,
            v - Expr::from(v),
            v + v,
        ];
        for (i, form) in forms.iter().enumerate() {
            let out: [_; 4] = std::array::from_fn(|_| dev.vector(n).unwrap());
            let pass = Pass::new("forms")
                .set(out[0], form.clone())
                .set(out[1], u + form.clone())
                .set(out[2], u - form.clone())
                .set(out[3], c[2] * (u - c[1] * form.clone()));
            dev.multi_axpy_dot(pass).unwrap();
            for (j, out) in out.into_iter().enumerate() {
                trace.vector(dev, format!("form {i} in place {j}"), out);
            }
        }
        trace
    });
}

/// A destination among its own operands, as vector and as factor, twice in a pass, and a swap of two vectors.
pub fn aliasing<T: Scalar>(make: fn() -> Device) {
    on_both!(make, "aliasing", |dev| {
        let mut trace = Trace::new();
        for n in [1, 255, 256, 1003, 70_001] {
            let mut rng = Rng::new(n as u64);
            let [x, y, z] = std::array::from_fn(|_| upload(dev, &rng.vector::<T>(n)));
            let c = cells_of(dev, &rng.vector::<T>(4));
            let pass = Pass::new("alias")
                .set(x, x + c[0] * x + y)
                .set(y, y * y - x)
                .set(x, c[1] * (x * y) + x)
                .set(z, y)
                .set(y, x)
                .set(x, z)
                .dot(c[2], x, y * x)
                .dot(c[3], y, z);
            dev.multi_axpy_dot(pass).unwrap();
            for (name, v) in [("x", x), ("y", y), ("z", z)] {
                trace.vector(dev, format!("n = {n}: {name}"), v);
            }
            trace.cells(dev, format!("n = {n}: cells"), &c);
        }
        trace
    });
}

/// Updates see earlier updates; dot products see the final values; an update without terms gives zero, even
/// for a NaN.
pub fn updates_in_order<T: Scalar>(make: fn() -> Device) {
    on_both!(make, "updates in order", |dev| {
        let mut trace = Trace::new();
        let (mut rng, n) = (Rng::new(3), 777);
        let [x, r, p, q] = std::array::from_fn(|_| upload(dev, &rng.vector::<T>(n)));
        let nan = upload(dev, &vec![T::from_real(f64::NAN); n]);
        let c = cells_of(dev, &rng.vector::<T>(5));
        let step = Pass::new("step")
            .eval(c[2], c[0] / c[1])
            .set(x, x + c[2] * p)
            .set(r, r - c[2] * q)
            .set(p, r + c[1] * p)
            .set(nan, Formula::value(T::zero()))
            .dot(c[3], r, r)
            .dot(c[4], p, nan)
            .eval(c[0], c[3] / c[2]);
        dev.multi_axpy_dot(step).unwrap();
        for (name, v) in [("x", x), ("r", r), ("p", p), ("q", q), ("zeroed", nan)] {
            trace.vector(dev, name, v);
        }
        trace.cells(dev, "cells", &c);
        trace
    });
}

/// CG's step at every length of [`LENGTHS`].
pub fn lengths<T: Scalar>(make: fn() -> Device) {
    on_both!(make, "lengths", |dev| {
        let mut trace = Trace::new();
        for n in LENGTHS.into_iter().filter(|&n| n < 100_000) {
            let mut rng = Rng::new(n as u64);
            let [x, r, p, q] = std::array::from_fn(|_| upload(dev, &rng.vector::<T>(n)));
            let c = cells_of(dev, &rng.vector::<T>(4));
            let step = Pass::new("step")
                .set(x, x + c[0] * p)
                .set(r, r - c[0] * q)
                .set(p, r + c[1] * p)
                .dot(c[2], r, r)
                .dot(c[3], p, q);
            dev.multi_axpy_dot(step).unwrap();
            for (name, v) in [("x", x), ("r", r), ("p", p)] {
                trace.vector(dev, format!("n = {n}: {name}"), v);
            }
            trace.cells(dev, format!("n = {n}: cells"), &c);
        }
        trace
    });
}

/// A pass over more elements than the cache of a core holds.
pub fn large<T: Scalar>(make: fn() -> Device) {
    on_both!(make, "a large pass", |dev| {
        let mut trace = Trace::new();
        let (mut rng, n) = (Rng::new(5), 300_007);
        let [x, p, d] = std::array::from_fn(|_| upload(dev, &rng.vector::<T>(n)));
        let c = cells_of(dev, &rng.vector::<T>(3));
        let pass = Pass::new("large")
            .set(x, x + c[0] * p)
            .set(p, d * x - c[1] * p)
            .dot(c[1], p, x)
            .dot(c[2], p, p)
            .eval(c[0], c[1] / c[2]);
        dev.multi_axpy_dot(pass.clone()).unwrap();
        dev.multi_axpy_dot(pass).unwrap();
        trace.vector(dev, "x", x);
        trace.vector(dev, "p", p);
        trace.cells(dev, "cells", &c);
        trace
    });
}

/// Many vectors, updates, terms and dot products in one pass: a backend whose tables are too small must say
/// so.
pub fn wide_passes<T: Scalar>(make: fn() -> Device) {
    on_both!(make, "a wide pass", |dev| {
        let mut trace = Trace::new();
        let (mut rng, n) = (Rng::new(6), 2001);
        let v: Vec<_> = (0..24).map(|_| upload(dev, &rng.vector::<T>(n))).collect();
        let c = cells_of(dev, &rng.vector::<T>(40));
        let mut pass = Pass::new("wide");
        for i in 0..12 {
            let sum = (0..10).fold(Expr::from(v[2 * i]), |sum, k| sum + c[k] * v[(i + 2 * k) % 24]);
            pass = pass.set(v[2 * i + 1], sum);
        }
        for i in 0..20 {
            pass = pass.dot(c[10 + i], v[i], v[23 - i]);
        }
        for i in 0..10 {
            pass = pass.eval(c[30 + i], c[10 + i] / c[20 + i]);
        }
        dev.multi_axpy_dot(pass).unwrap();
        for (i, v) in v.into_iter().enumerate() {
            trace.vector(dev, format!("vector {i}"), v);
        }
        trace.cells(dev, "cells", &c);
        trace
    });
}

/// More passes in a row than the vectors, terms and sums that one sweep takes: they share as many sweeps as it needs.
pub fn many_passes_in_a_row<T: Scalar>(make: fn() -> Device) {
    on_both!(make, "many passes in a row", |dev| {
        let (mut rng, n, many) = (Rng::new(3), 701, 45);
        let triples: Vec<_> =
            (0..many).map(|_| std::array::from_fn::<_, 3, _>(|_| upload(dev, &rng.vector::<T>(n)))).collect();
        let values = cells_of(dev, &rng.vector::<T>(many));
        let squares = cells_of(dev, &vec![T::one(); many]);
        run(dev, 1, |k| {
            for ((&[r, ax, x], &value), &square) in triples.iter().zip(&values).zip(&squares) {
                k.multi_axpy_dot(Pass::new("residual").set(r, ax - value * x).dot(square, r, r));
            }
        });
        let mut trace = Trace::new();
        trace.cells(dev, "squares".to_string(), &squares);
        triples.iter().for_each(|triple| trace.vector(dev, "r".to_string(), triple[0]));
        trace
    });
}

/// Formulas before the updates provide their coefficients; formulas after the dot products see their values.
pub fn formulas_around<T: Scalar>(make: fn() -> Device) {
    on_both!(make, "formulas around", |dev| {
        let mut trace = Trace::new();
        let (mut rng, n) = (Rng::new(7), 300);
        let [x, y] = std::array::from_fn(|_| upload(dev, &rng.vector::<T>(n)));
        let c = cells_of(dev, &rng.vector::<T>(6));
        let pass = Pass::new("around")
            .eval(c[0], c[1] * c[2] - c[3])
            .eval(c[1], c[0].max(c[2]) / 3.0)
            .set(x, c[0] * x + (c[1] * c[0] - 0.5) * y)
            .dot(c[4], x, y)
            .eval(c[5], (c[4] * c[4].conj()).sqrt())
            .eval(c[4], -c[5] + 1.0);
        dev.multi_axpy_dot(pass).unwrap();
        trace.vector(dev, "x", x);
        trace.cells(dev, "cells", &c);
        // A pass without vectors, and one that does nothing.
        dev.multi_axpy_dot(Pass::new("cells alone").eval(c[2], c[4] - c[5])).unwrap();
        dev.multi_axpy_dot(Pass::<T>::nothing()).unwrap();
        trace.cells(dev, "cells after", &c);
        trace
    });
}
