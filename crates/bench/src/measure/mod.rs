//! What the laboratory measures beside products, solves and passes: loops written by hand, work on the host.
mod by_hand;
mod host;

pub(crate) use by_hand::ByHand;
pub(crate) use host::{ASSEMBLE, Host, READ, TO};
