//! Whether a matrix comes from a diffusion or an elasticity problem suited to multigrid, and whether multigrid pays.
use super::Facts;
use lacuna_engine::Scalar;
use lacuna_formats::{Csr, Structure, parallel};

/// Steps across the grid from which `multigrid` is faster than CG on the host, and on a separate device, where an
/// iteration costs less of what the set-up on the host costs. CG takes about as many iterations as there are steps.
pub(super) const MULTIGRID_PAYS: [usize; 2] = [150, 400];
/// Steps times points from which it is.
const MULTIGRID_SIZE: usize = 3_000_000;
/// The same for `amg`, where CG takes more iterations than there are steps.
pub(super) const AMG_PAYS: usize = 250;
/// Unknowns of an elastic body from which `amg` is faster than CG on the host: CG takes about 450 iterations for so
/// many in a square or in a cube, more in a slender body.
pub(super) const ELASTIC_PAYS: usize = 100_000;
/// The part of the entries of a row that translations may leave.
const LEFT_BY_TRANSLATIONS: f64 = 0.1;
/// A row is weakly dominant if its couplings sum to at least this fraction of the diagonal; then a local
/// change of `b` affects the solution far away.
const WEAKLY_DOMINANT: f64 = 0.9;
/// Fraction of the couplings of a row, by size, that may have the sign of the diagonal.
const WRONG_SIGN: f64 = 0.1;

/// Why `multigrid` is faster than `cg` alone, if it is.
///
/// The matrix is Hermitian with a positive diagonal and a discretised diffusion, whose couplings balance the diagonal:
/// CG then needs about as many iterations as the graph has steps from one end to the other, since information moves
/// one step per iteration, and more if the coefficients vary.
pub(super) fn multigrid_pays<T: Scalar>(facts: &Facts<T>) -> Option<String> {
    let enough = steps_that_pay(facts)?;
    let size @ [x, y, z] = facts.grid().filter(|_| facts.is_diffusion())?;
    let across: usize = size.iter().map(|points| points - 1).sum();
    let pays = across >= enough && across * facts.matrix().rows() >= MULTIGRID_SIZE;
    pays.then(|| format!("one stencil on a grid of {x}x{y}x{z}; cg needs about {across} steps to cross it"))
}

/// Why `amg` is faster than `cg` alone, if it is: for a diffusion that is no stencil on a grid, or has couplings of both signs, and for
/// the stiffness of an elastic body of many unknowns. Only on the host: its set-up there takes as long as thousands of iterations on
/// a fast device.
pub(super) fn amg_pays<T: Scalar>(facts: &Facts<T>) -> Option<String> {
    steps_that_pay(facts).filter(|_| facts.on_host())?;
    let (a, s) = (facts.matrix(), facts.structure());
    if !facts.is_diffusion()
        && let Some(block) = s.block_size()
    {
        return (s.rows >= ELASTIC_PAYS && facts.is_elastic()).then(|| {
            format!(
                "the matrix maps translations nearly to 0, like the stiffness of an elastic body of {block} unknowns \
                 a node"
            )
        });
    }
    let is_it = match facts.is_diffusion() {
        true if facts.grid().is_none() => "is a diffusion",
        false if takes_translations_to_zero(a, 1) => "maps constants nearly to 0, like a diffusion",
        _ => return None,
    };
    let across = steps_across(a, AMG_PAYS);
    let why = || format!("the matrix {is_it}; cg needs at least {across} steps to cross its graph");
    (across >= AMG_PAYS).then(why)
}

/// The steps across a grid from which multigrid pays, if the matrix is one for it.
fn steps_that_pay<T: Scalar>(facts: &Facts<T>) -> Option<usize> {
    let (s, enough) = (facts.structure(), MULTIGRID_PAYS[usize::from(!facts.on_host())]);
    (s.rows == s.cols && s.hermitian && s.diagonal_positive && s.rows > enough).then_some(enough)
}

