//! Tests of the library as its users see it. One program, so that shared code is compiled once.
mod choices;
mod columns;
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
