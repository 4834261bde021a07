//! Tests of the library as its users see it. One program, so that shared code is compiled once.
mod bindings;
mod choices;
mod columns;
mod devices;
mod faults;
mod gallery;
mod honest;
mod interface;
mod least_squares;
mod new_values;
mod observed;
mod operator;
mod order;
mod own_method;
mod real;
mod refine;
mod sequences;
mod strict;
mod update;
mod vectors;

use lacuna::Device;

/// A device that no other test uses, so that what is in use on it can be compared.
fn own_device() -> Device {
    let options = lacuna::cpu::CpuOptions::default().threads(2);
    Device::new(lacuna::cpu::Cpu::with(options).unwrap())
}
