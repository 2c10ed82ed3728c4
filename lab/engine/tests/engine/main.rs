//! The lab: its subjects on a small tree, its reports.

mod report;
mod subjects;
