//! Application of two triangular factors: by exact solves, or by Jacobi iterations for each.
use super::{Handles, Parts};
use crate::named::{OptionInfo, Settings};
use lacuna_engine::{Matrix, Pass, Recorder, Result, Scalar, Vector};
use lacuna_formats::algebra::build_rows;
use lacuna_formats::{Csr, Half, Triangular, interrupt, parallel};

/// How systems with triangular factors are solved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Solves {
    /// Exactly, level by level in the order of the matrix.
    Levels,
    /// Exactly, with rows factored colour by colour: few levels, but more iterations.
    Colours,
    /// By this many Jacobi iterations for each factor: needs only products, and is not exact.
    Sweeps(usize),
}

impl Solves {
    /// The option that selects exact solves by levels or colours.
    pub(super) const SOLVE: OptionInfo =
        OptionInfo { key: "solve", default: "levels", about: "levels or colours; exact" };
    /// The option for sweeps.
    pub(super) const SWEEPS: OptionInfo = OptionInfo {
        key: "sweeps",
        default: "0",
        about: "of Jacobi's iteration for each factor in place of exact solves, 1 to 16; 0 for these",
    };

    pub(super) fn named(settings: &Settings<'_>) -> Result<Self> {
        let exact = [("levels", Solves::Levels), ("colours", Solves::Colours)];
        let exact = settings.choice("solve", &exact)?.unwrap_or(Solves::Levels);
        let sweeps = settings.number("sweeps", "a whole number from 0 to 16", |s| *s <= 16)?;
        Ok(if sweeps > 0 { Solves::Sweeps(sweeps) } else { exact })
    }

    /// The setting as text for a name, if it is not the default.
    pub(super) fn said(self) -> Option<String> {
        match self {
            Solves::Levels => None,
            Solves::Colours => Some("solve=colours".into()),
            Solves::Sweeps(sweeps) => Some(format!("sweeps={sweeps}")),
        }
    }
}

/// A name, followed by the settings that are not the defaults.
pub(super) fn name_with(name: &'static str, said: Vec<String>) -> std::borrow::Cow<'static, str> {
    if said.is_empty() { name.into() } else { format!("{name}:{}", said.join(",")).into() }
}

/// Two factors, each a triangle of a matrix.
pub(super) struct Factors<'a, T> {
    /// The matrix that holds the lower factor, left of the diagonal.
    pub(super) lower: &'a Csr<T>,
    /// Reciprocals of its diagonal, if not those of the matrix.
    pub(super) lower_reciprocals: Option<&'a [T]>,
    /// The matrix that holds the upper factor, right of the diagonal.
    pub(super) upper: &'a Csr<T>,
    /// Reciprocals of its diagonal, if not those of the matrix.
    pub(super) upper_reciprocals: Option<&'a [T]>,
    /// For each row of the factors, its element of the vectors.
    pub(super) names: Option<&'a [u32]>,
}

impl<T: Scalar> Factors<'_, T> {
    /// The factors' data for a device. Includes the adjoints if `adjoint` is set.
    pub(super) fn parts(&self, solves: Solves, adjoint: bool) -> Result<Parts<T>> {
        let n = self.lower.rows();
        let (parts, (what, value)) = self.add(Parts::new(), solves)?;
        let parts = parts.scratch(n).report(what, value);
        let parts = if matches!(solves, Solves::Sweeps(_)) { parts.scratch(n) } else { parts };
        if adjoint { self.add_adjoint(parts, solves) } else { Ok(parts) }
    }

    /// Adds the adjoints of both factors, in the order of their solves.
    pub(super) fn add_adjoint(&self, parts: Parts<T>, solves: Solves) -> Result<Parts<T>> {
        let [lower_reciprocals, upper_reciprocals] = [self.upper_reciprocals, self.lower_reciprocals]
            .map(|given| given.map(|d| d.iter().map(|d| d.conj()).collect::<Vec<T>>()));
        interrupt::check()?;
        let turned = Factors {
            lower: &self.upper.adjoint(),
            lower_reciprocals: lower_reciprocals.as_deref(),
            upper: &self.lower.adjoint(),
            upper_reciprocals: upper_reciprocals.as_deref(),
            names: self.names,
        };
        turned.add(parts, solves).map(|(parts, _)| parts)
    }

    /// Adds both factors, and returns a line for the report.
    fn add(&self, parts: Parts<T>, solves: Solves) -> Result<(Parts<T>, (&'static str, String))> {
        if let Solves::Sweeps(sweeps) = solves {
            let lower = scaled_half(self.lower, Half::Lower, self.lower_reciprocals)?;
            let upper = scaled_half(self.upper, Half::Upper, self.upper_reciprocals)?;
            let parts = parts.matrix(lower.1).matrix(upper.1).vector(lower.0).vector(upper.0);
            return Ok((parts, ("sweeps", sweeps.to_string())));
        }
        let halves = [
            (self.lower, Half::Lower, self.lower_reciprocals),
            (self.upper, Half::Upper, self.upper_reciprocals),
        ];
        let part = |(a, half, reciprocals)| Triangular::part(a, half, reciprocals, self.names);
        let units = self.lower.nnz().max(self.upper.nnz());
        let halves = parallel::map_large(units, halves, part).into_iter().collect::<Result<Vec<_>>>()?;
        let [lower, upper] = halves.try_into().unwrap_or_else(|_| unreachable!("two halves"));
        let levels = format!("{} and {}", lower.depth(), upper.depth());
        Ok((parts.matrix(lower).matrix(upper), ("levels", levels)))
    }
}

