//! Comparisons: points of a scenario, several fabrics on each, and published values beside them.
//!
//! A scenario with a table `[compare]` holds experiments, each with a few points: keys and their
//! values, by the axes of a [sweep](crate::sweep). This module does not know which threads run
//! them.

mod figures;
mod flows;
mod leads;
mod method;
mod order;
mod page;
mod picture;
mod plan;
mod rows;
mod values;

pub use flows::Counted;
pub use leads::{LEAD_MEASURES, Lead, leads, leads_rows, method_leads, method_leads_rows};
pub use method::{Denominator, PublishedMethod, Reads, Stop};
pub use order::{Order, Reversal};
pub use page::{Repeat, method_page, points_page, runs_page};
pub use plan::{ComparedPoint, Comparison, Experiment};
pub use rows::{ByMethod, Compared, Place, method_rows, points_rows};
pub use values::PublishedValues;
