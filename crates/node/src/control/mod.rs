//! Operators' access to a node: a Unix socket in the file system that lists the node's processes
//! and ends them. Operators are root on this machine and the node's own user; the kernel identifies
//! the user of a connection. No network packet reaches this code.
//!
//! A connection carries one question and one answer, each a line of JSON.

mod connection;
mod desk;
mod socket;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use ethermem_udp::Operator;
use serde::{Deserialize, Serialize};

use desk::Desk;
use socket::Bound;
pub use socket::{AskError, ask};

/// A question of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ControlQuestion {
    /// Lists the processes.
    Processes {},
    /// Ends a process.
    End {
        /// The tenant that owns it.
        tenant: u16,
        /// Number of the process.
        process: u32,
    },
}

/// The node's answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ControlAnswer {
    /// The processes, sorted by tenant and number.
    Processes(Vec<ProcessStatus>),
    /// True if the process existed; in any case it is ended now.
    Ended(bool),
    /// The reason for a refusal, as one line for people.
    Refused(String),
}

/// A process of a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProcessStatus {
    /// Number of the tenant.
    pub tenant: u16,
    /// Name of the tenant; empty if the node has none.
    pub tenant_name: String,
    /// Number of the process, unique within the tenant.
    pub process: u32,
    /// Allocated memory in bytes.
    pub memory_bytes: u64,
    /// Time since its creation in seconds.
    pub age_s: f64,
    /// Time in seconds since a message of its client; `None` for a process of the node itself.
    pub unheard_s: Option<f64>,
    /// Time in seconds until it ends if its client stays silent; `None` without a lease.
    pub lease_left_s: Option<f64>,
    /// `lives`, or `ending` while its memory is being freed.
    pub state: String,
}

/// Answers operators on a thread of its own. Dropping the value ends the thread and removes the
/// socket.
pub struct Control {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// Keeps the socket's name in the file system until the thread has ended.
    _bound: Bound,
}

impl Control {
    /// Starts answering at a path. `names` are tenants' names by number.
    ///
    /// # Errors
    /// One line for people: the path cannot be used, or another node has it.
    pub fn start(
        operator: Operator,
        names: Vec<(u16, String)>,
        path: &Path,
    ) -> Result<Control, String> {
        let failed = |error: std::io::Error| format!("control {}: {error}", path.display());
        let (listener, bound) = socket::bind(path).map_err(failed)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let mut desk = Desk::new(operator, names, listener);
        let run = move || desk.run(&stopped);
        let thread = std::thread::Builder::new().name("control".to_owned()).spawn(run);
        Ok(Control { stop, thread: Some(thread.map_err(failed)?), _bound: bound })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The panic hook has already reported a panic of the thread.
            let _ = thread.join();
        }
    }
}
