//! The C interface of Lacuna. `include/lacuna.h` says what each function does; the functions here turn pointers into what
//! `lacuna::dynamic` takes.
//!
//! Every function catches panics, and reads nothing of a pointer that is null. What a pointer that is not null points at is the
//! caller's to promise: handles of this library that are not freed, arrays as long as the header says.
mod callback;
mod device;
mod error;
mod matrix;
mod pointers;
mod report;
mod system;
mod text;
