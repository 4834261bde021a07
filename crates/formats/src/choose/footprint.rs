//! Memory footprint of a matrix in each format, without converting it.
use crate::choose::select::block_size;
use crate::storage::padding::is_too_much;
use crate::{Bcsr, Csr, Dense, Dia, Hyb, LEAST_FILL, MOST_NEIGHBOURS, Packed, Pkt, Sell, Stencil, Structure};
use lacuna_engine::{Format, Scalar};
use std::cell::OnceCell;

/// Maximum bytes between an entry and its mirror image for which a second-level cache still holds the one
/// when the other is needed: on an Intel Xeon with a cache of twice this size, `dia-sym` takes 0.63 of the
/// time of `dia` for triangles (16 KB between), 0.71 for elasticity3d:16 (0.3 MB), 0.86 for elasticity3d:28
/// (0.9 MB), 1.5 for elasticity3d:47 (2.3 MB).
const CACHED: usize = 1 << 19;

/// The footprint of a matrix in a format.
pub(crate) struct Footprint {
    /// Bytes; an estimate for blocks of a large matrix.
    pub(crate) bytes: usize,
    /// Places, both entries and padding.
    pub(crate) places: usize,
    /// Why the format is excluded, if it is.
    pub(crate) refused: Option<&'static str>,
}

/// Computes footprints of a matrix, with what several formats share.
pub(crate) struct Footprints<'a, T: Scalar> {
    a: &'a Csr<T>,
    s: &'a Structure,
    sell: OnceCell<[(usize, usize); 2]>,
    hyb: OnceCell<[(usize, usize); 2]>,
}

impl<'a, T: Scalar> Footprints<'a, T> {
    pub(crate) fn new(a: &'a Csr<T>, s: &'a Structure) -> Self {
        Footprints { a, s, sell: OnceCell::new(), hyb: OnceCell::new() }
    }

    /// The footprint of a format, by name.
    pub(crate) fn format(&self, name: &str) -> Footprint {
        let (a, s, nnz) = (self.a, self.s, self.a.nnz());
        let sell = |which: usize| self.sell.get_or_init(|| Sell::footprints(a))[which];
        let hyb = |which: usize| self.hyb.get_or_init(|| Hyb::footprints(a))[which];
        let padded = |(bytes, places): (usize, usize)| Footprint {
            bytes,
            places,
            refused: is_too_much(places, nnz).then_some("too much padding"),
        };
        match name {
            "stencil" => {
                let few = s.diagonals <= MOST_NEIGHBOURS;
                match few.then(|| Stencil::from_csr(a)) {
                    Some(Ok(stencil)) => Footprint { bytes: stencil.bytes(), places: nnz, refused: None },
                    _ => Footprint {
                        bytes: 0,
                        places: 0,
                        refused: Some("not the same coefficients all over a grid"),
                    },
                }
            }
            "dia" => {
                let refused = Dia::<T>::refuses(a.rows(), s.diagonals, nnz);
                Footprint {
                    bytes: Dia::<T>::footprint(a.rows(), s.diagonals),
                    places: a.rows().saturating_mul(s.diagonals),
                    refused: refused.then_some("too few entries on its diagonals"),
                }
            }
            "dia-sym" => {
                let all = self.format("dia");
                let bytes = Dia::<T>::symmetric_footprint(a.rows(), s.diagonals);
                let apart = s.upper_bandwidth.saturating_mul(bytes) / a.rows().max(1);
                let other = match s.symmetric {
                    true => (apart > CACHED).then_some("a pair of diagonals too far apart to be read once"),
                    false => Some("not symmetric"),
                };
                Footprint { bytes, refused: all.refused.or(other), ..all }
            }
            "sell" => padded(sell(0)),
            "ell" => padded(sell(1)),
            "hyb" | "coo" => {
                let (bytes, places) = hyb(usize::from(name == "coo"));
                Footprint { bytes, places, refused: None }
            }
            "packed" => {
                let (bytes, refused) = match Packed::footprint(a) {
                    Ok(bytes) => (bytes, None),
                    Err(why) => (Format::bytes(a), Some(why)),
                };
                Footprint { bytes, places: nnz, refused }
            }
            "packed-f32" => Footprint {
                bytes: Packed::rounded_footprint(a),
                places: nnz,
                refused: Some("it rounds values: by name alone"),
            },
            "pkt" => {
                let (bytes, refused) = Pkt::footprint(a);
                Footprint { bytes, places: bytes / (size_of::<T>() + 2), refused }
            }
            "dense" => {
                let refused = Dense::<T>::refuses(a.rows(), a.cols(), nnz);
                Footprint {
                    bytes: Dense::<T>::footprint(a.rows(), a.cols()),
                    places: a.rows().saturating_mul(a.cols()),
                    refused: refused.then_some("too many zeros"),
                }
            }
            "csr" => Footprint { bytes: Format::bytes(a), places: nnz, refused: None },
            blocks => self.blocks(block_size(blocks).unwrap_or(1)),
        }
    }

    /// The footprint of blocks.
    fn blocks(&self, size: usize) -> Footprint {
        let (a, places_each) = (self.a, size * size);
        let fill = self.s.block_fill.iter().find(|(b, _)| *b == size).map(|(_, fill)| *fill);
        let blocks =
            fill.map_or(0, |fill| (a.nnz() as f64 / fill.max(1e-9) / places_each as f64).round() as usize);
        let bytes = fill.map_or(0, |_| Bcsr::<T>::footprint(a.rows(), size, blocks));
        let divides = a.rows().is_multiple_of(size) && a.cols().is_multiple_of(size);
        let refused = match divides {
            false => Some("no multiple of the block size"),
            true => (fill.is_none_or(|fill| fill < LEAST_FILL) && a.nnz() > 0)
                .then_some("too few entries in its blocks"),
        };
        Footprint { bytes, places: blocks * places_each, refused }
    }
}
