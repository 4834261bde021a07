//! One system on several devices: each computes some rows of every vector, and all together give the same bits as one.
//!
//! A [`Group`] is a [`Backend`](lacuna_engine::Backend) over several backends that can run their part of an operation
//! ([`Divided`](lacuna_engine::Divided)), its *ranks*. Every rank has all handles and matrices, with the lengths of the whole
//! system. The rows of each length are cut into consecutive parts at borders of segments, balanced by the entries of the matrix:
//! rank `r` computes part `r`.
//!
//! * A product needs elements of x from other parts, the *halo*. Each rank sends what its neighbours need, computes the segments
//!   that need nothing (*interior*), waits for what it needs, and computes the rest (*border*). Rows are never split, so that
//!   each is summed in the same order as on one device.
//! * A sum over all rows is finished by everyone: a part has a few subtrees of the canonical sum
//!   ([`division`](lacuna_engine::division)), whose sums all ranks gather, all sums of an operation in one message. Every rank
//!   then adds them in the same tree, evaluates the formulas on them, and takes the same decisions.
//! * What cannot be divided, solves with triangular matrices and formats of other crates, has its operand gathered by every rank.
//!   That is right, and slow: [`Tally::whole`] counts it.
//!
//! A rank that fails goes on to the next gather with a word that says so, and all end there. [`Links`] carries the messages;
//! [`Threads`] are links between threads of one process.
mod agreement;
mod group;
mod halo;
mod job;
mod lengths;
mod links;
mod rank;
mod survey;
mod tally;
mod threads;

pub use group::Group;
pub use halo::{Halo, Part};
pub use links::Links;
pub use survey::{Share, Survey};
pub use tally::Tally;
pub use threads::Threads;
