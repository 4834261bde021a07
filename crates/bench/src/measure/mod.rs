//! What the laboratory measures beside products and solves: passes, loops written by hand, work on the host.
mod by_hand;
mod host;
mod pass;

pub(crate) use by_hand::ByHand;
pub(crate) use host::{ASSEMBLE, Host, READ, TO};
pub(crate) use pass::{PASSES, also_passes};
