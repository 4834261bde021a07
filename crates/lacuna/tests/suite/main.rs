//! The library as its users see it; one program, so that what they share is compiled once.
mod faults;
mod honest;
mod interface;
mod least_squares;
mod new_values;
mod order;
mod own_method;
mod real;
mod refine;
mod vectors;
