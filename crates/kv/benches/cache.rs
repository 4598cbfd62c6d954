//! What the cache of a pool saves: hits beside reads of the memory node, and the key-value index
//! walked by a client, with and without a cache, in turn in each round.
//!
//! ```sh
//! cargo bench -p ethermem-kv --bench cache -- COMMAND [ROUNDS]
//! ```
//!
//! COMMAND is the program `ethermem`, whose memory node is started on the loopback.

use std::error::Error;
use std::hint::black_box;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use ethermem::{Permissions, Pool, Region};
use ethermem_kv::{Client, Config, Index, Store};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

type Failure = Box<dyn Error>;

/// Bytes of an access.
const BYTES: usize = 64;
const READS: usize = 10_000;
const HITS: usize = 100_000;
/// Number and length of the store's values: about 13 MB with their records.
const KEYS: u64 = 10_000;
const VALUE_BYTES: usize = 1000;
/// Requests of one measurement of the store, after every key was read once.
const REQUESTS: u64 = 20_000;
const CACHES: [Option<&str>; 3] = [None, Some("64MiB"), Some("4MiB")];
/// Percentage of updates among the requests.
const UPDATES: [u64; 3] = [0, 5, 50];

/// A memory node that ends with this program.
struct Node {
    process: Child,
    url: String,
}

