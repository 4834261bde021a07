//! Inner products of many long vectors on the host.
use lacuna_engine::Scalar;
use lacuna_formats::parallel;

/// Rows that one task multiplies: those of some tens of vectors stay in its cache.
const ROWS: usize = 2048;
/// Partial sums of an inner product.
const LANES: usize = 16;

/// The entries `xᵢᴴ yⱼ` with `i ≤ j` of a Gram matrix, column by column, in double precision. All entries are summed over a piece of the
/// rows before the next one is read; the bits are the same on any number of threads.
pub(crate) fn upper<T: Scalar>(x: &[&[T]], y: &[&[T]]) -> Vec<T::Wide> {
    let rows = x.first().map_or(0, |x| x.len());
    let pieces = parallel::map(parallel::ranges(rows, ROWS), |rows| {
        let pairs = (0..y.len()).flat_map(|j| (0..=j).map(move |i| (i, j)));
        pairs.map(|(i, j)| dot(&x[i][rows.clone()], &y[j][rows.clone()])).collect::<Vec<_>>()
    });
    let count = y.len() * (y.len() + 1) / 2;
    (0..count).map(|entry| halved(pieces.iter().map(|piece| piece[entry]).collect())).collect()
}

/// The sum of numbers by halves, so that errors grow with the logarithm of their number.
fn halved<W: Scalar>(mut numbers: Vec<W>) -> W {
    while numbers.len() > 1 {
        numbers =
            numbers.chunks(2).map(|pair| pair.iter().skip(1).fold(pair[0], |sum, v| sum + *v)).collect();
    }
    numbers.first().copied().unwrap_or(W::from_real(0.0))
}

/// Where an entry is in [`upper`].
pub(crate) fn place(i: usize, j: usize) -> usize {
    j * (j + 1) / 2 + i
}

fn dot<T: Scalar>(x: &[T], y: &[T]) -> T::Wide {
    let mut sums = [<T::Wide as Scalar>::from_real(0.0); LANES];
    for (x, y) in x.chunks(LANES).zip(y.chunks(LANES)) {
        for (sum, (x, y)) in sums.iter_mut().zip(x.iter().zip(y)) {
            *sum += x.wide().conj() * y.wide();
        }
    }
    halved(sums.to_vec())
}
