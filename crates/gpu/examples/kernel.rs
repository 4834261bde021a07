//! Prints the kernel generated for a method: `kernel cg gen:poisson-p1:31 4` for four work-groups. The method
//! is `cg`, `bicgstab`, `gmres`, `gmres-once`, or `product` for a single product. Further arguments: `cuda`
//! for the text that CUDA compiles, `format=dia` and the like.
use lacuna_engine::{Device, Pass, Recorder, Reference, Scalar, encode};
use lacuna_formats::{Csr, convert};
use lacuna_gpu::{self as gpu, Layout, MatrixFacts, PlanCache, SEGMENT};
use lacuna_io::Spec;
use lacuna_solvers::{BiCgStab, Cg, Cycle, Gmres, Method, Orthogonalization, Side, Solver, Stop, System};
use std::sync::Arc;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [method, matrix, groups, rest @ ..] = &words[..] else {
        return Err("kernel METHOD MATRIX GROUPS [cuda] [format=NAME]".into());
    };
    let groups: usize = groups.parse()?;
    let gmres = |orthogonalization| {
        Box::new(Gmres { cycle: Cycle { restart: 30, orthogonalization }, side: Side::Right })
    };
    let method: Box<dyn Method<f64>> = match method.as_str() {
        "bicgstab" => Box::new(BiCgStab),
        "gmres" => gmres(Orthogonalization::Selective),
        "gmres-once" => gmres(Orthogonalization::Classical),
        "product" => Box::new(|k: &mut Recorder<'_, f64>, s: &System<'_, f64>| {
            let [rr] = k.cells();
            k.each(|k| k.spmv_dot(s.a, s.b, s.x, Pass::new("count").count(rr)));
        }),
        _ => Box::new(Cg),
    };
    let a: Arc<Csr<f64>> = Arc::new(Spec::parse(matrix)?.build()?);
    let rows = a.rows();
    let a = convert(&a, rest.iter().find_map(|word| word.strip_prefix("format=")).unwrap_or("csr"))?;
    let dev = Device::new(Reference::new());
    let matrix = dev.matrix(a.clone())?;
    let solver = Solver::new(&dev, &matrix, None, &*method, Stop::default())?;
    let e = encode::encode(solver.program())?;
    let a = f64::each(a);
    let facts = MatrixFacts { format: &a, serial: matrix.serial, stages: true };
    let plans = &mut PlanCache::<(), ()>::default();
    let cuda = rest.iter().any(|word| word == "cuda");
    let prelude = lacuna_kernels_cuda::PRELUDE;
    let resident = rows.div_ceil(SEGMENT).div_ceil(groups) <= 4;
    let device = gpu::Device {
        nvidia: true,
        cache: 60 << 20,
        local: 231_424,
        largest: 1024,
        size: 0,
        ways: 0,
        units: 132,
        prelude: cuda.then_some(prelude),
    };
    let resident = resident.then(|| Layout::resident(&e, &[facts], device, groups, plans)).flatten();
    let layout = resident.or_else(|| Layout::streaming(&e, &[facts], device, groups, plans));
    print!("{}", layout.ok_or("the program has no such form")?.0.text);
    Ok(())
}