impl Node {
    fn start(command: &str) -> Result<Node, Failure> {
        let mut process = Command::new(command)
            .args(["node", "--memory", "1GiB", "--listen", "127.0.0.1:0", "--insecure"])
            .stdout(Stdio::piped())
            .spawn()?;
        let out = process.stdout.take().ok_or("the node has no output")?;
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line)?;
        let address =
            line.strip_prefix("listening on ").and_then(|rest| rest.split([',', ' ']).next());
        let address = address.ok_or_else(|| format!("the node said {line:?}"))?.trim();
        let url = format!("udp://{address}");
        Ok(Node { process, url })
    }

    fn pool(&self, cache: Option<&str>) -> Result<Pool, Failure> {
        let cache = cache.map(|bytes| format!("?cache_bytes={bytes}")).unwrap_or_default();
        Ok(Pool::open(&format!("{}{cache}", self.url))?)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Median and 99th percentile in ns of one call, with what reading the clock takes.
fn percentiles(
    calls: usize,
    mut call: impl FnMut() -> Result<(), Failure>,
) -> Result<[f64; 2], Failure> {
    let mut times = Vec::with_capacity(calls);
    for _ in 0..calls {
        let began = Instant::now();
        call()?;
        times.push(began.elapsed().as_nanos() as u32);
    }
    times.sort_unstable();
    Ok([times[calls / 2], times[calls * 99 / 100]].map(f64::from))
}

/// The measured accesses of one round, each with its percentiles.
fn accesses(node: &Node) -> Result<Vec<(String, [f64; 2])>, Failure> {
    let mut rows = vec![("the clock alone".to_owned(), percentiles(HITS, || Ok(()))?)];
    let (plain, cached) = (node.pool(None)?, node.pool(Some("64MiB"))?);
    for (set, name) in [(16_u64 << 10, "16 KiB"), (16 << 20, "16 MiB")] {
        let region = |pool: &Pool| -> Result<Region, Failure> {
            let region = pool.thread()?.alloc(set, Permissions::READ_WRITE).wait()?;
            for at in (0..set).step_by(4096) {
                region.write_from(at, &[1; 4096])?;
            }
            Ok(region)
        };
        let (far, near) = (region(&plain)?, region(&cached)?);
        let mut draws = SplitMix64::seed_from_u64(1);
        let mut at = move || draws.next_u64() % (set / BYTES as u64) * BYTES as u64;
        let mut buffer = [0; BYTES];
        let mut read = |region: &Region, calls| {
            percentiles(calls, || Ok(region.read_into(at(), black_box(&mut buffer))?))
        };
        rows.push((format!("read, `udp://`, of {name}"), read(&far, READS)?));
        read(&near, HITS / 10)?;
        rows.push((format!("read, hit, of {name}"), read(&near, HITS)?));
        let mut draws = SplitMix64::seed_from_u64(2);
        let mut at = move || draws.next_u64() % (set / BYTES as u64) * BYTES as u64;
        let data = [7; BYTES];
        let mut write =
            |region: &Region, calls| percentiles(calls, || Ok(region.write_from(at(), &data)?));
        rows.push((format!("write, `udp://`, of {name}"), write(&far, READS)?));
        rows.push((format!("write, hit, of {name}"), write(&near, HITS)?));
    }
    Ok(rows)
}

async fn request(client: &mut Client, draws: &mut SplitMix64, updates: u64) -> Result<(), Failure> {
    let key = format!("user{}", draws.next_u64() % KEYS);
    if draws.next_u64() % 100 < updates {
        let value = vec![draws.next_u64() as u8; VALUE_BYTES];
        client.put(key.as_bytes(), &value).await?;
        return Ok(());
    }
    let value = client.read(key.as_bytes()).await?;
    let bytes = value.ok_or("a key is missing")?.bytes;
    // An update writes one octet throughout, so that a torn value would be seen.
    let is_whole = bytes.len() == VALUE_BYTES && bytes.iter().all(|octet| *octet == bytes[0]);
    if is_whole { Ok(()) } else { Err("a value is damaged".into()) }
}

/// Requests per second of one client of the store.
fn store(node: &Node, cache: Option<&str>, updates: u64) -> Result<f64, Failure> {
    let pool = node.pool(cache)?;
    let per_second = pool.run(async {
        let store = Store::create(&pool, Config { buckets: 32_768, ..Config::default() }).await?;
        let mut client = store.client(Index::Client);
        for key in 0..KEYS {
            client.put(format!("user{key}").as_bytes(), &[key as u8; VALUE_BYTES]).await?;
        }
        let mut draws = SplitMix64::seed_from_u64(updates + 3);
        for key in 0..KEYS {
            client.read(format!("user{key}").as_bytes()).await?;
        }
        let began = Instant::now();
        for _ in 0..REQUESTS {
            request(&mut client, &mut draws, updates).await?;
        }
        Ok::<f64, Failure>(REQUESTS as f64 / began.elapsed().as_secs_f64())
    })?;
    pool.close()?;
    Ok(per_second)
}

/// Median, least and most.
fn spread(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [values[values.len() / 2], values[0], values[values.len() - 1]]
}

fn main() -> Result<(), Failure> {
    // Cargo adds a flag of its own.
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
    let Some(command) = words.next() else {
        println!("SKIPPED: the program `ethermem`, whose memory node is used, is the argument");
        return Ok(());
    };
    let rounds: usize = words.next().map_or(Ok(5), |word| word.parse())?;
    let node = Node::start(&command)?;
    let mut measured: Vec<Vec<(String, [f64; 2])>> = Vec::new();
    let mut stores = vec![Vec::new(); CACHES.len() * UPDATES.len()];
    for _ in 0..rounds {
        measured.push(accesses(&node)?);
        for (at, updates) in UPDATES.into_iter().enumerate() {
            for (cache, size) in CACHES.into_iter().enumerate() {
                stores[at * CACHES.len() + cache].push(store(&node, size, updates)?);
            }
        }
    }
    println!("| {BYTES} B | p50, ns | p99, ns |\n|---|---|---|");
    for (at, (name, _)) in measured[0].iter().enumerate() {
        let of = |which: usize| spread(measured.iter().map(|round| round[at].1[which]).collect());
        let cells = [of(0), of(1)]
            .map(|[median, least, most]| format!("{median:.0} ({least:.0} to {most:.0})"));
        println!("| {name} | {} | {} |", cells[0], cells[1]);
    }
    println!(
        "\n| updates | no cache, requests/s | cache of 64 MiB | cache of 4 MiB |\n|---|---|---|---|"
    );
    for (at, updates) in UPDATES.into_iter().enumerate() {
        let cells = (0..CACHES.len()).map(|cache| {
            let [median, least, most] = spread(stores[at * CACHES.len() + cache].clone());
            format!("{:.0} k ({:.0} to {:.0})", median / 1e3, least / 1e3, most / 1e3)
        });
        println!("| {updates} % | {} |", cells.collect::<Vec<_>>().join(" | "));
    }
    Ok(())
}
