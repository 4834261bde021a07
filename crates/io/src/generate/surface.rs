//! Triangle meshes of surfaces, generated or from OBJ files, and the matrices of two tasks on them: parameterisation by least-squares
//! conformal maps (Lévy et al. 2002, doi:10.1145/566654.566590) and smoothing by discrete smooth interpolation (Mallet 1992,
//! doi:10.1007/BF00897082).
use super::noise::signed;
use lacuna_engine::text::shown_word;
use lacuna_engine::{Error, Result, Scalar, pages};
use lacuna_formats::Csr;
use lacuna_formats::build::from_rows;

const SEED: u64 = 1;
/// The height of the generated surface, in units of its side, and the largest displacement of its points, in units of a cell.
const HEIGHT: f64 = 0.15;
const NOISE: f64 = 0.2;
/// Weight of the given points beside the smoothness.
const FIT: f64 = 0.1;

/// Where a mesh comes from.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum From {
    /// A hilly square of so many cells along each side, each cut into two triangles, with noise on its points.
    Hills(usize),
    /// A Wavefront OBJ file.
    File(String),
}

/// Points and triangles.
pub(super) struct Surface {
    points: Vec<[f64; 3]>,
    triangles: Vec<[u32; 3]>,
    /// Where the triangles of each point begin in `around`.
    first: Vec<u32>,
    around: Vec<u32>,
}

impl From {
    /// The numbers of points and triangles, if they are known before the mesh is made.
    pub(super) fn size(&self) -> Option<[usize; 2]> {
        match self {
            From::Hills(m) => Some([(m + 1).saturating_mul(m + 1), m.saturating_mul(*m).saturating_mul(2)]),
            From::File(_) => None,
        }
    }

    /// Makes or reads the mesh.
    ///
    /// # Errors
    /// Of reading; for a file that is no mesh.
    pub(super) fn surface(&self) -> Result<Surface> {
        match self {
            From::Hills(m) => Surface::of(hills(*m), hill_triangles(*m)),
            From::File(path) => {
                let text = std::fs::read_to_string(path).map_err(|source| Error::Io {
                    operation: "reading".into(),
                    path: path.into(),
                    source,
                })?;
                let (points, triangles) = parse(path, &text)?;
                Surface::of(points, triangles)
            }
        }
    }
}

fn hills(m: usize) -> Vec<[f64; 3]> {
    let side = m + 1;
    let bump = |t: f64| 16.0 * (t * (1.0 - t)) * (t * (1.0 - t));
    let point = |i: usize| {
        let moved = |axis: u64| NOISE * signed(SEED, i as u64, axis) / m as f64;
        let [x, y] = [(i % side) as f64 / m as f64, (i / side) as f64 / m as f64];
        [x + moved(0), y + moved(1), HEIGHT * bump(x) * bump(y) + moved(2)]
    };
    (0..side * side).map(point).collect()
}

fn hill_triangles(m: usize) -> Vec<[u32; 3]> {
    let corner = |x: usize, y: usize| (y * (m + 1) + x) as u32;
    let cell = |i: usize| {
        let (x, y) = (i % m, i / m);
        let [a, b, c, d] = [corner(x, y), corner(x + 1, y), corner(x + 1, y + 1), corner(x, y + 1)];
        [[a, b, c], [a, c, d]]
    };
    (0..m * m).flat_map(cell).collect()
}

/// Points and triangles.
type Parsed = (Vec<[f64; 3]>, Vec<[u32; 3]>);

/// The points and the faces of an OBJ file; faces of more than three corners are cut into triangles. Other lines are passed over.
fn parse(path: &str, text: &str) -> Result<Parsed> {
    let (mut points, mut triangles) = (Vec::new(), Vec::new());
    let wrong = |line: usize, expected: &str, got: &str| Error::Argument {
        what: format!("{path}, line {}", line + 1),
        message: format!("expected {expected}, got `{}`", shown_word(got)),
    };
    for (at, line) in text.lines().enumerate() {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("v") => {
                let mut point = [0.0; 3];
                for coordinate in &mut point {
                    let word = words.next().unwrap_or_default();
                    let read = word.parse().ok().filter(|v: &f64| v.is_finite());
                    *coordinate = read.ok_or_else(|| wrong(at, "three coordinates", word))?;
                }
                points.push(point);
            }
            Some("f") => {
                let mut corners = Vec::new();
                for word in words {
                    let number = word.split('/').next().unwrap_or_default();
                    let known = points.len() as i64;
                    // From the first point on, counted from 1; or from the last one back.
                    let index = match number.parse::<i64>() {
                        Ok(k) if k > 0 => k - 1,
                        Ok(k) if k < 0 => known + k,
                        _ => -1,
                    };
                    if !(0..known).contains(&index) || index > i64::from(u32::MAX) {
                        return Err(wrong(at, "the number of a point above", word));
                    }
                    corners.push(index as u32);
                }
                if corners.len() < 3 {
                    return Err(wrong(at, "at least three corners", line));
                }
                triangles.extend((1..corners.len() - 1).map(|k| [corners[0], corners[k], corners[k + 1]]));
            }
            _ => {}
        }
    }
    Ok((points, triangles))
}

