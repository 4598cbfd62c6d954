//! `ethermem node status`.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use ethermem_experiments::operate::status::table;
use ethermem_node::Status;

use crate::failure::Failure;
use crate::output::Format;

/// A node that does not respond within this time counts as absent.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Args)]
#[command(after_help = "Example:\n  \
    ethermem node status --metrics-address 127.0.0.1:7401")]
pub(super) struct Arguments {
    /// Address of the node's metrics: its --metrics-listen
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics_address: SocketAddr,
    /// Format of the status
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let url = format!("http://{}/status", arguments.metrics_address);
    let agent = ureq::Agent::new_with_config(
        ureq::Agent::config_builder().timeout_global(Some(PATIENCE)).proxy(None).build(),
    );
    let failed = |error: &dyn std::fmt::Display| {
        Failure::input(format!("--metrics-address: {url}: {error}; must be a node's"))
    };
    let answer = agent.get(&url).call();
    let text = answer.and_then(|mut answer| answer.body_mut().read_to_string());
    let text = text.map_err(|error| failed(&error))?;
    let status: Status = serde_json::from_str(&text).map_err(|error| failed(&error))?;
    arguments.format.print(&status, table)
}
