//! A file that programs in any language read a matrix from with three reads.
//!
//! Little endian, nothing between the parts: the eight bytes `LACCSR1\n`; rows, columns and entries as 64-bit
//! integers; `rows + 1` row pointers and then the column of each entry as 32-bit integers; four zero bytes where
//! `rows + 1 + entries` is odd; the entries as 64-bit floating-point numbers.
use crate::failure::{Failure, Result};
use bytemuck::cast_slice;
use lacuna::Csr;
use std::fs::File;
use std::io::{BufWriter, Write};

/// The end of the names of such files.
pub(crate) const END: &str = ".laccsr";

/// Writes a matrix to a file.
pub(crate) fn write(path: &str, a: &Csr<f64>) -> Result<()> {
    let file = File::create(path).map_err(|e| Failure::writing(path, e))?;
    encode(&mut BufWriter::new(file), a).map_err(|e| Failure::writing(path, e))
}

fn encode(out: &mut impl Write, a: &Csr<f64>) -> std::io::Result<()> {
    out.write_all(b"LACCSR1\n")?;
    out.write_all(cast_slice(&[a.rows() as u64, a.cols() as u64, a.nnz() as u64]))?;
    out.write_all(cast_slice(a.row_ptr()))?;
    out.write_all(cast_slice(a.col_idx()))?;
    if (a.rows() + 1 + a.nnz()) % 2 == 1 {
        out.write_all(&[0; 4])?;
    }
    out.write_all(cast_slice(a.values()))?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::encode;
    use lacuna::Csr;

    #[test]
    fn parts_follow_each_other() {
        let a = Csr::new(2, 3, vec![0, 1, 3], vec![2, 0, 1], vec![1.0, 2.0, -1.0]).unwrap();
        let mut bytes = Vec::new();
        encode(&mut bytes, &a).unwrap();
        assert!(bytes.starts_with(b"LACCSR1\n\x02\0\0\0\0\0\0\0\x03\0"));
        // A head, six integers, three numbers.
        assert_eq!((bytes.len(), &bytes[32 + 24..]), (32 + 24 + 24, bytemuck::cast_slice(a.values())));
    }
}
