//! The thread beside a node: it answers requests for the node's state, and logs what the node
//! drops. It reads only what the node publishes, never the node itself.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ethermem_http::{Asked, Endpoint, Limits, Reply};
use ethermem_udp::Published;
use prometheus_client::registry::Registry;
use tracing::warn;

use crate::metrics::{self, Metrics};
use crate::status::{Status, dropped};

const LOOK_EVERY: Duration = Duration::from_millis(100);
const LOG_EVERY: Duration = Duration::from_secs(10);
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The observer's thread. Dropping the value ends the thread.
pub struct Observer {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    address: Option<SocketAddr>,
}

impl Observer {
    /// Starts observing, and answering at `listen`. `names` are tenants' names by number.
    ///
    /// # Errors
    /// When the address cannot be used.
    pub fn start(
        published: Published,
        names: Vec<(u16, String)>,
        listen: Option<SocketAddr>,
    ) -> Result<Observer, String> {
        let bind = |address: SocketAddr| {
            let bound = Endpoint::bind(address, Limits::default());
            let bound = bound.and_then(|endpoint| Ok((endpoint.address()?, endpoint)));
            bound.map_err(|error| format!("metrics on {address}: {error}"))
        };
        let (address, endpoint) = listen.map(bind).transpose()?.unzip();
        let stop = Arc::new(AtomicBool::new(false));
        let metrics = Metrics { published, names };
        let stopped = Arc::clone(&stop);
        let run = move || run(metrics, endpoint, &stopped);
        let thread = std::thread::Builder::new().name("observer".to_owned()).spawn(run);
        let thread = thread.map_err(|error| format!("no thread for metrics: {error}"))?;
        Ok(Observer { stop, thread: Some(thread), address })
    }

    /// Address at which it answers.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // The panic hook has already reported a panic of that thread.
            let _ = thread.join();
        }
    }
}

fn run(metrics: Metrics, mut endpoint: Option<Endpoint>, stop: &AtomicBool) {
    let names = metrics.names.clone();
    let own = Metrics { published: Arc::clone(&metrics.published), names };
    let registry = metrics::registry(metrics);
    let mut before = dropped(&own.snapshot());
    let mut logged = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        let served = match &mut endpoint {
            Some(endpoint) => endpoint.serve(LOOK_EVERY, |asked| answer(asked, &own, &registry)),
            None => {
                // Its end unparks it.
                std::thread::park_timeout(LOG_EVERY);
                Ok(())
            }
        };
        if let Err(error) = served {
            warn!(%error, "no more metrics: their socket failed");
            endpoint = None;
        }
        if logged.elapsed() >= LOG_EVERY {
            logged = Instant::now();
            let now = dropped(&own.snapshot());
            for ((reason, count), (_, known)) in now.into_iter().zip(before) {
                if count > known {
                    warn!(reason, count = count - known, "dropped datagrams");
                }
            }
            before = now;
        }
    }
}

fn answer(asked: Asked<'_>, own: &Metrics, registry: &Registry) -> Reply {
    match asked.path {
        "/metrics" => Reply::page(OPEN_METRICS, metrics::text(registry)),
        "/status" => {
            let status = Status::of(&own.snapshot(), &own.names);
            let json = serde_json::to_string(&status).expect("it has only names and numbers");
            Reply::page("application/json", json)
        }
        _ => Reply::refused(404, "the path must be /metrics or /status"),
    }
}
