//! The lacuna command.
fn main() {}
