//! Running programs and measuring what they take: their own time, their servers' time, and what else went on.

mod accounts;
mod invocation;
mod running;

pub use invocation::{Invocation, quoted};
pub use running::{Output, capture, run};