impl Surface {
    fn of(points: Vec<[f64; 3]>, triangles: Vec<[u32; 3]>) -> Result<Self> {
        if points.len() < 3 || triangles.is_empty() {
            let message = "expected at least three points and a triangle".into();
            return Err(Error::Argument { what: "a mesh".into(), message });
        }
        let mut first = vec![0u32; points.len() + 1];
        triangles.iter().flatten().for_each(|&p| first[p as usize + 1] += 1);
        for p in 0..points.len() {
            first[p + 1] += first[p];
        }
        let (mut next, mut around) = (first.clone(), vec![0u32; 3 * triangles.len()]);
        for (t, corners) in triangles.iter().enumerate() {
            for &p in corners {
                around[next[p as usize] as usize] = t as u32;
                next[p as usize] += 1;
            }
        }
        Ok(Surface { points, triangles, first, around })
    }

    fn triangles_of(&self, point: usize) -> impl Iterator<Item = &[u32; 3]> {
        let around = &self.around[self.first[point] as usize..self.first[point + 1] as usize];
        around.iter().map(|&t| &self.triangles[t as usize])
    }

    /// The points joined to a point, in increasing order.
    fn neighbours(&self, point: usize) -> Vec<u32> {
        let mut near: Vec<u32> =
            self.triangles_of(point).flatten().copied().filter(|&p| p as usize != point).collect();
        near.sort_unstable();
        near.dedup();
        near
    }

    fn distance2(&self, a: usize, b: usize) -> f64 {
        let (a, b) = (self.points[a], self.points[b]);
        (0..3).map(|k| (a[k] - b[k]) * (a[k] - b[k])).sum()
    }

    /// The two points that a map keeps in place: the first, and the one farthest from it.
    fn pinned(&self) -> [usize; 2] {
        let farther =
            |best: usize, p: usize| if self.distance2(0, p) > self.distance2(0, best) { p } else { best };
        let far = (1..self.points.len()).fold(1, farther);
        [0, far]
    }

    /// For each triangle at a point, of each corner: its number, and the real and the imaginary part of its coupling with the point
    /// in the energy of a conformal map.
    fn conformal(&self, point: usize, mut visit: impl FnMut(usize, f64, f64)) {
        for corners in self.triangles_of(point) {
            let Some(own) = corners.iter().position(|&p| p as usize == point) else { continue };
            let flat = self.flattened(corners);
            // The edge opposite to a corner, as a complex number; twice the area makes the energy independent of the scale.
            let edge = |k: usize| {
                let (from, to) = (flat[(k + 1) % 3], flat[(k + 2) % 3]);
                [to[0] - from[0], to[1] - from[1]]
            };
            let (e, f) = (edge(1), edge(2));
            let twice_area = (e[0] * f[1] - e[1] * f[0]).abs();
            if twice_area <= 0.0 {
                continue;
            }
            let a = edge(own);
            for (k, &p) in corners.iter().enumerate() {
                let b = edge(k);
                let (re, im) = (a[0] * b[0] + a[1] * b[1], a[0] * b[1] - a[1] * b[0]);
                visit(p as usize, re / twice_area, im / twice_area);
            }
        }
    }

    /// A triangle in its own plane.
    fn flattened(&self, corners: &[u32; 3]) -> [[f64; 2]; 3] {
        let [a, b, c] = corners.map(|p| self.points[p as usize]);
        let minus = |p: [f64; 3], q: [f64; 3]| std::array::from_fn::<f64, 3, _>(|k| p[k] - q[k]);
        let dot = |p: [f64; 3], q: [f64; 3]| p[0] * q[0] + p[1] * q[1] + p[2] * q[2];
        let (u, v) = (minus(b, a), minus(c, a));
        let length = dot(u, u).sqrt();
        if length <= 0.0 {
            return [[0.0; 2]; 3];
        }
        let along = dot(u, v) / length;
        let up = (dot(v, v) - along * along).max(0.0).sqrt();
        [[0.0, 0.0], [length, 0.0], [along, up]]
    }

