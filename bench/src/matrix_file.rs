//! A file that programs in any language read a matrix from with three reads.
//!
//! Little endian, nothing between the parts: the eight bytes `LACCSR1\n`; rows, columns and entries as 64-bit
//! integers; `rows + 1` row pointers and then the column of each entry as 32-bit integers; four zero bytes where
//! `rows + 1 + entries` is odd; the entries as 64-bit floating-point numbers.
use bytemuck::{cast_slice, cast_slice_mut};
use lacuna_formats::{Csr, Spec};
use std::fs::File;
use std::io::{BufWriter, Read, Write};

const MAGIC: [u8; 8] = *b"LACCSR1\n";

/// Writes a matrix to a file.
///
/// # Errors
/// Those of writing.
pub fn write(a: &Csr<f64>, path: &str) -> std::io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    out.write_all(&MAGIC)?;
    out.write_all(cast_slice(&[a.rows() as u64, a.cols() as u64, a.nnz() as u64]))?;
    out.write_all(cast_slice(a.row_ptr()))?;
    out.write_all(cast_slice(a.col_idx()))?;
    if (a.rows() + 1 + a.nnz()) % 2 == 1 {
        out.write_all(&[0; 4])?;
    }
    out.write_all(cast_slice(a.values()))?;
    out.flush()
}

/// Reads a file that [`write`] has written.
///
/// # Errors
/// Those of reading, and of a file that is not what it says.
pub fn read(path: &str) -> Result<Csr<f64>, Box<dyn std::error::Error>> {
    let mut file = File::open(path)?;
    let (mut magic, mut sizes) = ([0; 8], [0u64; 3]);
    file.read_exact(&mut magic)?;
    file.read_exact(cast_slice_mut(&mut sizes))?;
    let [rows, cols, nnz] = sizes.map(|size| size as usize);
    let words = rows as u128 + 1 + nnz as u128;
    if magic != MAGIC || u128::from(file.metadata()?.len()) != 32 + 4 * (words + words % 2) + 8 * nnz as u128
    {
        return Err(format!("{path} is not a matrix file, or not all of one").into());
    }
    let (mut row_ptr, mut col_idx, mut values) = (vec![0u32; rows + 1], vec![0u32; nnz], vec![0.0; nnz]);
    file.read_exact(cast_slice_mut(&mut row_ptr))?;
    file.read_exact(cast_slice_mut(&mut col_idx))?;
    file.read_exact(&mut [0; 4][..4 * (words % 2) as usize])?;
    file.read_exact(cast_slice_mut(&mut values))?;
    Ok(Csr::new(rows, cols, row_ptr, col_idx, values)?)
}

/// The matrix of a name such as `gen:poisson-p1:63`, or of a file that [`write`] has written.
///
/// # Errors
/// Where there is none.
pub fn matrix(name: &str) -> Result<Csr<f64>, Box<dyn std::error::Error>> {
    if name.starts_with(Spec::PREFIX) { Ok(Spec::parse(name)?.build()?) } else { read(name) }
}
