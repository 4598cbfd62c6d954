//! A server's counters for Prometheus (OpenMetrics), served by a thread beside the server. The
//! thread reads only what the server publishes, never the server itself.

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use ethermem_http::{Asked, Endpoint, Limits, Reply};
use ethermem_kv::Statistics;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use tracing::warn;

const LOOK_EVERY: Duration = Duration::from_millis(100);
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Counters that a server publishes several times a second.
pub type Published = Arc<Mutex<Snapshot>>;

/// A server's counters at one moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    pub(crate) uptime: Duration,
    pub(crate) clients: u64,
    pub(crate) accepted: u64,
    pub(crate) refused: u64,
    pub(crate) protocol_errors: u64,
    pub(crate) timed_out: u64,
    pub(crate) wrong_passwords: u64,
    pub(crate) expired: u64,
    pub(crate) uncertain: u64,
    pub(crate) stores_lost: u64,
    pub(crate) store_ready: bool,
    /// Number of calls by command name.
    pub(crate) commands: Vec<(&'static str, u64)>,
    /// Statistics of the store, once they were read.
    pub(crate) statistics: Option<Statistics>,
}

/// The thread beside a server; dropping the value ends it.
#[derive(Debug)]
pub struct Observer {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    address: SocketAddr,
}

impl Observer {
    /// Starts answering at an address.
    ///
    /// # Errors
    /// When the address is not available, or no thread can be started.
    pub fn start(published: Published, listen: SocketAddr) -> Result<Observer, String> {
        let failed = |error| format!("metrics on {listen}: {error}");
        let mut endpoint = Endpoint::bind(listen, Limits::default()).map_err(failed)?;
        let address = endpoint.address().map_err(failed)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let run = move || {
            let mut registry = Registry::with_prefix("ethermem_kv");
            registry.register_collector(Box::new(Metrics(published)));
            while !stopped.load(Ordering::Relaxed) {
                if let Err(error) = endpoint.serve(LOOK_EVERY, |asked| answer(asked, &registry)) {
                    warn!(%error, "no more metrics: their socket failed");
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("observer".to_owned()).spawn(run);
        let thread = thread.map_err(|error| format!("no thread for metrics: {error}"))?;
        Ok(Observer { stop, thread: Some(thread), address })
    }

    /// The address at which it answers.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The panic hook has already reported a panic of that thread.
            let _ = thread.join();
        }
    }
}

fn answer(asked: Asked<'_>, registry: &Registry) -> Reply {
    if asked.path != "/metrics" {
        return Reply::refused(404, "the path must be /metrics");
    }
    let mut text = String::new();
    let encoded = prometheus_client::encoding::text::encode(&mut text, registry);
    encoded.expect("text takes any text");
    Reply::page(OPEN_METRICS, text)
}

struct Metrics(Published);

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let now = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for (name, help, value) in [
            ("connections_accepted", "Connections that were accepted", now.accepted),
            ("connections_refused", "Connections refused: too many, or no TLS", now.refused),
            ("connections_timed_out", "Connections that took too long", now.timed_out),
            ("protocol_errors", "Connections cut off for what they sent", now.protocol_errors),
            ("wrong_passwords", "Passwords that were wrong", now.wrong_passwords),
            ("expired_keys", "Keys dropped after their end", now.expired),
            ("uncertain", "Replies that said -UNCERTAIN", now.uncertain),
            ("stores_lost", "Stores lost with their memory node", now.stores_lost),
        ] {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            metric.encode_counter::<NoLabelSet, _, u64>(&value, None)?;
        }
        let help = "Commands that were executed";
        let mut family = encoder.encode_descriptor("commands", help, None, MetricType::Counter)?;
        for (name, count) in now.commands {
            let labels = [("command", name)];
            let mut metric = family.encode_family(&labels)?;
            metric.encode_counter::<NoLabelSet, _, u64>(&count, None)?;
        }
        let (ready, bytes) = (u8::from(now.store_ready), Some(&Unit::Bytes));
        let (uptime, clients) = (now.uptime.as_secs_f64(), now.clients as f64);
        let mut gauges = vec![
            ("uptime", Some(&Unit::Seconds), "Since the start", uptime),
            ("clients", None, "Clients that are connected", clients),
            ("store_ready", None, "1 while there is a store", ready.into()),
        ];
        if let Some(store) = now.statistics {
            gauges.extend([
                ("keys", None, "Keys of the store", store.keys as f64),
                ("heap", bytes, "Memory that records lie in", store.heap_bytes as f64),
                ("used", bytes, "Memory of records, or kept for some", store.used_bytes as f64),
            ]);
        }
        for (name, unit, help, value) in gauges {
            let mut metric = encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?;
            metric.encode_gauge(&value)?;
        }
        Ok(())
    }
}
