//! The program as scripts meet it: what it prints where, and with which exit code it ends.

mod fixture;
mod packing;
mod reading;
mod signals;
mod usage;
