//! `ethermem kv`.

use std::net::SocketAddr;

use clap::{Args, ValueEnum};
use ethermem::Pool;
use ethermem_kv::Index;
use ethermem_resp::{Options, Server};

use crate::failure::Failure;
use crate::interrupt;

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    ethermem kv --pool local: --listen 127.0.0.1:6379\n  \
    ethermem kv --pool 'sim:edm?nodes=16&load=0.4' --index node\n  \
    redis-cli -p 6379 SET key value EX 60")]
pub(crate) struct Arguments {
    /// Where keys and values are: the URL of a pool
    #[arg(long, value_name = "URL", default_value = "local:")]
    pool: String,
    /// Where to listen: an address and a port, 0 for any that is free
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:6379")]
    listen: SocketAddr,
    /// Who walks the index of keys
    #[arg(long, value_name = "WHO", default_value = "client")]
    index: Walker,
    /// Most clients at once
    #[arg(long, value_name = "COUNT", default_value_t = 10_000,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    clients_max: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Walker {
    /// The server, by reads and one compare-and-swap
    Client,
    /// The memory node, in one round trip
    Node,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let pool = Pool::open(&arguments.pool)
        .map_err(|error| Failure::input(format!("--pool {}: {error}", arguments.pool)))?;
    let index = match arguments.index {
        Walker::Client => Index::Client,
        Walker::Node => Index::Node,
    };
    let clients_max = arguments.clients_max as usize;
    let options = Options { listen: arguments.listen, index, clients_max };
    if let Some(choice) = pool.choice() {
        eprintln!("{}: {choice}", arguments.pool);
    }
    let mut server = Server::bind(&pool, options).map_err(Failure::input)?;
    eprintln!("{} on {}, ready for clients", arguments.pool, server.address());
    server.run(interrupt::flag()).map_err(Failure::input)
}
