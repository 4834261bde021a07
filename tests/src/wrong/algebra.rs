//! Sparse algebra as a device has it, computed by the host.
use crate::sparse_algebra::set_by_rounds;
use lacuna_engine::{CompressedRows, Error, Format, Graph, Result, Scalar};
use lacuna_formats::{Csr, algebra};
use std::any::Any;

/// The product of matrices, with what is refused and what is left to the host as the trait says.
pub(super) fn sparse_product<T: Scalar>(factors: &[&dyn Format<T>]) -> Result<Option<CompressedRows<T>>> {
    let refused =
        |message: &str| Error::Unsupported { operation: "a sparse product".into(), message: message.into() };
    let csr = |factor: &&dyn Format<T>| (*factor as &dyn Any).downcast_ref::<Csr<T>>().cloned();
    let mut factors: Vec<Csr<T>> =
        factors.iter().map(csr).collect::<Option<_>>().ok_or_else(|| refused("a format other than `csr`"))?;
    let mut made = factors.pop().ok_or_else(|| refused("no factors"))?;
    for left in factors.iter().rev() {
        made = match algebra::product(left, &made) {
            Ok(made) => made,
            Err(error @ Error::Shape { .. }) => return Err(error),
            Err(_) => return Ok(None), // a number that is not finite
        };
    }
    let (row_ptr, col_idx) = (made.row_ptr().to_vec(), made.col_idx().to_vec());
    Ok(Some(CompressedRows { shape: made.shape(), row_ptr, col_idx, values: made.values().to_vec() }))
}

/// A maximal set of rows three steps apart, or what is wrong with the graph.
pub(super) fn distant_rows(graph: Graph<'_>, priorities: &[u64]) -> Result<Vec<u32>> {
    let (operation, rows) = ("a set of distant rows", priorities.len());
    let (starts, neighbours) = (graph.row_ptr, graph.neighbours);
    Error::check_length(operation, "the rows", rows, starts.len().saturating_sub(1))?;
    let within = starts.windows(2).all(|w| w[0] <= w[1])
        && starts.last().is_none_or(|end| *end as usize <= neighbours.len())
        && neighbours.iter().all(|j| (*j as usize) < rows);
    if !within {
        let message = "a row leaves its arrays".into();
        return Err(Error::Structure { operation: operation.into(), message });
    }
    Ok(set_by_rounds(graph, priorities))
}
