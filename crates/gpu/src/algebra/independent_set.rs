//! Rows no two of which are within two steps of each other in a graph: MIS-2 (Bell, Dalton and Olson 2012,
//! doi:10.1137/110838844), a thread for each row.
use super::{AlgebraDevice, Kernel, KernelArgument, Threads, read};
use bytemuck::cast_slice;
use lacuna_engine::{Error, Graph, Result, pages};

const OPERATION: &str = "distance-two set on a device";
/// Maximum number of neighbours: a thread alone takes long for more.
const LONGEST: u32 = 1 << 11;
/// In the set, as in the kernels.
const IN: u64 = u64::MAX;

const fn kernel(stem: &'static str) -> Kernel {
    Kernel { stem, is_typed: false }
}
const CHECK: Kernel = kernel("independent_check");
pub(super) const SPREAD: Kernel = kernel("independent_spread");
pub(super) const DECIDE: Kernel = kernel("independent_decide");

/// The kernels.
pub const SET_KERNELS: [Kernel; 3] = [CHECK, SPREAD, DECIDE];

/// The rows of a maximal set: see [`lacuna_engine::Backend::distance_two_set`].
///
/// # Errors
/// As there, and [`Error::OutOfMemory`].
pub fn distance_two_set<D: AlgebraDevice>(
    dev: &mut D,
    graph: Graph<'_>,
    priorities: &[u64],
) -> Result<Option<Vec<u32>>> {
    use KernelArgument::{Array, Word};
    let Graph { row_ptr, neighbours } = graph;
    let n = priorities.len();
    Error::check_length(OPERATION, "the pointers of rows", n + 1, row_ptr.len())?;
    if (n + 1).max(neighbours.len()) as u64 > u64::from(u32::MAX) - 256 {
        return Ok(None);
    }
    let rows = Threads::Each(n);
    let (count, entries) = (Word(n as u32), Word(neighbours.len() as u32));
    let [row_ptr, neighbours] = [row_ptr, neighbours].map(|words| dev.array(cast_slice(words)));
    let (row_ptr, neighbours) = (row_ptr?, neighbours?);
    let [row_ptr, neighbours] = [Array(&row_ptr), Array(&neighbours)];
    // The longest row, beyond all where a row leaves the arrays.
    let longest = dev.zeros(4)?;
    dev.launch(CHECK, rows, &[row_ptr, neighbours, Array(&longest), count, entries])?;
    let mut found = [0u32];
    read(dev, &longest, &mut found)?;
    if found == [u32::MAX] {
        let message = "expected rows within the array of neighbours, and neighbours below the number of rows";
        return Err(Error::Structure { operation: OPERATION.into(), message: message.into() });
    }
    if found[0] > LONGEST {
        return Ok(None);
    }
    let keys = dev.array(cast_slice(priorities))?;
    let nearby = dev.zeros(8 * n)?;
    loop {
        let undecided = dev.zeros(4)?;
        dev.launch(SPREAD, rows, &[row_ptr, neighbours, Array(&keys), Array(&nearby), count])?;
        let decide = [row_ptr, neighbours, Array(&nearby), Array(&keys), Array(&undecided), count];
        dev.launch(DECIDE, rows, &decide)?;
        read(dev, &undecided, &mut found)?;
        if found == [0] {
            break;
        }
    }
    let mut decided = pages::zeroed::<u64>(OPERATION, n)?;
    read(dev, &keys, &mut decided)?;
    Ok(Some((0..).zip(decided).filter(|(_, key)| *key == IN).map(|(row, _)| row).collect()))
}
