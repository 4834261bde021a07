//! A program as data: its operations, what each reads and writes, and its tables for devices.
pub(crate) mod control;
pub mod encode;
pub mod lower;
pub(crate) mod operands;
pub(crate) mod operation;
pub(crate) mod program;
pub(crate) mod recorder;
pub(crate) mod recording;
pub(crate) mod steps;
pub(crate) mod triangle;