/// Whether, in at least half of the rows, the couplings are negative and balance the diagonal: a discretised
/// diffusion.
pub(super) fn is_diffusion<T: Scalar>(a: &Csr<T>) -> bool {
    let of_row = |i: usize| {
        let (mut diagonal, mut with, mut against) = (0.0, 0.0, 0.0);
        for (j, v) in a.row_entries(i) {
            match v.re() {
                re if i == j => diagonal = re,
                re if re > 0.0 => with += re,
                re => against -= re,
            }
        }
        with <= WRONG_SIGN * against && against - with >= WEAKLY_DOMINANT * diagonal
    };
    let counts = parallel::map(a.row_shares(), |run| run.filter(|&i| of_row(i)).count());
    2 * counts.into_iter().sum::<usize>() >= a.rows()
}

/// Whether a matrix of several unknowns a node is like the stiffness of an elastic body, which translations leave without stress.
pub(super) fn is_elastic<T: Scalar>(a: &Csr<T>, s: &Structure) -> bool {
    let block = s.block_size().filter(|_| s.rows == s.cols);
    block.is_some_and(|block| takes_translations_to_zero(a, block))
}

/// Whether, in at least half of the rows, the entries of each unknown of a node add up to nearly 0.
fn takes_translations_to_zero<T: Scalar>(a: &Csr<T>, block: usize) -> bool {
    let counts = parallel::map(a.row_shares(), |run| {
        let mut sums = vec![T::zero(); block];
        run.filter(|&i| {
            sums.fill(T::zero());
            let mut all = 0.0;
            a.row_entries(i).for_each(|(j, v)| {
                sums[j % block] += v;
                all += v.modulus();
            });
            sums.iter().all(|sum| sum.modulus() <= LEFT_BY_TRANSLATIONS * all)
        })
        .count()
    });
    2 * counts.into_iter().sum::<usize>() >= a.rows()
}

/// Estimated largest diameter of a connected part of the graph in steps, at most `enough`: the distance from the first row
/// of a part to the farthest row, or, if that is small everywhere, from that farthest row.
pub(super) fn steps_across<T: Scalar>(a: &Csr<T>, enough: usize) -> usize {
    let mut seen = vec![false; a.rows()];
    let mut most = (0, 0);
    let is_coupled = |i: usize| a.row_slices(i).0.iter().any(|&j| j as usize != i);
    for start in (0..a.rows()).filter(|&i| is_coupled(i)) {
        if !seen[start] {
            let found = levels(a, start, enough, &mut seen);
            most = if found.0 > most.0 { found } else { most };
            if most.0 >= enough {
                return enough;
            }
        }
    }
    seen.fill(false);
    levels(a, most.1, enough, &mut seen).0
}

/// The distance from a row to the rows farthest from it that are connected to it, at most `enough`, and one of these rows;
/// notes the rows that were `seen`.
fn levels<T: Scalar>(a: &Csr<T>, start: usize, enough: usize, seen: &mut [bool]) -> (usize, usize) {
    let (mut now, mut next, mut depth) = (vec![start as u32], Vec::new(), 0);
    seen[start] = true;
    while depth < enough {
        for &i in &now {
            for &j in a.row_slices(i as usize).0 {
                if !std::mem::replace(&mut seen[j as usize], true) {
                    next.push(j);
                }
            }
        }
        if next.is_empty() {
            break;
        }
        depth += 1;
        std::mem::swap(&mut now, &mut next);
        next.clear();
    }
    (depth, now.last().map_or(start, |&i| i as usize))
}

#[cfg(test)]
mod tests {
    use super::steps_across;
    use crate::auto::Facts;
    use crate::auto::rules::first_preconditioner;
    use crate::{METHODS, name_of};
    use lacuna_formats::Csr;
    use lacuna_io::Spec;

    fn chosen(spec: &str) -> Option<String> {
        chosen_on(spec, true)
    }

    fn chosen_on(spec: &str, on_host: bool) -> Option<String> {
        let a: Csr<f64> = Spec::parse(spec).unwrap().build().unwrap();
        let cg = METHODS.iter().find(|info| info.name == "cg").unwrap();
        let chosen = first_preconditioner(&Facts::of(a.into(), on_host), cg).name;
        ["multigrid", "amg"].contains(&name_of(&chosen)).then_some(chosen)
    }

