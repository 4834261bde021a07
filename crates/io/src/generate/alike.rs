//! Look-alikes of the fourteen matrices of Bell and Garland 2008, Table 4, and of the three that Rupp et al. 2016, Table I, have
//! besides: the same rows, columns and entries per row, and the structure that determines the speed of a product; values are random.
use super::mesh::Mesh;
use super::{grid, lattice, network};
use lacuna_engine::{Result, Scalar};
use lacuna_formats::Csr;

/// A matrix of the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Shape {
    pub(super) name: &'static str,
    pub(super) rows: usize,
    cols: usize,
    source: Source,
}

/// The model of the entries.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Source {
    Dense,
    /// Solids, shells, a molecule. Differs: the mesh consists of the shuffled nodes of a box.
    Mesh(Mesh),
    /// Sites, spins and colours. The pattern is that of the original; real, as in the paper.
    Lattice,
    /// The same equations in each of 500 periods. Differs: the variables of an equation are random.
    Periods,
    /// Two populations with a bounded sum. As many entries as in the original; differs: the numbering.
    Epidemic,
    /// Parts, and lines shared by many parts. Differs: the connections between parts are random.
    Circuit,
    /// Pages and links.
    Web,
    /// A few long rows, with lengths as in the paper's Figure 33. Differs: columns are spread evenly over
    /// each row.
    Cover,
    /// Parts that are joined to few others. Differs: the connections are random.
    SparseCircuit,
    /// Balances of a power network and their multipliers. Differs: the network is random.
    Optimality,
}

const fn mesh(
    [nx, ny]: [usize; 2],
    block: usize,
    [reach, jitter]: [f64; 2],
    shuffled: usize,
    symmetric: bool,
) -> Source {
    Source::Mesh(Mesh { sides: [nx, ny], block, reach, jitter, shuffled, symmetric })
}

const fn shape(name: &'static str, rows: usize, source: Source) -> Shape {
    Shape { name, rows, cols: rows, source }
}

/// In the order of the paper. The reach of a mesh is chosen to give the paper's entries per row.
pub(super) const SHAPES: [Shape; 17] = [
    shape("dense", 2_000, Source::Dense),
    // Atoms of a folded chain, with three coordinates each.
    shape("protein", 36_417, mesh([23, 23], 3, [2.1953, 0.5], 32, true)),
    shape("spheres", 83_334, mesh([30, 30], 3, [1.8152, 0.1], 32, true)),
    // A beam of 9x9x257 nodes, in natural order.
    shape("cantilever", 62_451, mesh([9, 9], 3, [1.7875, 0.1], 1, true)),
    // Shells: six unknowns per node, except for the last, which has four.
    shape("wind-tunnel", 217_918, mesh([190, 1], 6, [1.506, 0.05], 32, true)),
    // Shallow water.
    shape("harbor", 46_835, mesh([6, 60], 2, [1.9188, 0.5], 32, false)),
    shape("qcd", 49_152, Source::Lattice),
    shape("ship", 140_874, mesh([153, 1], 6, [1.763, 0.3], 32, true)),
    shape("economics", 206_500, Source::Periods),
    shape("epidemiology", 525_825, Source::Epidemic),
    // Numbered with little regard to the mesh.
    shape("accelerator", 121_192, mesh([49, 49], 1, [1.7471, 0.3], 16_384, true)),
    shape("circuit", 170_998, Source::Circuit),
    shape("webbase", 1_000_005, Source::Web),
    Shape { name: "lp", rows: 4_284, cols: 1_092_610, source: Source::Cover },
    // Compressible flow, seven unknowns a node.
    shape("rm07r", 381_689, mesh([38, 38], 7, [1.449, 0.1], 32, false)),
    shape("hamrle3", 1_447_360, Source::SparseCircuit),
    shape("kkt-power", 2_063_494, Source::Optimality),
];

/// How many of them are Bell and Garland's.
const OF_BELL_AND_GARLAND: usize = 14;

/// The names of the look-alikes of Bell and Garland's fourteen unstructured matrices, in the order of the
/// paper: `gen:alike:NAME`.
pub fn look_alikes() -> [&'static str; OF_BELL_AND_GARLAND] {
    std::array::from_fn(|k| SHAPES[k].name)
}

impl Shape {
    pub(super) fn named(name: &str) -> Option<&'static Shape> {
        SHAPES.iter().find(|shape| shape.name == name)
    }

    /// All names.
    pub(super) fn names() -> String {
        SHAPES.map(|shape| shape.name).join(", ")
    }

    /// The matrix, or one of the same kind with about a `part`-th of the rows and columns, rounded to whole
    /// nodes, sites and periods.
    pub(super) fn build<T: Scalar>(&self, operation: &str, part: usize) -> Result<Csr<T>> {
        let [rows, cols] = [self.rows, self.cols].map(|n| (n / part).max(1));
        match self.source {
            Source::Dense => network::dense(operation, [rows, rows]),
            Source::Mesh(mesh) if part == 1 => mesh.build(operation, rows),
            Source::Mesh(mesh) => {
                let sides = mesh.sides.map(|side| shortened(side, part));
                Mesh { sides, ..mesh }.build(operation, rows.next_multiple_of(mesh.block))
            }
            Source::Lattice => lattice::wilson(operation, rows),
            Source::Periods => network::periods(operation, rows),
            Source::Epidemic => grid::epidemic(operation, rows),
            Source::Circuit => network::circuit(operation, rows),
            Source::Web => network::power_law(operation, rows),
            Source::Cover => network::cover(operation, [rows, cols]),
            Source::SparseCircuit => network::sparse_circuit(operation, rows),
            Source::Optimality => network::optimality(operation, rows),
        }
    }
}

/// The side of a box with a `part`-th of the points: the smallest one whose cube times `part` is at least the
/// cube of `side`.
fn shortened(side: usize, part: usize) -> usize {
    (1..side).find(|s| s.pow(3).saturating_mul(part) >= side.pow(3)).unwrap_or(side)
}
