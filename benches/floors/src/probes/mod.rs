//! What is measured: each probe starts its other end, measures, and stops it, every round anew, so
//! that no server that polls takes a CPU from the next probe.

pub(crate) mod node;
pub(crate) mod pool;
pub(crate) mod program;
pub(crate) mod relay;
pub(crate) mod store;
pub(crate) mod stream;
pub(crate) mod udp;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Child, Command};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use thiserror::Error;

use crate::measure::Round;

/// Which CPUs the two ends have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cpus {
    pub(crate) client: usize,
    pub(crate) server: usize,
}

/// Why there is no round.
#[derive(Debug, Error)]
pub(crate) enum ProbeError {
    /// The machine has not what it takes: skipped, which is no failure.
    #[error("{0}")]
    Lacking(String),
    /// It should have worked.
    #[error("{0}")]
    Failed(String),
}

impl From<io::Error> for ProbeError {
    fn from(error: io::Error) -> ProbeError {
        ProbeError::Failed(error.to_string())
    }
}

impl From<nix::Error> for ProbeError {
    fn from(error: nix::Error) -> ProbeError {
        ProbeError::Failed(error.to_string())
    }
}

/// Something that can be measured.
pub(crate) trait Probe {
    /// Measures so many samples.
    fn round(&self, cpus: Cpus, samples: u32) -> Result<Round, ProbeError>;
}

/// A process that ends with the value.
pub(crate) struct Server(pub(crate) Child);

impl Server {
    /// Starts it on a CPU: what it starts itself is there too.
    pub(crate) fn start(command: &mut Command, cpu: usize) -> Result<Server, ProbeError> {
        let _pinned = Pinned::on(cpu)?;
        Server::here(command)
    }

    /// Starts it on the CPUs of this thread.
    pub(crate) fn here(command: &mut Command) -> Result<Server, ProbeError> {
        let started = command.spawn();
        let program = command.get_program().to_string_lossy().into_owned();
        match started {
            Ok(child) => Ok(Server(child)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(ProbeError::Lacking(format!("{program} is not installed")))
            }
            Err(error) => Err(ProbeError::Failed(format!("{program}: {error}"))),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // One that has ended already is what is wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Keeps this thread on a CPU.
pub(crate) fn pin(cpu: usize) -> Result<(), ProbeError> {
    let mut set = CpuSet::new();
    let pinned = set.set(cpu).and_then(|()| sched_setaffinity(Pid::from_raw(0), &set));
    pinned.map_err(|error| ProbeError::Lacking(format!("CPU {cpu} cannot be used: {error}")))
}

/// Puts back what [`pin`] changed.
pub(crate) struct Pinned(CpuSet);

impl Pinned {
    pub(crate) fn on(cpu: usize) -> Result<Pinned, ProbeError> {
        let before = sched_getaffinity(Pid::from_raw(0))?;
        pin(cpu)?;
        Ok(Pinned(before))
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let _ = sched_setaffinity(Pid::from_raw(0), &self.0);
    }
}

/// A TCP port of the loopback interface that is free at this moment.
pub(crate) fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}
