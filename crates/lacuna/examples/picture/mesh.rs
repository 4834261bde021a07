//! Shaded surfaces of triangles, drawn from far to near (painter's algorithm).
use super::{Colour, Picture, Point};

/// Points in space, and triangles over them, counter-clockwise seen from outside.
pub(crate) struct Mesh {
    pub(crate) points: Vec<[f64; 3]>,
    pub(crate) triangles: Vec<[usize; 3]>,
}

impl Mesh {
    /// A grid of `rows` by `columns` points in row-major order, each square cut into two triangles. `closed` joins the last row or column
    /// to the first.
    pub(crate) fn grid(
        [rows, columns]: [usize; 2],
        closed: [bool; 2],
        point: impl Fn(f64, f64) -> [f64; 3],
    ) -> Self {
        let parts = [rows - usize::from(!closed[0]), columns - usize::from(!closed[1])];
        let cell = |k: usize| [k / columns, k % columns];
        let points = (0..rows * columns).map(cell);
        let points =
            points.map(|[i, j]| point(i as f64 / parts[0] as f64, j as f64 / parts[1] as f64)).collect();
        let squares = (0..parts[0]).flat_map(|i| (0..parts[1]).map(move |j| (i, j)));
        let triangles = squares.flat_map(|(i, j)| {
            let at = |i: usize, j: usize| i % rows * columns + j % columns;
            let [a, b, c, d] = [at(i, j), at(i, j + 1), at(i + 1, j + 1), at(i + 1, j)];
            [[a, b, c], [a, c, d]]
        });
        Mesh { points, triangles: triangles.collect() }
    }

    /// Unit normals at the points, from the triangles around each.
    pub(crate) fn normals(&self) -> Vec<[f64; 3]> {
        let mut normals = vec![[0.0; 3]; self.points.len()];
        for triangle in &self.triangles {
            let [a, b, c] = triangle.map(|k| self.points[k]);
            let normal = cross(minus(b, a), minus(c, a));
            triangle.iter().for_each(|k| normals[*k] = [0, 1, 2].map(|c| normals[*k][c] + normal[c]));
        }
        normals.iter().map(|n| n.map(|v| v / dot(*n, *n).sqrt().max(1e-300))).collect()
    }
}

impl Picture {
    /// The surface seen from above, along z, with its origin at `centre`. `colour` takes a triangle and barycentric coordinates.
    pub(crate) fn mesh(
        &mut self,
        centre: Point,
        scale: f64,
        mesh: &Mesh,
        colour: impl Fn([usize; 3], [f64; 3]) -> Colour,
    ) {
        let normals = mesh.normals();
        let height = |triangle: &[usize; 3]| triangle.iter().map(|k| mesh.points[*k][2]).sum::<f64>();
        let mut order = mesh.triangles.clone();
        order.sort_by(|a, b| height(a).total_cmp(&height(b)));
        for triangle in order {
            let corners = triangle.map(|k| mesh.points[k]);
            let flat = corners.map(|[x, y, _]| [centre[0] + scale * x, centre[1] - scale * y]);
            self.triangle(flat, |weights| {
                let normal =
                    [0, 1, 2].map(|c| (0..3).map(|k| weights[k] * normals[triangle[k]][c]).sum::<f64>());
                shaded(colour(triangle, weights), normal)
            });
        }
    }
}

/// A colour lit from the upper left, with a soft highlight; the inside of a surface is darker.
fn shaded(colour: Colour, normal: [f64; 3]) -> Colour {
    const LIGHT: [f64; 3] = [-0.48, 0.56, 0.675];
    const HALF: [f64; 3] = [-0.262, 0.306, 0.915];
    let length = dot(normal, normal).sqrt().max(1e-300);
    let side = if normal[2] < 0.0 { -0.6 } else { 1.0 };
    let [diffuse, highlight] = [LIGHT, HALF].map(|to| (side * dot(normal, to) / length).max(0.0));
    colour.map(|c| (c * (0.42 + 0.64 * diffuse) + 0.22 * highlight.powi(40)).min(1.0))
}

fn minus(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [0, 1, 2].map(|c| a[c] - b[c])
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}
