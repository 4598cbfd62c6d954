//! `ethermem latency --ddc`: what a page costs in a disaggregated datacenter.

use clap::Args;
use ethermem_study::ddc::{Column, Parameters, csv, table};
use ethermem_units::{BitsPerSecond, Bytes, Ps};
use serde::Serialize;

use crate::failure::Failure;
use crate::output::RowFormat;
use crate::value::bytes_in;

/// A rate that the study has, where none is given.
const LINK_GBPS: u64 = 40;

#[derive(Args)]
#[command(next_help_heading = "Options of --ddc")]
pub(crate) struct DdcArguments {
    /// Operating system at one end, in ns; none with RDMA
    #[arg(long, value_name = "NS", default_value = "950", value_parser = ns, requires = "ddc")]
    os_ns: Ps,

    /// Copy between memory and network interface at one end, in ns
    #[arg(long, value_name = "NS", default_value = "1000", value_parser = ns, requires = "ddc")]
    copy_ns: Ps,

    /// The same with a network interface integrated with the CPU, in ns
    #[arg(long, value_name = "NS", default_value = "500", value_parser = ns, requires = "ddc")]
    copy_integrated_ns: Ps,

    /// Through one switch, in ns
    #[arg(long, value_name = "NS", default_value = "240", value_parser = ns, requires = "ddc")]
    switch_ns: Ps,

    /// Propagation in ns for each metre
    #[arg(long, value_name = "NS", default_value = "5", value_parser = ns, requires = "ddc")]
    propagation_ns_per_m: Ps,

    /// Length of a link between racks in m
    #[arg(long, value_name = "M", default_value = "40", value_parser = metres, requires = "ddc")]
    inter_rack_m: f64,

    /// Length of a link within a rack in m
    #[arg(long, value_name = "M", default_value = "4", value_parser = metres, requires = "ddc")]
    intra_rack_m: f64,

    /// Bytes of a page
    #[arg(long, value_name = "BYTES", default_value = "4096", requires = "ddc",
          value_parser = bytes_in(1..=1 << 30))]
    page_bytes: u64,
}

/// What is printed, in this order.
#[derive(Serialize)]
struct Budget<'a> {
    os_ns: f64,
    copy_ns: f64,
    copy_integrated_ns: f64,
    switch_ns: f64,
    propagation_ns_per_m: f64,
    inter_rack_m: f64,
    intra_rack_m: f64,
    page_bytes: u64,
    link_gbps: f64,
    columns: &'a [Column],
}

pub(crate) fn run(
    arguments: &DdcArguments,
    link_gbps: Option<u64>,
    format: RowFormat,
) -> Result<(), Failure> {
    let link = link_gbps.unwrap_or(LINK_GBPS);
    let parameters = Parameters {
        os: arguments.os_ns,
        copy: arguments.copy_ns,
        copy_integrated: arguments.copy_integrated_ns,
        switch: arguments.switch_ns,
        propagation_per_m: arguments.propagation_ns_per_m,
        inter_rack_m: arguments.inter_rack_m,
        intra_rack_m: arguments.intra_rack_m,
        page: Bytes(arguments.page_bytes),
        link: BitsPerSecond::from_gbps(link).map_err(Failure::input)?,
    };
    let columns = parameters.columns();
    let budget = Budget {
        os_ns: parameters.os.as_ns_f64(),
        copy_ns: parameters.copy.as_ns_f64(),
        copy_integrated_ns: parameters.copy_integrated.as_ns_f64(),
        switch_ns: parameters.switch.as_ns_f64(),
        propagation_ns_per_m: parameters.propagation_per_m.as_ns_f64(),
        inter_rack_m: parameters.inter_rack_m,
        intra_rack_m: parameters.intra_rack_m,
        page_bytes: parameters.page.0,
        link_gbps: parameters.link.as_gbps_f64(),
        columns: &columns,
    };
    let heading = format!("{} B at {link} Gb/s, there and back, in us", arguments.page_bytes);
    format.print(
        &budget,
        |budget, style| format!("{heading}\n{}", table(budget.columns, style)),
        |budget| csv(budget.columns),
    )
}

/// A time up to a second, to the picosecond.
fn ns(text: &str) -> Result<Ps, String> {
    let ns = text.parse::<f64>().ok().filter(|ns| (0.0..=1e9).contains(ns));
    ns.and_then(Ps::from_ns_f64).ok_or_else(|| "allowed are 0 to 1000000000".to_owned())
}

fn metres(text: &str) -> Result<f64, String> {
    let metres = text.parse::<f64>().ok().filter(|metres| (0.0..=1e6).contains(metres));
    metres.ok_or_else(|| "allowed are 0 to 1000000".to_owned())
}
