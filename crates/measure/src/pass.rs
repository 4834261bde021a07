//! Passes over vectors: the parts of methods other than products.
use crate::repeated::Repeated;
use lacuna::{Cell, Device, Error, Pass, Recorder, Result, Scalar, Scope, Vector};
use std::time::Instant;

/// A pass by name, with the numbers of vectors it reads and writes.
pub struct PassInfo {
    pub name: &'static str,
    pub reads: usize,
    pub writes: usize,
}

/// The passes of the methods.
pub const PASSES: [PassInfo; 8] = [
    PassInfo { name: "dot", reads: 2, writes: 0 },
    PassInfo { name: "dots", reads: 3, writes: 0 },
    PassInfo { name: "axpy", reads: 2, writes: 1 },
    PassInfo { name: "bicgstab-half", reads: 2, writes: 1 },
    PassInfo { name: "cg-descend", reads: 4, writes: 2 },
    PassInfo { name: "cg-step", reads: 4, writes: 3 },
    PassInfo { name: "pcg-step", reads: 6, writes: 4 },
    PassInfo { name: "bicgstab-step", reads: 6, writes: 3 },
];

/// Operations of BLAS: `y ← y + a x`, `⟨x, y⟩` and `‖x‖²`.
pub const BLAS: [PassInfo; 3] = [
    PassInfo { name: "axpy", reads: 2, writes: 1 },
    PassInfo { name: "dot", reads: 2, writes: 0 },
    PassInfo { name: "nrm2", reads: 1, writes: 0 },
];

/// Adding this to vectors of ones has no effect, so they stay ones however often a pass runs.
pub const TINY: f64 = 1e-30;

/// A prepared pass over vectors of ones.
pub(crate) fn pass<T: Scalar>(dev: &Device, name: &str, n: usize) -> Result<Repeated<T, Scope>> {
    let (start, scope) = (Instant::now(), dev.scope());
    let ones = vec![T::one(); n];
    let mut vectors = Vec::new();
    for _ in 0..7 {
        let v = scope.vector::<T>(n)?;
        dev.upload(&ones, v)?;
        vectors.push(v);
    }
    let [c, rr, other, third] = scope.cells()?;
    let sums = [rr, other, third];
    dev.write(c, T::from_real(TINY))?;
    let pass = named(name, &vectors, c, sums)?;
    let mut k = Recorder::new(dev, "pass");
    k.each(|k| k.multi_axpy_dot(pass.count(rr)));
    Repeated::new(dev.plan(k.finish()?)?, sums.to_vec(), scope, start)
}

fn named<T: Scalar>(name: &str, v: &[Vector<T>], c: Cell<T>, sums: [Cell<T>; 3]) -> Result<Pass<T>> {
    let [rr, other, third] = sums;
    let [x, r, p, q, s, t, r0] = std::array::from_fn(|i| v[i]);
    Ok(match name {
        "dot" => Pass::new("dot").dot(rr, r, p),
        "nrm2" => Pass::new("nrm2").dot(rr, r, r),
        "dots" => Pass::new("dots").dot(rr, t, s).dot(other, t, t).dot(third, r0, t),
        "axpy" => Pass::new("axpy").set(x, x + c * p),
        "bicgstab-half" => Pass::new("half").set(s, r - c * q),
        "cg-descend" => Pass::new("descend").set(x, x + c * p).set(r, r - c * q).dot(rr, r, r),
        "cg-step" => Pass::new("step").set(x, x + c * p).set(r, r - c * q).set(p, r + c * p).dot(rr, r, r),
        "pcg-step" => Pass::new("step")
            .set(x, x + c * p)
            .set(r, r - c * q)
            .set(s, s - c * t)
            .set(p, s + c * p)
            .dot(other, r, s)
            .dot(rr, r, r),
        "bicgstab-step" => Pass::new("step")
            .set(x, x + c * p + c * s)
            .set(r, s - c * t)
            .set(p, r + c * (p - c * q))
            .dot(other, r0, r)
            .dot(rr, r, r),
        _ => {
            let all = PASSES.iter().chain(&BLAS[2..]);
            let names: Vec<_> = all.map(|pass| pass.name).collect();
            let message = format!("expected one of {}, got `{name}`", names.join(", "));
            return Err(Error::Argument { what: "pass".into(), message });
        }
    })
}

#[cfg(test)]
mod tests {
    use super::{BLAS, PASSES, pass};
    use crate::PreparedCase;

    #[test]
    fn passes_move_what_the_list_says() {
        let dev = lacuna::open("cpu").unwrap();
        for info in PASSES.iter().chain(&BLAS) {
            let mut made = pass::<f64>(&dev, info.name, 640).unwrap();
            made.round().unwrap();
            let m = made.measured().unwrap();
            assert_eq!(m.bytes as usize, (info.reads + info.writes) * 640 * 8, "{}", info.name);
            assert!(m.reproducible, "{}: the vectors do not stay ones", info.name);
        }
    }
}
