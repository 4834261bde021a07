//! Prints the kernel that is written for a method: `kernel cg gen:poisson-p1:31 4` for four groups, a last word `cuda`
//! for what CUDA compiles.
use lacuna_core::{Backend, Format, Reference, encode};
use lacuna_formats::{Csr, Spec};
use lacuna_generate::{Device, Layout, MatrixFacts, SEGMENT};
use lacuna_solvers::{Gmres, Method, Orthogonalization, PipelinedBiCgStab, PipelinedCg, Side, Solver, Stop};
use std::sync::Arc;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [method, matrix, groups, rest @ ..] = &words[..] else {
        return Err("kernel METHOD MATRIX GROUPS [cuda]".into());
    };
    let groups: usize = groups.parse()?;
    let once = Gmres { restart: 30, orthogonalization: Orthogonalization::Classical, side: Side::Right };
    let method: Box<dyn Method<f64>> = match method.as_str() {
        "bicgstab" => Box::new(PipelinedBiCgStab),
        "gmres" => Box::new(once),
        _ => Box::new(PipelinedCg),
    };
    let a: Arc<Csr<f64>> = Arc::new(Spec::parse(matrix)?.build()?);
    let mut dev = Reference::default();
    let matrix = dev.matrix(a.clone())?;
    let solver = Solver::new(&mut dev, &matrix, None, &*method, Stop::default())?;
    let e = encode::encode(solver.program())?;
    let (row_ptr, columns) = (a.row_ptr(), a.col_idx());
    let spans: Vec<(u32, u32)> = (0..a.rows())
        .step_by(SEGMENT)
        .map(|first| {
            let end = (first + SEGMENT).min(a.rows());
            let entries = &columns[row_ptr[first] as usize..row_ptr[end] as usize];
            let [low, high] = [entries.iter().min(), entries.iter().max()].map(|c| c.copied().unwrap_or(0));
            (low, high + 1)
        })
        .collect();
    let facts = MatrixFacts { lanes: Format::lanes(&*a) as u32, format: Some(&*a), spans: &spans };
    let cuda = rest.iter().any(|word| word == "cuda");
    let prelude = ("prelude.cuh", include_str!("../../../kernels-cuda/prelude.cuh"));
    let near = a.rows().div_ceil(SEGMENT).div_ceil(groups) <= 4;
    let device = Device {
        nvidia: true,
        local: 231_424,
        largest: 1024,
        size: 0,
        ways: 0,
        units: 132,
        prelude: cuda.then_some(prelude),
    };
    let layout = match near {
        true => Layout::near(&e, &[facts], device, groups),
        false => Layout::far(&e, &[facts], device, groups),
    };
    print!("{}", layout.ok_or("the program has no such form")?.text);
    Ok(())
}
