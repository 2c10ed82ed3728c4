//! The three ways to read agree with a synthetic volume, for any number of workers, and survive
//! damage.

mod damage;
mod disk_order;
mod file_order;
mod limits;
mod load;
mod made_up;
mod random;
mod shared;
