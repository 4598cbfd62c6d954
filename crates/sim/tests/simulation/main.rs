//! The simulator as a whole: fabrics, engine, workload and statistics together.

mod contention;
mod support;
mod unloaded;
