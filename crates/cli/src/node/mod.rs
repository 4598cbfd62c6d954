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
use ethermem_experiments::operate::service::{Service, ServiceError};
use ethermem_experiments::words::size;
use ethermem_node::{
    LogFormat, LogLevel, NodeFile, OffloadFile, PAGES, Settings, SettingsError, StartError,
    TenantFile, ring_place,
};
use ethermem_udp::RingPlace;
use sd_notify::NotifyState;

use crate::failure::Failure;
use crate::interrupt;
use crate::logs::{self, FORMS, tell_manager};
use crate::value::one_of;

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
    let (name, file) = named.ok_or("must be NAME=FILE, as in histogram=histogram.wasm")?;
    Ok((name.to_owned(), OffloadFile::of(file.into())))
}

impl Serve {
    /// The flags as if they were a file.
    fn flags(&self) -> NodeFile {
        // Without quotas, and named as its file.
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
        SettingsError::Memory => Failure::input(format!("--{error}")),
        error => Failure::input(error),
    })?;
    log_to_stderr(&settings);
    // A draining node needs longer than other commands do to end by themselves.
    interrupt::patience(settings.drain_for + Duration::from_secs(1));
    let service = Service::start(settings).map_err(|error| match error {
        ServiceError::Start(StartError::NotSecure) => {
            Failure::input(format!("--key or --insecure is missing: {error}"))
        }
        error => Failure::input(error),
    })?;
    let mut stdout = std::io::stdout();
    // Whoever starts it may read no more than these lines.
    let _ = stdout.write_all(service.reached().as_bytes()).and_then(|()| stdout.flush());
    tell_manager(&[NotifyState::Ready]);
    let draining = service.run(interrupt::flag()).map_err(Failure::input)?;
    tell_manager(&[NotifyState::Stopping]);
    let drained = draining.drain().map_err(Failure::input)?;
    // To give back much memory takes seconds.
    interrupt::is_over();
    drained.log();
    Ok(())
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
