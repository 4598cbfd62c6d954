//! `ethermem latency --ddc`: latency of a page in a disaggregated datacenter.

use clap::Args;
use ethermem_experiments::ddc::{Budget, LINK_GBPS_DEFAULT, Parameters, metres, ns};
use ethermem_experiments::words::bytes_in;
use ethermem_units::{BitsPerSecond, Bytes, Ps};

use crate::failure::Failure;
use crate::output::RowFormat;

#[derive(Args)]
#[command(next_help_heading = "Options of --ddc")]
pub(crate) struct DdcArguments {
    /// Time of the operating system at one end, in ns; none with RDMA
    #[arg(long, value_name = "NS", default_value = "950", value_parser = ns, requires = "ddc")]
    os_ns: Ps,

    /// Time to copy between memory and network interface at one end, in ns
    #[arg(long, value_name = "NS", default_value = "1000", value_parser = ns, requires = "ddc")]
    copy_ns: Ps,

    /// Copy time with a network interface integrated with the CPU, in ns
    #[arg(long, value_name = "NS", default_value = "500", value_parser = ns, requires = "ddc")]
    copy_integrated_ns: Ps,

    /// Time through one switch, in ns
    #[arg(long, value_name = "NS", default_value = "240", value_parser = ns, requires = "ddc")]
    switch_ns: Ps,

    /// Propagation time per metre, in ns
    #[arg(long, value_name = "NS", default_value = "5", value_parser = ns, requires = "ddc")]
    propagation_ns_per_m: Ps,

    /// Length of a link between racks in m
    #[arg(long, value_name = "M", default_value = "40", value_parser = metres, requires = "ddc")]
    inter_rack_m: f64,

    /// Length of a link within a rack in m
    #[arg(long, value_name = "M", default_value = "4", value_parser = metres, requires = "ddc")]
    intra_rack_m: f64,

    /// Size of a page in bytes
    #[arg(long, value_name = "BYTES", default_value = "4096", requires = "ddc",
          value_parser = bytes_in(1..=1 << 30))]
    page_bytes: u64,
}

pub(crate) fn run(
    arguments: &DdcArguments,
    link_gbps: Option<u64>,
    format: RowFormat,
) -> Result<(), Failure> {
    let link = link_gbps.unwrap_or(LINK_GBPS_DEFAULT);
    let budget = Budget::of(&Parameters {
        os: arguments.os_ns,
        copy: arguments.copy_ns,
        copy_integrated: arguments.copy_integrated_ns,
        switch: arguments.switch_ns,
        propagation_per_m: arguments.propagation_ns_per_m,
        inter_rack_m: arguments.inter_rack_m,
        intra_rack_m: arguments.intra_rack_m,
        page: Bytes(arguments.page_bytes),
        link: BitsPerSecond::from_gbps(link).map_err(Failure::input)?,
    });
    format.print(&budget, Budget::text, Budget::csv)
}
