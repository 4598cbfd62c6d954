//! `ethermem kv`.

mod flags;

use std::path::PathBuf;

use clap::Args;
use ethermem::Pool;
use ethermem_experiments::operate::server::ServerFile;
use ethermem_node::LogFormat;
use ethermem_resp::{Error, Observer, Server};
use sd_notify::NotifyState;

use self::flags::Flags;
use crate::failure::Failure;
use crate::{interrupt, logs};

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    ethermem kv --pool local: --listen 127.0.0.1:6379\n  \
    ethermem kv --pool 'sim:edm?nodes=16&load=0.4' --index node\n  \
    ethermem kv --pool udp://127.0.0.1:7400 --index node\n  \
    ethermem kv --config kv.toml --metrics-listen 127.0.0.1:7402\n  \
    redis-cli -p 6379 SET key value EX 60")]
pub(crate) struct Arguments {
    /// TOML file of the server's settings: each flag is a key, with _ for -. Flags override the
    /// file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    flags: Flags,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    interrupt::leaves("no client was served".to_owned());
    let file = arguments.config.as_deref().map_or(Ok(ServerFile::default()), ServerFile::read)?;
    let settings = arguments.flags.file().over(file);
    let options = settings.options()?;
    logs::to_stderr(tracing::Level::INFO, settings.log_format.unwrap_or(LogFormat::Text));
    for warning in settings.warnings() {
        tracing::warn!("{warning}");
    }
    let url = settings.pool.as_deref().unwrap_or("local:");
    let pool = Pool::open(url).map_err(|error| Failure::input(format!("--pool {url}: {error}")))?;
    if let Some(choice) = pool.choice() {
        crate::output::say(format_args!("{url}: {choice}"));
    }
    let mut server = Server::bind(&pool, options).map_err(|error| match error {
        Error::Store(error) => Failure::input(format!("--pool {url}: {error}")),
        error => Failure::input(error),
    })?;
    // The server has its own handle, and may replace this pool by a new one.
    drop(pool);
    let observe = |listen| Observer::start(server.published(), listen);
    let observer = settings.metrics_listen.map(observe).transpose().map_err(Failure::input)?;
    if let Some(observer) = &observer {
        crate::output::say(format_args!("metrics on {}", observer.address()));
    }
    crate::output::say(format_args!("{url} on {}, ready for clients", server.address()));
    logs::tell_manager(&[NotifyState::Ready]);
    let ended = server.run(interrupt::flag()).map_err(Failure::input);
    logs::tell_manager(&[NotifyState::Stopping]);
    ended
}
