//! What the project promises besides equal bits: costs, iterations, solved matrices, its own structure.
mod guide;
mod imports;
mod matrices;
mod preconditioners;
mod promises;
mod table;
mod traces;