/// Reciprocals of the diagonal, and the strict triangle with each row multiplied by its reciprocal.
fn scaled_half<T: Scalar>(a: &Csr<T>, half: Half, reciprocals: Option<&[T]>) -> Result<(Vec<T>, Csr<T>)> {
    let own = |i: usize| T::one().quotient(a.get(i, i).unwrap_or(T::zero()));
    let d: Vec<T> = match reciprocals {
        Some(given) => given.to_vec(),
        None => (0..a.rows()).map(own).collect(),
    };
    let strict = build_rows("half of a factor", a.rows(), a.cols(), a.row_shares(), |run, out| {
        let mut scaled = Vec::new();
        for i in run {
            let (columns, values) = a.row_slices(i);
            let own = match half {
                Half::Lower => 0..columns.partition_point(|&j| (j as usize) < i),
                Half::Upper => columns.partition_point(|&j| j as usize <= i)..columns.len(),
            };
            scaled.clear();
            scaled.extend(values[own.clone()].iter().map(|&v| d[i] * v));
            out.row(&columns[own], &scaled);
        }
    })?;
    Ok((d, strict))
}

/// Records `z ← U⁻¹ L⁻¹ r`, or its approximation by sweeps, then `then`, with the handles of
/// [`Factors::parts`].
pub(super) fn apply<T: Scalar>(
    k: &mut Recorder<'_, T>,
    on: &Handles<T>,
    solves: Solves,
    [r, z]: [Vector<T>; 2],
    then: Pass<T>,
) {
    match solves {
        Solves::Levels | Solves::Colours => exact(k, on.matrices(), on.scratch(), [r, z], then),
        Solves::Sweeps(sweeps) => swept(k, on.matrices(), on.vectors(), on.scratch(), sweeps, [r, z], then),
    }
}

/// Records `z ← L⁻ᴴ U⁻ᴴ r`, or its approximation by sweeps, then `then`, with the handles of
/// [`Factors::parts`] made with the adjoint.
pub(super) fn apply_adjoint<T: Scalar>(
    k: &mut Recorder<'_, T>,
    on: &Handles<T>,
    solves: Solves,
    [r, z]: [Vector<T>; 2],
    then: Pass<T>,
) {
    let [_, _, upper, lower] = on.matrices();
    match solves {
        Solves::Levels | Solves::Colours => exact(k, [upper, lower], on.scratch(), [r, z], then),
        Solves::Sweeps(sweeps) => {
            let [_, _, of_upper, of_lower] = on.vectors();
            swept(k, [upper, lower], [of_upper, of_lower], on.scratch(), sweeps, [r, z], then);
        }
    }
}

/// Records a solve with each of two factors, then `then`.
fn exact<T: Scalar>(
    k: &mut Recorder<'_, T>,
    [first, second]: [Matrix<T>; 2],
    [t]: [Vector<T>; 1],
    [r, z]: [Vector<T>; 2],
    then: Pass<T>,
) {
    k.tri_solve(first, r, t, Pass::nothing());
    k.tri_solve(second, t, z, then);
}

/// Records sweeps with each of two factors, of which the diagonals are given, then `then`.
fn swept<T: Scalar>(
    k: &mut Recorder<'_, T>,
    [first, second]: [Matrix<T>; 2],
    [of_first, of_second]: [Vector<T>; 2],
    [s, t]: [Vector<T>; 2],
    sweeps: usize,
    [r, z]: [Vector<T>; 2],
    then: Pass<T>,
) {
    let y = sweep(k, first, of_first, r, [s, t], sweeps, Pass::nothing());
    let free = if y == s { t } else { s };
    // Chosen so that the last iterate is in z.
    let places = if sweeps.is_multiple_of(2) { [z, free] } else { [free, z] };
    sweep(k, second, of_second, y, places, sweeps, then);
}

/// Records `sweeps` Jacobi iterations for `(I + N) x = d .* b` from `d .* b`, alternating between two
/// vectors. Returns the one with the result.
fn sweep<T: Scalar>(
    k: &mut Recorder<'_, T>,
    n: Matrix<T>,
    d: Vector<T>,
    b: Vector<T>,
    [mut x, mut y]: [Vector<T>; 2],
    sweeps: usize,
    then: Pass<T>,
) -> Vector<T> {
    let mut then = Some(then);
    k.multi_axpy_dot(Pass::new("start").set(x, d * b));
    for step in 1..=sweeps {
        let pass = Pass::new("sweep").set(y, d * b - y);
        let pass = match then.take_if(|_| step == sweeps) {
            Some(then) => pass.then(then),
            None => pass,
        };
        k.spmv_dot(&n, x, y, pass);
        (x, y) = (y, x);
    }
    x
}
