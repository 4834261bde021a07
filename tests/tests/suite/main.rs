//! What the project promises besides equal bits: costs, iterations, solved matrices, its own structure.
mod book;
mod guide;
mod imports;
mod matrices;
mod preconditioners;
mod promises;
mod table;
mod traces;
