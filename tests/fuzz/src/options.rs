//! `NAME:key=value,…` of methods and preconditioners, and names of formats and orders.
use crate::bytes::Bytes;
use lacuna::cpu::{Cpu, CpuOptions};
use lacuna::solvers::{METHODS, Options, PRECONDITIONERS, method, preconditioner};
use lacuna::{Device, LinearSystem, Spec, Stop};

/// What is a name with options solves a small system, or is refused with words; the rest is refused.
pub fn options(data: &[u8]) {
    let mut data = Bytes::new(data);
    let (what, which) = (data.byte(), data.byte());
    let rest = String::from_utf8_lossy(data.rest()).into_owned();
    // Half of the names are known ones.
    let named = |names: &[&str]| match which {
        0..128 => format!("{}:{rest}", names[usize::from(which) % names.len()]),
        _ => rest.clone(),
    };
    let spec = ["gen:poisson2d:5x4", "gen:convection:5x4", "gen:random:20:3"][usize::from(what / 4) % 3];
    let system =
        LinearSystem::new(Spec::parse(spec).and_then(|spec| spec.build::<f64>()).expect("a small matrix"));
    let system = match what % 4 {
        0 => {
            let text = named(&METHODS.iter().map(|m| m.name).collect::<Vec<_>>());
            if method::<f64>(&text, &Options::default()).is_err() {
                return;
            }
            system.method(&text)
        }
        1 => {
            let text = named(&PRECONDITIONERS.iter().map(|p| p.name).collect::<Vec<_>>());
            if preconditioner::<f64>(&text).is_err() {
                return;
            }
            system.preconditioner(&text)
        }
        2 => system.format(&rest),
        _ => system.reorder(&rest),
    };
    let dev = Cpu::with(CpuOptions::default().threads(1)).expect("a CPU backend");
    let system = system.stop(Stop::default().rtol(1e-6).max_iters(20));
    let solved = system.on(Device::new(dev)).prepare().and_then(|mut system| system.solve(&[1.0; 20]));
    match solved {
        Ok((x, outcome)) => {
            assert!(x.iter().all(|x| x.is_finite()), "{outcome:?}");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