    #[test]
    fn it_goes_by_the_kind_of_matrix_and_its_extent() {
        assert_eq!(chosen("gen:poisson2d:300x120").as_deref(), Some("multigrid"));
        assert_eq!(chosen("gen:poisson2d:100x100"), None); // cg converges before multigrid is set up
        assert_eq!(chosen_on("gen:poisson2d:300x120", false).as_deref(), Some("multigrid"));
        assert_eq!(chosen_on("gen:poisson2d:150x150", false), None); // iterations are cheaper there
        assert_eq!(chosen_on("gen:poisson-p1:270", false), None); // the set-up of amg is on the host
        assert_eq!(chosen("gen:poisson-p1:270").as_deref(), Some("amg"));
        assert_eq!(chosen("gen:poisson-p1:127"), None);
        assert_eq!(chosen("gen:elasticity3d:8"), None); // cg takes few iterations
        assert_eq!(chosen("gen:elasticity3d:32").as_deref(), Some("amg"));
        assert_eq!(chosen("gen:power-law:20000"), None); // the graph has a small diameter
        assert_eq!(chosen("gen:convection:200x200:100"), None); // not symmetric
    }

    /// `−u_xx − 1.8 u_xy − u_yy` on a square grid, with couplings of both signs.
    fn sheared(side: usize) -> Csr<f64> {
        let mut a = lacuna_formats::Triplets::new(side * side, side * side);
        for (i, j) in (0..side).flat_map(|i| (0..side).map(move |j| (i, j))) {
            for (di, dj) in (-1..=1).flat_map(|di: isize| (-1..=1).map(move |dj: isize| (di, dj))) {
                let beside = (i.wrapping_add_signed(di), j.wrapping_add_signed(dj));
                if beside.0 < side && beside.1 < side {
                    let v = match (di * dj, di == 0 && dj == 0) {
                        (_, true) => 4.0,
                        (0, _) => -1.0,
                        (sign, _) => -0.45 * sign as f64,
                    };
                    a.push(i * side + j, beside.0 * side + beside.1, v);
                }
            }
        }
        a.to_csr().unwrap()
    }

    #[test]
    fn couplings_of_both_signs_may_be_a_diffusion_too() {
        let cg = METHODS.iter().find(|info| info.name == "cg").unwrap();
        let chosen = |side| first_preconditioner(&Facts::of(sheared(side).into(), true), cg).name;
        assert_eq!(name_of(&chosen(300)), "amg");
        assert_ne!(name_of(&chosen(100)), "amg");
    }

    /// Two matrices as blocks on the diagonal.
    fn beside(a: &Csr<f64>, b: &Csr<f64>) -> Csr<f64> {
        let n = a.rows() + b.rows();
        let mut both = lacuna_formats::Triplets::new(n, n);
        a.entries().for_each(|(i, j, v)| both.push(i, j, v));
        b.entries().for_each(|(i, j, v)| both.push(a.rows() + i, a.rows() + j, v));
        both.to_csr().unwrap()
    }

    #[test]
    fn steps_are_counted_from_an_end() {
        let line: Csr<f64> = Spec::parse("gen:poisson1d:50").unwrap().build().unwrap();
        assert_eq!((steps_across(&line, 1000), steps_across(&line, 20)), (49, 20));
        let order: Vec<u32> = (0..50).map(|i| if i == 0 { 25 } else { i - u32::from(i <= 25) }).collect();
        let permuted = line.permuted(&lacuna_formats::Permutation::new(order).unwrap()).unwrap();
        assert_eq!(steps_across(&permuted, 1000), 49); // the first row is in the middle
        let apart = beside(&Csr::identity(3).unwrap(), &permuted);
        assert_eq!((steps_across(&apart, 1000), steps_across(&apart, 20)), (49, 20)); // the first rows stand alone
    }
}
