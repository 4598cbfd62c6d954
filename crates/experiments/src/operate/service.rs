//! A memory node as operators run it: with the key-value server's operation, its control socket,
//! its metrics and its log.

use std::io;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ethermem_node::{Control, Observer, Settings, StartError, Started};
use thiserror::Error;
use tracing::info;

/// A node that received nothing for so long has drained: clients retry sooner.
const DRAINED_AFTER: Duration = Duration::from_millis(250);

/// Why a memory node does not serve.
#[derive(Debug, Error)]
pub enum ServiceError {
    /// The node does not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The control socket or the endpoint of the metrics cannot be had.
    #[error("{0}")]
    Observe(String),
    /// The node's socket failed while it served.
    #[error("the node's network: {0}")]
    Network(io::Error),
}

/// A node that serves from [`Service::run`] on.
pub struct Service {
    started: Started,
    settings: Settings,
    observer: Observer,
    /// It answers until the node has ended.
    _control: Option<Control>,
}

/// A node that was told to end, and still answers what is in flight.
pub struct Draining(Service);

/// A node that has ended, and still holds its memory.
pub struct Drained(Service);

impl Service {
    /// Builds the node, registers the key-value server's operation, and logs that it serves.
    ///
    /// # Errors
    /// [`ServiceError::Start`] and [`ServiceError::Observe`].
    pub fn start(settings: Settings) -> Result<Service, ServiceError> {
        let (name, index) = ethermem_kv::at_node();
        if settings.node.offloads.iter().any(|offload| offload.name == name) {
            return Err(StartError::OwnOffload(name.to_owned()).into());
        }
        let mut started = ethermem_node::start(&settings.node)?;
        started.server.node_mut().register(name, index);
        let tenants = &settings.node.tenants;
        let names = tenants.iter().map(|tenant| (tenant.key.tenant.0, tenant.name.clone()));
        let names: Vec<(u16, String)> = names.collect();
        let operator = started.server.operator();
        let control = settings.control.as_deref();
        let control = control.map(|path| Control::start(operator, names.clone(), path));
        let control = control.transpose().map_err(ServiceError::Observe)?;
        let published = started.server.published();
        let observer = Observer::start(published, names, settings.metrics_listen);
        let observer = observer.map_err(ServiceError::Observe)?;
        let service = Service { started, settings, observer, _control: control };
        service.log_start();
        Ok(service)
    }

    fn log_start(&self) {
        let Service { started, settings, observer, .. } = self;
        let (address, ring) = (started.server.address(), started.server.ring());
        info!(
            address = address.map(tracing::field::display),
            ring = ring.as_ref().map(tracing::field::display),
            memory_bytes = settings.node.memory.0,
            memory = %started.backing,
            placement = started.placement,
            datagrams = %started.server.trains(),
            tenants = settings.node.tenants.len(),
            modules = settings.node.offloads.len(),
            encrypted = !settings.node.insecure,
            metrics = observer.address().map(tracing::field::display),
            "serving"
        );
    }

    /// Where the node and its metrics are reached, a line for each place.
    #[must_use]
    pub fn reached(&self) -> String {
        let server = &self.started.server;
        let lines = [
            server.address().map(|address| format!("listening on {address}\n")),
            server.ring().map(|ring| format!("listening on ring://{ring}\n")),
            self.observer.address().map(|metrics| format!("metrics on {metrics}\n")),
        ];
        lines.into_iter().flatten().collect()
    }

    /// Serves until `end` is set.
    ///
    /// # Errors
    /// [`ServiceError::Network`].
    pub fn run(mut self, end: &AtomicBool) -> Result<Draining, ServiceError> {
        let server = &mut self.started.server;
        server.run(self.settings.poll_for, end).map_err(ServiceError::Network)?;
        Ok(Draining(self))
    }
}

impl Draining {
    /// Answers what is in flight, and admits no new process, for at most the settings' `drain_for`.
    ///
    /// # Errors
    /// [`ServiceError::Network`].
    pub fn drain(mut self) -> Result<Drained, ServiceError> {
        let server = &mut self.0.started.server;
        info!(processes = server.node().processes(), "ending: no new processes");
        let drained = server.drain(self.0.settings.drain_for, DRAINED_AFTER);
        drained.map_err(ServiceError::Network)?;
        Ok(Drained(self.0))
    }
}

impl Drained {
    /// Logs what the node did and what it leaves.
    pub fn log(&self) {
        let server = &self.0.started.server;
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
    }
}
