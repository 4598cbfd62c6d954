//! The operators' way into a node: a Unix socket in the file system that lists the node's processes
//! and ends them. Operators are root on this machine and the node's own user; the kernel says which
//! user connects. No packet of the network leads here.
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

/// What an operator asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ControlQuestion {
    /// Which processes there are.
    Processes {},
    /// To end one.
    End {
        /// The tenant that owns it.
        tenant: u16,
        /// Its number.
        process: u32,
    },
}

/// What the node answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ControlAnswer {
    /// The processes, by tenant and number.
    Processes(Vec<ProcessStatus>),
    /// Whether the process lived. It is dead now.
    Ended(bool),
    /// Why there is no answer: one line for people.
    Refused(String),
}

/// A process of a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProcessStatus {
    /// The tenant's number.
    pub tenant: u16,
    /// The tenant's name; empty where the node has none.
    pub tenant_name: String,
    /// The process's number, unique within the tenant.
    pub process: u32,
    /// The memory that it has allocated.
    pub memory_bytes: u64,
    /// Time since it was made.
    pub age_s: f64,
    /// Time since its client was last heard; `None` for a process of the node's own.
    pub unheard_s: Option<f64>,
    /// Time until it ends if its client stays silent; `None` without a lease.
    pub lease_left_s: Option<f64>,
    /// `lives`, or `ending` while its memory is taken back.
    pub state: String,
}

/// Answers operators on a thread of its own. When the value is dropped, the thread ends and the
/// socket is removed.
pub struct Control {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// Keeps the name in the file system until the thread has ended.
    _bound: Bound,
}

impl Control {
    /// Begins to answer at a path. `names` are those of tenants, by number.
    ///
    /// # Errors
    /// One line for people: the path cannot be had, or another node has it.
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
            // A panic of the thread was printed there.
            let _ = thread.join();
        }
    }
}
