//! Times the assembly of linear triangles on a grid of `N x N` points, from triplets and from elements:
//! `elements_time [N [REPEATS]]`, on `RAYON_NUM_THREADS` threads; also by `sprs` with the feature `sprs011`.
//! A third argument is a folder for the triplets, written for other programs as raw numbers: `rows`, `cols`
//! (u32) and `values` (f64).
use lacuna_formats::{Elements, Triplets};
use std::time::Instant;

fn timed<R>(repeats: usize, mut work: impl FnMut() -> R) -> (f64, R) {
    let mut times = Vec::new();
    let mut last = None;
    for _ in 0..repeats {
        drop(last.take());
        let start = Instant::now();
        last = Some(work());
        times.push(start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    (times[repeats / 2], last.unwrap_or_else(work))
}

/// The stiffness of a triangle whose shape depends on its number.
fn stiffness(element: usize, matrix: &mut [f64]) {
    let at = |k: usize| ((element * 31 + k * 17) % 97) as f64 / 970.0;
    let [[x0, y0], [x1, y1], [x2, y2]] = [[at(0), at(1)], [1.0 + at(2), at(3)], [at(4), 1.0 + at(5)]];
    let (b, c) = ([y1 - y2, y2 - y0, y0 - y1], [x2 - x1, x0 - x2, x1 - x0]);
    let area = ((x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0)) / 2.0;
    let entry = |k: usize| (b[k / 3] * b[k % 3] + c[k / 3] * c[k % 3]) / (4.0 * area);
    matrix.iter_mut().enumerate().for_each(|(k, m)| *m = entry(k));
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let n = arguments.next().map_or(Ok(1200), |n| n.parse::<usize>())?.max(2);
    let repeats = arguments.next().map_or(Ok(5), |n| n.parse::<usize>())?.max(1);
    let corner = |i: usize, j: usize| (i * n + j) as u32;
    let nodes: Vec<u32> = (0..(n - 1) * (n - 1))
        .flat_map(|k| {
            let (i, j) = (k / (n - 1), k % (n - 1));
            let [a, b, c, d] = [corner(i, j), corner(i, j + 1), corner(i + 1, j), corner(i + 1, j + 1)];
            [a, b, d, a, d, c]
        })
        .collect();
    let mut copies: Vec<_> = (0..repeats).map(|_| nodes.clone()).collect();
    let (joined, elements) = timed(repeats, || Elements::new(n * n, 3, copies.pop().unwrap_or_default()));
    let elements = elements?;
    let (filled, matrices) = timed(repeats, || elements.matrices(stiffness));
    let mut triplets = Triplets::with_capacity(n * n, n * n, matrices.len());
    for (element, of) in nodes.chunks(3).enumerate() {
        let places = (0..9).map(|k| (of[k / 3] as usize, of[k % 3] as usize, matrices[9 * element + k]));
        triplets.extend(places);
    }
    let (sorted, from_triplets) = timed(repeats, || triplets.to_csr());
    let (assembled, a) = timed(repeats, || elements.assemble(&matrices));
    let (planned, plan) = timed(repeats, || elements.plan());
    let (a, plan) = (a?, plan?);
    assert!(a == from_triplets?);
    let mut values = vec![0.0; plan.nnz()];
    let (summed, done) = timed(repeats, || plan.sum(&matrices, &mut values));
    done?;
    assert!(values == a.values());
    println!("{} entries of {} triplets, {} threads", a.nnz(), matrices.len(), rayon::current_num_threads());
    for (what, time) in [
        ("Triplets::to_csr", sorted),
        ("Elements::new", joined),
        ("Elements::matrices", filled),
        ("Elements::assemble", assembled),
        ("Elements::plan", planned),
        ("AssemblyPlan::sum", summed),
    ] {
        println!("{what:>20}: {time:.3} s");
    }
    #[cfg(feature = "sprs011")]
    {
        let theirs = sprs011::TriMatI::<f64, u32>::try_from(&triplets)?;
        let (time, made) = timed(repeats, || theirs.to_csr::<u32>());
        println!("{:>20}: {time:.3} s, {} entries", "sprs", made.nnz());
    }
    if let Some(folder) = arguments.next() {
        let folder = std::path::Path::new(&folder);
        let (rows, cols): (Vec<u32>, Vec<u32>) =
            triplets.entries().map(|(i, j, _)| (i as u32, j as u32)).unzip();
        std::fs::write(folder.join("rows"), bytemuck::cast_slice(&rows))?;
        std::fs::write(folder.join("cols"), bytemuck::cast_slice(&cols))?;
        std::fs::write(folder.join("values"), bytemuck::cast_slice::<f64, u8>(&matrices))?;
    }
    Ok(())
}
