//! Latency of a page in a disaggregated datacenter.

use ethermem_sim::output::TableStyle;
pub use ethermem_study::ddc::Parameters;
use ethermem_study::ddc::{Column, csv, table};
use ethermem_units::Ps;
use serde::Serialize;

/// Default link rate in Gb/s: one of the study's.
pub const LINK_GBPS_DEFAULT: u64 = 40;

/// Parameters and the resulting columns, in printed order.
#[derive(Clone, Debug, Serialize)]
pub struct Budget {
    os_ns: f64,
    copy_ns: f64,
    copy_integrated_ns: f64,
    switch_ns: f64,
    propagation_ns_per_m: f64,
    inter_rack_m: f64,
    intra_rack_m: f64,
    page_bytes: u64,
    link_gbps: f64,
    columns: Vec<Column>,
}

impl Budget {
    /// Computes the budget of these parameters.
    #[must_use]
    pub fn of(parameters: &Parameters) -> Budget {
        Budget {
            os_ns: parameters.os.as_ns_f64(),
            copy_ns: parameters.copy.as_ns_f64(),
            copy_integrated_ns: parameters.copy_integrated.as_ns_f64(),
            switch_ns: parameters.switch.as_ns_f64(),
            propagation_ns_per_m: parameters.propagation_per_m.as_ns_f64(),
            inter_rack_m: parameters.inter_rack_m,
            intra_rack_m: parameters.intra_rack_m,
            page_bytes: parameters.page.0,
            link_gbps: parameters.link.as_gbps_f64(),
            columns: parameters.columns(),
        }
    }

    /// The columns as a table for people.
    #[must_use]
    pub fn text(&self, style: TableStyle) -> String {
        let (bytes, link) = (self.page_bytes, self.link_gbps);
        let table = table(&self.columns, style);
        format!("{bytes} B at {link} Gb/s, there and back, in us\n{table}")
    }

    /// The columns as CSV.
    #[must_use]
    pub fn csv(&self) -> String {
        csv(&self.columns)
    }
}

/// Parses a time of up to a second, to the picosecond.
///
/// # Errors
///
/// One line with what is allowed.
pub fn ns(text: &str) -> Result<Ps, String> {
    let ns = text.parse::<f64>().ok().filter(|ns| (0.0..=1e9).contains(ns));
    ns.and_then(Ps::from_ns_f64).ok_or_else(|| "must be 0 to 1000000000".to_owned())
}

/// Parses a length in m.
///
/// # Errors
///
/// One line with what is allowed.
pub fn metres(text: &str) -> Result<f64, String> {
    let metres = text.parse::<f64>().ok().filter(|metres| (0.0..=1e6).contains(metres));
    metres.ok_or_else(|| "must be 0 to 1000000".to_owned())
}
