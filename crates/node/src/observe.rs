//! The thread beside a node: it answers who asks how the node is, and logs what it drops. It looks
//! at what the node publishes, and never at the node.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ethermem_udp::Published;
use tiny_http::{Header, Method, Response, Server};
use tracing::{info, warn};

use crate::metrics::{self, Metrics};
use crate::status::{Status, dropped};

const LOOK_EVERY: Duration = Duration::from_millis(100);
const LOG_EVERY: Duration = Duration::from_secs(10);
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// See the module; ends with the value.
pub struct Observer {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    address: Option<SocketAddr>,
}

impl Observer {
    /// Begins to look, and to answer at `listen`. `names` are those of tenants, by number.
    ///
    /// # Errors
    /// The address cannot be had.
    pub fn start(
        published: Published,
        names: Vec<(u16, String)>,
        listen: Option<SocketAddr>,
    ) -> Result<Observer, String> {
        let bind = |address: SocketAddr| {
            Server::http(address).map_err(|error| format!("metrics on {address}: {error}"))
        };
        let server = listen.map(bind).transpose()?;
        let address = server.as_ref().and_then(|server| server.server_addr().to_ip());
        let stop = Arc::new(AtomicBool::new(false));
        let metrics = Metrics { published, names };
        let stopped = Arc::clone(&stop);
        let run = move || run(metrics, server.as_ref(), &stopped);
        let thread = std::thread::Builder::new().name("observer".to_owned()).spawn(run);
        let thread = thread.map_err(|error| format!("no thread for metrics: {error}"))?;
        Ok(Observer { stop, thread: Some(thread), address })
    }

    /// Where it answers.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic there was said there.
            let _ = thread.join();
        }
    }
}

fn run(metrics: Metrics, server: Option<&Server>, stop: &AtomicBool) {
    let names = metrics.names.clone();
    let own = Metrics { published: Arc::clone(&metrics.published), names };
    let registry = metrics::registry(metrics);
    let mut before = dropped(&own.snapshot());
    let mut logged = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        match server {
            Some(server) => {
                if let Ok(Some(request)) = server.recv_timeout(LOOK_EVERY) {
                    answer(request, &own, &registry);
                }
            }
            None => std::thread::sleep(LOOK_EVERY),
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

fn answer(
    request: tiny_http::Request,
    own: &Metrics,
    registry: &prometheus_client::registry::Registry,
) {
    let (status, kind, body) = match (request.method(), request.url()) {
        (Method::Get, "/metrics") => (200, OPEN_METRICS, metrics::text(registry)),
        (Method::Get, "/status") => {
            let status = Status::of(&own.snapshot(), &own.names);
            let json = serde_json::to_string(&status).expect("it has only names and numbers");
            (200, "application/json", json)
        }
        _ => (404, "text/plain", "GET /metrics or GET /status\n".to_owned()),
    };
    let kind = Header::from_bytes("Content-Type", kind).expect("it is ASCII");
    let response = Response::from_string(body).with_status_code(status).with_header(kind);
    if let Err(error) = request.respond(response) {
        info!(%error, "who asked for metrics went away");
    }
}
