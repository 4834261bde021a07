//! Formats, and what is built, ordered, factored and computed with them.
mod algebra;
mod assembly;
mod build;
mod csr;
mod dia;
mod dissection;
mod factor;
mod formats;
mod interop;
mod interpolation;
mod operators;
mod packed;
mod pkt;
mod reads;
mod reorder;
mod stencil;
mod structure;
