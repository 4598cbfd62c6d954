//! `ethermem node`.

mod processes;
mod status;

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use bytesize::ByteSize;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use ethermem_clio::memory::PageSize;
use ethermem_node::{
    Control, LogFormat, LogLevel, NodeFile, Observer, OffloadFile, PAGES, Settings, SettingsError,
    StartError, Started, TenantFile, ring_place,
};
use ethermem_udp::RingPlace;
use sd_notify::NotifyState;
use tracing::info;

use crate::failure::Failure;
use crate::interrupt;
use crate::logs::{self, FORMS, tell_manager};
use crate::value::{one_of, size};

/// A draining node is idle after this time without a datagram: clients retransmit sooner.
const DRAINED_AFTER: Duration = Duration::from_millis(250);

const EXAMPLES: &str = "Examples:\n  \
    ethermem keygen --tenant 7 --out analytics.key\n  \
    ethermem node --memory 64GiB --listen 0.0.0.0:7400 --key analytics.key\n  \
    ethermem node --config node.toml\n  \
    ethermem node --memory 1GiB --insecure --offload histogram=histogram.wasm\n  \
    ethermem node status --metrics-address 127.0.0.1:7401\n  \
    ethermem node processes --control /run/ethermem/control\n  \
    ethermem node --memory 64MiB --listen 127.0.0.1:7400 --insecure\n  \
    ethermem node --memory 64GiB --ring eth0 --key analytics.key";

#[derive(Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: Serve,
}

#[derive(Subcommand)]
enum Command {
    /// Show the state of a running node
    Status(status::Arguments),
    /// List the processes of a node on this machine, or end one
    Processes(processes::Arguments),
}

#[derive(Args)]
struct Serve {
    /// TOML file of the node's settings; docs/reference/node.md lists its keys. Flags override the
    /// file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Memory to serve, in whole pages: a number of bytes, or one with a unit as in 64MiB
    #[arg(long, value_name = "SIZE", value_parser = size)]
    memory: Option<ByteSize>,
    /// Size of a page, the unit of allocation and protection; 64KiB by default
    #[arg(long, value_name = "SIZE", value_parser = page())]
    page: Option<PageSize>,
    /// Address and UDP port to listen on, 127.0.0.1:7400 by default; port 0 selects a free one
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// Interface to listen on for raw Ethernet frames, which needs CAP_NET_RAW; without --listen,
    /// UDP is then off. A port, 7400 by default, distinguishes nodes on one interface
    #[arg(long, value_name = "INTERFACE[:PORT]", value_parser = ring_place)]
    ring: Option<RingPlace>,
    /// Neither authenticate nor encrypt; then only loopback addresses and `--ring lo` are allowed
    #[arg(long)]
    insecure: bool,
    /// Serve the tenant with this key, made by `ethermem keygen`; may be repeated
    #[arg(long, value_name = "FILE")]
    key: Vec<PathBuf>,
    /// Load a WebAssembly module as an operation; may be repeated
    #[arg(long, value_name = "NAME=FILE", value_parser = offload)]
    offload: Vec<(String, OffloadFile)>,
    /// End a process whose client is silent for this many seconds, 60 by default, and free its
    /// memory; with 0, processes live until their clients end them
    #[arg(long, value_name = "SECONDS")]
    lease_s: Option<u64>,
    /// Sleep after this many milliseconds without a datagram, 1 by default. Until then one CPU is
    /// busy; afterwards a request waits for a wake-up
    #[arg(long, value_name = "MILLISECONDS")]
    poll_ms: Option<u64>,
    /// Serve /metrics for Prometheus and /status at this address and TCP port, in clear
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics_listen: Option<SocketAddr>,
    /// Let root and the node's own user list and end processes through this Unix socket, by
    /// `ethermem node processes`
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
    /// Format of the logs on the standard error; text by default
    #[arg(long, value_name = "FORMAT", value_parser = one_of(&FORMS))]
    log_format: Option<LogFormat>,
}

fn page() -> impl TypedValueParser<Value = PageSize> {
    PossibleValuesParser::new(PAGES.map(|(name, _)| name)).map(|name| {
        let found = PAGES.iter().find(|(known, _)| **known == name);
        found.expect("clap allows no other").1
    })
}

fn offload(text: &str) -> Result<(String, OffloadFile), String> {
    let named = text.split_once('=').filter(|(name, file)| !name.is_empty() && !file.is_empty());
    let (name, file) = named.ok_or("allowed is NAME=FILE, as in histogram=histogram.wasm")?;
    Ok((name.to_owned(), OffloadFile::of(file.into())))
}

