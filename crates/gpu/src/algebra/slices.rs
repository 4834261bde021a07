//! The matrices of a program in slices, laid out on the device from what is there.
use super::{AlgebraDevice, Kernel, KernelArgument, each, typed};
use crate::repacked::NONE;
use crate::slices::Slicer;
use bytemuck::cast_slice;
use lacuna_engine::Result;

const SLICES: Kernel = typed("level_slices");

/// The kernel.
pub const SLICE_KERNELS: [Kernel; 1] = [SLICES];

use KernelArgument::{Array as At, Word};

/// Windows, columns and values of the matrices of a program, see [`Slicer`]. `stored` gives the pointers of rows, columns and values
/// of a matrix that is on the device in `csr` or `bcsr`; the host fills the places of the others. `None` without the memory for them.
///
/// # Errors
/// Device failures.
pub fn lay_out<D: AlgebraDevice>(
    dev: &mut D,
    slicer: Slicer<'_>,
    stored: &[Option<[D::Array; 3]>],
) -> Result<Option<[D::Array; 3]>> {
    let size = slicer.kind.size();
    let windows = dev.array(cast_slice(&slicer.windows))?;
    let (columns, values) = (dev.room(4 * slicer.columns.max(1))?, dev.room(size * slicer.values.max(1))?);
    let (mut columns_at, mut values_at) = (0, 0);
    for task in slicer.tasks {
        let blocks = task.rows.block().filter(|_| !task.rows.is_narrow());
        match (stored.get(task.m), blocks) {
            (Some(Some([rows, own, numbers])), Some(block)) => {
                let places = task.order.slices() * task.order.width;
                let arrays = [At(rows), At(own), At(numbers), At(&windows), At(&columns), At(&values)];
                let [at, of] = [task.slices_at, task.rows_at.unwrap_or(NONE as usize)];
                let slice = [task.order.rows, task.order.width, task.rows.lanes(), block, task.rows.run()];
                let numbers = [&[at, of, columns_at, values_at][..], &slice[..]].concat();
                let numbers = numbers.into_iter().chain([task.order.slices(), task.n]);
                let all: Vec<_> =
                    arrays.into_iter().chain(numbers.map(|number| Word(number as u32))).collect();
                dev.launch(SLICES, each(places), &all)?;
            }
            _ => {
                let Some((own, numbers)) = task.filled(size) else { return Ok(None) };
                dev.write(&columns, 4 * columns_at, cast_slice(&own))?;
                dev.write(&values, size * values_at, &cast_slice(&numbers)[..size * task.values])?;
            }
        }
        (columns_at, values_at) = (columns_at + task.columns, values_at + task.values);
    }
    Ok(Some([windows, columns, values]))
}
