//! Running programs and measuring what they take: their own time, their servers' time, and what
//! else went on; within a limit of processors, if there is one.

mod accounts;
mod invocation;
mod limit;
mod running;

pub use invocation::{Invocation, quoted};
pub use limit::{Confinement, Limit};
pub(crate) use running::telling_line;
pub use running::{Output, capture, run};
