//! The passes that have a loop of their own, as a caller records them.
use super::form::{Form, VECTORS};
use super::{ALL, DOTS};
use lacuna_engine::{Basis, Cells, Pass, Scalar, Vector};

/// See [`crate::Cpu::forms`].
pub(crate) fn listed<T: Scalar>(v: Basis<T>, c: Cells<T>) -> impl Iterator<Item = (String, Pass<T>)> {
    let vectors: [Vector<T>; VECTORS] = std::array::from_fn(|k| v.column(k));
    ALL.iter().map(move |(which, form)| (format!("{which:?}"), pass(form, &vectors, c)))
}

/// The pass of a form, with a different coefficient for every term. The first cells get its dot products.
fn pass<T: Scalar>(form: &Form, v: &[Vector<T>], c: Cells<T>) -> Pass<T> {
    let mut next = DOTS;
    let mut pass = Pass::new("of a form");
    for (dst, terms) in form.updates {
        let mut sum = None;
        for &(factor, vector) in *terms {
            let by = c.at(next);
            next += 1;
            let term = match factor {
                Some(factor) => by * (v[factor] * v[vector]),
                None => by * v[vector],
            };
            sum = Some(match sum {
                Some(sum) => sum - term,
                None => term,
            });
        }
        pass = sum.into_iter().fold(pass, |pass, sum| pass.set(v[*dst], sum));
    }
    form.dots.iter().enumerate().fold(pass, |pass, (d, &(a, (factor, b)))| match factor {
        Some(factor) => pass.dot(c.at(d), v[a], v[factor] * v[b]),
        None => pass.dot(c.at(d), v[a], v[b]),
    })
}