    /// The normal equations of a least-squares conformal map: 2 unknowns at each point but the two pinned ones. Symmetric positive
    /// definite, about 14 entries per row.
    pub(super) fn lscm<T: Scalar>(&self, operation: &str) -> Result<Csr<T>> {
        let pinned = self.pinned();
        let number = |p: usize| p - usize::from(p > pinned[0]) - usize::from(p > pinned[1]);
        from_rows(operation, 2 * (self.points.len() - 2), |i, row| {
            let (point, component) = (self.free(i / 2, pinned), i % 2);
            self.conformal(point, |other, re, im| {
                if !pinned.contains(&other) {
                    let values = if component == 0 { [re, -im] } else { [im, re] };
                    row.extend((0..2).map(|k| ((2 * number(other) + k) as u32, T::from_real(values[k]))));
                }
            });
            // A point of no triangle stays where it is.
            if row.is_empty() {
                row.push((i as u32, T::one()));
            }
        })
    }

    /// The point of a number among those that are not pinned.
    fn free(&self, number: usize, pinned: [usize; 2]) -> usize {
        // The first point is pinned always.
        let point = number + 1;
        point + usize::from(point >= pinned[1])
    }

    /// The right-hand side of [`Surface::lscm`] that pins the first point at (0, 0) and the other one at (1, 0).
    pub(super) fn pins<T: Scalar>(&self, operation: &str) -> Result<Vec<T>> {
        let pinned = self.pinned();
        let mut b = pages::zeroed::<T>(operation, 2 * (self.points.len() - 2))?;
        for (i, b) in b.chunks_mut(2).enumerate() {
            self.conformal(self.free(i, pinned), |other, re, im| {
                if other == pinned[1] {
                    b[0] -= T::from_real(re);
                    b[1] -= T::from_real(im);
                }
            });
        }
        Ok(b)
    }

    /// Smoothing by discrete smooth interpolation: `Lᵀ L + w I` with the uniform Laplacian `L`, 3 unknowns at each point, its
    /// coordinates. Symmetric positive definite, about 19 entries per row.
    pub(super) fn smooth<T: Scalar>(&self, operation: &str) -> Result<Csr<T>> {
        let near: Vec<Vec<u32>> = (0..self.points.len()).map(|p| self.neighbours(p)).collect();
        from_rows(operation, 3 * self.points.len(), |i, row| {
            let (point, component) = (i / 3, i % 3);
            let mut add = |p: usize, value: f64| row.push(((3 * p + component) as u32, T::from_real(value)));
            add(point, FIT);
            // Every row of L that has the point, its own and those of its neighbours; in the same order for both of two points, so
            // that the matrix is symmetric to the last bit.
            let before = near[point].partition_point(|&k| (k as usize) < point);
            let (below, above) = near[point].split_at(before);
            for k in below.iter().chain([&(point as u32)]).chain(above).map(|&k| k as usize) {
                let share = 1.0 / near[k].len().max(1) as f64;
                let own = if k == point { 1.0 } else { -share };
                add(k, own);
                near[k].iter().for_each(|&p| add(p as usize, -own * share));
            }
        })
    }

    /// The right-hand side of [`Surface::smooth`]: the given coordinates, by their weight.
    pub(super) fn coordinates<T: Scalar>(&self) -> Vec<T> {
        self.points.iter().flatten().map(|&v| T::from_real(FIT * v)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{From, parse};

    #[test]
    fn a_square_is_two_triangles() {
        let text = "# a square\nv 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nvn 0 0 1\nf 1/1/1 2/2/1 3/3/1 -1\n";
        let (points, triangles) = parse("a.obj", text).unwrap();
        assert_eq!((points.len(), triangles), (4, vec![[0, 1, 2], [0, 2, 3]]));
        for (line, expected) in
            [("v 1 x 0", "three coordinates"), ("f 1 2 9", "a point above"), ("f 1 2", "three corners")]
        {
            let error = parse("a.obj", &format!("{text}{line}\n")).unwrap_err().to_string();
            assert!(error.contains("line 8") && error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_flat_square_maps_to_itself() {
        let mut surface = From::Hills(6).surface().unwrap();
        surface.points.iter_mut().for_each(|p| p[2] = 0.0);
        let (a, b) = (surface.lscm::<f64>("lscm").unwrap(), surface.pins::<f64>("lscm").unwrap());
        // The similarity that takes the pinned points to (0, 0) and (1, 0).
        let [from, to] = surface.pinned().map(|p| surface.points[p]);
        let (dx, dy) = (to[0] - from[0], to[1] - from[1]);
        let scale = dx * dx + dy * dy;
        let mut x = vec![0.0; b.len()];
        for (i, x) in x.chunks_mut(2).enumerate() {
            let p = surface.points[surface.free(i, surface.pinned())];
            let (u, v) = (p[0] - from[0], p[1] - from[1]);
            (x[0], x[1]) = ((u * dx + v * dy) / scale, (v * dx - u * dy) / scale);
        }
        let mut y = vec![0.0; b.len()];
        a.product(&x, &mut y).unwrap();
        let worst = y.iter().zip(&b).map(|(y, b)| (y - b).abs()).fold(0.0, f64::max);
        assert!(worst <= 64.0 * f64::EPSILON, "{worst}");
    }
}
