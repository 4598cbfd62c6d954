//! `ethermem node`.

use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytesize::ByteSize;
use clap::{Args, ValueEnum};
use ethermem_clio::memory::PageSize;
use ethermem_clio::node::Quota;
use ethermem_node::{NodeOptions, StartError, TenantOptions};
use ethermem_udp::seal::KeyFile;
use ethermem_units::Bytes;

use crate::failure::Failure;
use crate::interrupt;

const EXAMPLES: &str = "Examples:\n  \
    ethermem keygen --tenant 7 --out analytics.key\n  \
    ethermem node --memory 64GiB --listen 0.0.0.0:7400 --key analytics.key\n  \
    ethermem node --memory 64MiB --listen 127.0.0.1:7400 --insecure";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Memory to serve, in whole pages: bytes, or with a unit as in 64MiB
    #[arg(long, value_name = "SIZE")]
    memory: ByteSize,
    /// Size of a page: what is allocated and protected as one
    #[arg(long, value_name = "SIZE", default_value = "64KiB")]
    page: Page,
    /// Address and UDP port to answer on; port 0 is any that is free
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7400")]
    listen: SocketAddr,
    /// Neither authenticate nor encrypt; only loopback addresses are allowed then
    #[arg(long)]
    insecure: bool,
    /// Serve the tenant whose key this is, made by `ethermem keygen`; may be repeated
    #[arg(long, value_name = "FILE")]
    key: Vec<PathBuf>,
    /// End a process that is not heard of for so many seconds, and take its memory back; without
    /// it, processes live until their clients end them
    #[arg(long, value_name = "SECONDS")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    lease_s: Option<u64>,
    /// Go to sleep after so many milliseconds without a datagram: until then one CPU is busy, and
    /// after it a request waits for a wake-up
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 1)]
    poll_ms: u64,
}

#[derive(Clone, Copy, ValueEnum)]
enum Page {
    #[value(name = "4KiB")]
    Kib4,
    #[value(name = "64KiB")]
    Kib64,
    #[value(name = "2MiB")]
    Mib2,
    #[value(name = "4MiB")]
    Mib4,
}

impl From<Page> for PageSize {
    fn from(page: Page) -> PageSize {
        match page {
            Page::Kib4 => PageSize::Kib4,
            Page::Kib64 => PageSize::Kib64,
            Page::Mib2 => PageSize::Mib2,
            Page::Mib4 => PageSize::Mib4,
        }
    }
}

/// Without quotas, and named as its file.
fn tenant(path: &Path) -> Result<TenantOptions, Failure> {
    let key = KeyFile::read(path).map_err(Failure::input)?;
    Ok(TenantOptions { name: path.display().to_string(), key, quota: Quota::UNLIMITED })
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let options = NodeOptions {
        memory: Bytes(arguments.memory.as_u64()),
        page: arguments.page.into(),
        listen: arguments.listen,
        insecure: arguments.insecure,
        tenants: arguments.key.iter().map(|path| tenant(path)).collect::<Result<_, _>>()?,
        lease: arguments.lease_s.map(Duration::from_secs),
    };
    let started = ethermem_node::start(&options);
    let mut server = started.map_err(|error| match error {
        StartError::NotSecure => Failure::input(format!("--key or --insecure is missing: {error}")),
        error => Failure::input(error),
    })?;
    let (name, index) = ethermem_kv::at_node();
    server.node_mut().register(name, index);
    let address = server.address().map_err(Failure::input)?;
    let mut stdout = std::io::stdout();
    // Whoever starts it may read no more than this line.
    let _ = writeln!(stdout, "listening on {address}").and_then(|()| stdout.flush());
    let poll_for = Duration::from_millis(arguments.poll_ms);
    let ended = server.run(poll_for, interrupt::flag());
    ended.map_err(|error| Failure::input(format!("{address}: {error}")))?;
    let (node, outside) = (server.node().counters(), server.counters());
    eprintln!(
        "ended: {} requests in {} datagrams, {} executed, {} repeated, {} busy, {} expired; \
         dropped: {} malformed, {} of another protection, {} of another key, {} of no tenant, \
         {} copies, {} answers",
        node.requests,
        node.datagrams,
        node.executed,
        node.repeated,
        node.busy,
        node.expired,
        node.dropped_malformed,
        node.dropped_protection,
        node.dropped_corrupt,
        node.dropped_tenant,
        node.dropped_replayed,
        outside.answers_dropped,
    );
    Ok(())
}