impl Serve {
    /// The flags in the form of a file.
    fn flags(&self) -> NodeFile {
        // Such a tenant has no quotas, and the name of its file.
        let tenant = |path: &PathBuf| TenantFile::of(path.display().to_string(), path.clone());
        NodeFile {
            memory: self.memory,
            page: self.page,
            listen: self.listen,
            ring: self.ring.clone(),
            insecure: self.insecure.then_some(true),
            lease_s: self.lease_s,
            poll_ms: self.poll_ms,
            metrics_listen: self.metrics_listen,
            control: self.control.clone(),
            log_format: self.log_format,
            tenant: self.key.iter().map(tenant).collect(),
            offload: self.offload.iter().cloned().collect(),
            ..NodeFile::default()
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.command {
        Some(Command::Status(arguments)) => status::run(arguments),
        Some(Command::Processes(arguments)) => processes::run(arguments),
        None => serve(&arguments.serve),
    }
}

fn serve(arguments: &Serve) -> Result<(), Failure> {
    let settings = settings(arguments).map_err(|error| match error {
        SettingsError::Memory => Failure::input(format!("--memory is missing: {error}")),
        error => Failure::input(error),
    })?;
    log_to_stderr(&settings);
    let (name, index) = ethermem_kv::at_node();
    if settings.node.offloads.iter().any(|offload| offload.name == name) {
        return Err(Failure::input(StartError::OwnOffload(name.to_owned())));
    }
    let mut started = ethermem_node::start(&settings.node).map_err(|error| match error {
        StartError::NotSecure => Failure::input(format!("--key or --insecure is missing: {error}")),
        error => Failure::input(error),
    })?;
    started.server.node_mut().register(name, index);
    let tenants = &settings.node.tenants;
    let names = tenants.iter().map(|tenant| (tenant.key.tenant.0, tenant.name.clone()));
    let names: Vec<(u16, String)> = names.collect();
    let operator = started.server.operator();
    let control = settings.control.as_deref();
    let control = control.map(|path| Control::start(operator, names.clone(), path)).transpose();
    // It answers until the node has ended.
    let _control = control.map_err(Failure::input)?;
    let published = started.server.published();
    let observer = Observer::start(published, names, settings.metrics_listen);
    let observer = observer.map_err(Failure::input)?;
    let (address, ring) = (started.server.address(), started.server.ring());
    info!(
        address = address.map(tracing::field::display),
        ring = ring.as_ref().map(tracing::field::display),
        memory_bytes = settings.node.memory.0,
        memory = %started.backing,
        placement = started.placement,
        datagrams = %started.server.trains(),
        tenants = tenants.len(),
        modules = settings.node.offloads.len(),
        encrypted = !settings.node.insecure,
        metrics = observer.address().map(tracing::field::display),
        "serving"
    );
    let mut stdout = std::io::stdout();
    // The starting program may read no more than these lines.
    let lines = [
        address.map(|address| format!("listening on {address}\n")),
        ring.map(|ring| format!("listening on ring://{ring}\n")),
        observer.address().map(|metrics| format!("metrics on {metrics}\n")),
    ];
    let lines: String = lines.into_iter().flatten().collect();
    let _ = stdout.write_all(lines.as_bytes()).and_then(|()| stdout.flush());
    tell_manager(&[NotifyState::Ready]);
    until_the_end(started, &settings)
}

fn settings(arguments: &Serve) -> Result<Settings, SettingsError> {
    let names: Vec<&String> = arguments.offload.iter().map(|(name, _)| name).collect();
    if let Some(at) = (1..names.len()).find(|&at| names[..at].contains(&names[at])) {
        let problem = "it is given twice: each name must be given once".to_owned();
        return Err(SettingsError::Offload { name: names[at].clone(), problem });
    }
    let file = arguments.config.as_deref().map_or(Ok(NodeFile::default()), NodeFile::read)?;
    arguments.flags().over(file).settings()
}

fn log_to_stderr(settings: &Settings) {
    let level = match settings.log_level {
        LogLevel::Error => tracing::Level::ERROR,
        LogLevel::Warn => tracing::Level::WARN,
        LogLevel::Info => tracing::Level::INFO,
    };
    logs::to_stderr(level, settings.log_format);
}

/// Serves until a signal, and then drains.
fn until_the_end(started: Started, settings: &Settings) -> Result<(), Failure> {
    let mut server = started.server;
    // A draining node needs more time than other commands to end by itself.
    interrupt::patience(settings.drain_for + Duration::from_secs(1));
    let failed = |error| Failure::input(format!("the node's network: {error}"));
    server.run(settings.poll_for, interrupt::flag()).map_err(failed)?;
    tell_manager(&[NotifyState::Stopping]);
    info!(processes = server.node().processes(), "ending: no new processes");
    server.drain(settings.drain_for, DRAINED_AFTER).map_err(failed)?;
    // Freeing much memory takes seconds.
    interrupt::is_over();
    let (node, outside) = (server.node().counters(), server.counters());
    let memory = server.node().memory();
    info!(
        processes_left = server.node().processes(),
        bytes_left = memory.bytes() - memory.map().free_bytes(),
        requests = node.requests,
        datagrams = node.datagrams,
        executed = node.executed,
        repeated = node.repeated,
        busy = node.busy,
        expired = node.expired,
        dropped_malformed = node.dropped_malformed,
        dropped_protection = node.dropped_protection,
        dropped_key = node.dropped_corrupt,
        dropped_tenant = node.dropped_tenant,
        dropped_replayed = node.dropped_replayed,
        answers_dropped = outside.answers_dropped,
        "ended"
    );
    Ok(())
}
