//! `serde`: rows, columns and the three arrays; deserialized data is checked.
use crate::Csr;
use lacuna_engine::Scalar;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize)]
#[serde(rename = "Csr")]
struct Lent<'a, T> {
    rows: usize,
    cols: usize,
    row_ptr: &'a [u32],
    col_idx: &'a [u32],
    values: &'a [T],
}

#[derive(Deserialize)]
#[serde(rename = "Csr")]
struct Owned<T> {
    rows: usize,
    cols: usize,
    row_ptr: Vec<u32>,
    col_idx: Vec<u32>,
    values: Vec<T>,
}

impl<T: Scalar + Serialize> Serialize for Csr<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (rows, cols, values) = (self.rows(), self.cols(), self.values());
        Lent { rows, cols, row_ptr: self.row_ptr(), col_idx: self.col_idx(), values }.serialize(serializer)
    }
}

impl<'de, T: Scalar + Deserialize<'de>> Deserialize<'de> for Csr<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Owned { rows, cols, row_ptr, col_idx, values } = Owned::deserialize(deserializer)?;
        Csr::new(rows, cols, row_ptr, col_idx, values).map_err(D::Error::custom)
    }
}
