//! The destination of each product of two entries in a row of the result.
use super::cells::{Cell, add_product};
use lacuna_engine::Scalar;

/// Places in rows, in two bytes if all rows are short enough.
pub(super) enum Slots {
    Short(Vec<u16>),
    Long(Vec<u32>),
}

impl Slots {
    /// The slots of a run of rows whose places are all below `longest`.
    pub(super) fn new(places: Vec<u32>, longest: usize) -> Self {
        if longest > 1 << 16 {
            return Slots::Long(places);
        }
        Slots::Short(places.into_iter().map(|place| place as u16).collect())
    }
    pub(super) fn bytes(&self) -> usize {
        match self {
            Slots::Short(places) => size_of_val(&places[..]),
            Slots::Long(places) => size_of_val(&places[..]),
        }
    }
    /// Reads them in order.
    pub(super) fn reader(&self) -> Reader<'_> {
        match self {
            Slots::Short(places) => Reader::Short(places),
            Slots::Long(places) => Reader::Long(places),
        }
    }
}

/// The remaining slots.
pub(super) enum Reader<'a> {
    Short(&'a [u16]),
    Long(&'a [u32]),
}

impl Reader<'_> {
    /// Adds `factor` times each cell to the sum in the next slot.
    #[inline(always)]
    pub(super) fn scatter<T: Scalar, const R: usize, const K: usize, const C: usize>(
        &mut self,
        factor: &Cell<T, R, K>,
        cells: &[Cell<T, K, C>],
        sums: &mut [Cell<T, R, C>],
    ) {
        match self {
            Reader::Short(places) => {
                let (own, rest) = places.split_at(cells.len());
                own.iter().zip(cells).for_each(|(at, v)| add_product(&mut sums[*at as usize], factor, v));
                *places = rest;
            }
            Reader::Long(places) => {
                let (own, rest) = places.split_at(cells.len());
                own.iter().zip(cells).for_each(|(at, v)| add_product(&mut sums[*at as usize], factor, v));
                *places = rest;
            }
        }
    }
}
