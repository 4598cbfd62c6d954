//! The thread that answers operators: it accepts connections, and passes questions to the node. A
//! peer delays neither the node nor another peer.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::os::fd::AsFd as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ethermem_clio::node::ProcessFacts;
use ethermem_udp::{NoAnswer, Operator};
use ethermem_units::Ns;
use ethermem_wire::clio::{ProcessId, TenantId};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use nix::unistd::{Uid, geteuid};
use tracing::{info, warn};

use super::connection::{Connection, PATIENCE};
use super::{ControlAnswer, ControlQuestion, ProcessStatus};

/// Time limit of the node for an answer, which it gives between datagrams.
pub(super) const NODE_PATIENCE: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Least time between two warnings.
const WARN_EVERY: Duration = Duration::from_secs(10);
/// Largest number of concurrent connections. Another one ends the oldest.
const CONNECTIONS_MAX: usize = 32;
/// Connections accepted before existing ones are polled. It is below [`CONNECTIONS_MAX`], so that a
/// question that arrives with its connection is answered before the connection can end.
const ACCEPT_AT_ONCE: usize = CONNECTIONS_MAX / 2;

/// The state of the thread that answers operators.
pub(super) struct Desk {
    operator: Operator,
    names: Vec<(u16, String)>,
    listener: UnixListener,
    /// Connections, the oldest first.
    connections: VecDeque<Connection<UnixStream>>,
    /// Last warning of the socket.
    warned: Option<Instant>,
}

impl Desk {
    pub(super) fn new(
        operator: Operator,
        names: Vec<(u16, String)>,
        listener: UnixListener,
    ) -> Desk {
        Desk { operator, names, listener, connections: VecDeque::new(), warned: None }
    }

    pub(super) fn run(&mut self, stop: &AtomicBool) {
        let mut accept_more = false;
        while !stop.load(Ordering::Relaxed) {
            if !accept_more {
                self.wait();
            }
            accept_more = self.accept();
            let mut connections = std::mem::take(&mut self.connections);
            let answer = |uid, question| self.answer(uid, question);
            connections.retain_mut(|peer| {
                // The kernel gave this user at the connection, and gives it again.
                let uid = peer_uid(peer.stream());
                uid.is_some_and(|uid| {
                    peer.advance(Instant::now(), &mut |question| answer(uid, question))
                })
            });
            self.connections = connections;
        }
    }

    /// Waits for a peer, for a deadline, or for the next check of the end.
    fn wait(&self) {
        let now = Instant::now();
        let next = self.connections.iter().map(Connection::until).min();
        let left = next.map_or(LOOK_EVERY, |until| until.saturating_duration_since(now));
        // The added millisecond prevents rounding down to a busy loop.
        let left = left.min(LOOK_EVERY) + Duration::from_millis(1);
        let mut fds = vec![PollFd::new(self.listener.as_fd(), PollFlags::POLLIN)];
        fds.extend(self.connections.iter().map(|peer| {
            let what = if peer.is_answering() { PollFlags::POLLOUT } else { PollFlags::POLLIN };
            PollFd::new(peer.stream().as_fd(), what)
        }));
        if poll(&mut fds, PollTimeout::try_from(left).unwrap_or(PollTimeout::ZERO)).is_err() {
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Accepts some connections, and returns whether there may be more.
    fn accept(&mut self) -> bool {
        for _ in 0..ACCEPT_AT_ONCE {
            match self.listener.accept() {
                Ok((stream, _)) => self.admit(stream),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    if self.warned.is_none_or(|at| at.elapsed() >= WARN_EVERY) {
                        self.warned = Some(Instant::now());
                        warn!(%error, "the operators' socket");
                    }
                    std::thread::sleep(LOOK_EVERY);
                    return false;
                }
            }
        }
        true
    }

    /// Admits an operator's connection; another user's is refused before its question is read.
    fn admit(&mut self, stream: UnixStream) {
        if stream.set_nonblocking(true).is_err() {
            return;
        }
        let Some(uid) = peer_uid(&stream) else { return };
        if !may_ask(Uid::from_raw(uid), geteuid()) {
            refuse(&stream, uid);
            return;
        }
        if self.connections.len() >= CONNECTIONS_MAX {
            self.connections.pop_front();
        }
        self.connections.push_back(Connection::new(stream, Instant::now()));
    }

    fn answer(&self, uid: u32, question: ControlQuestion) -> ControlAnswer {
        let answer = match question {
            ControlQuestion::Processes {} => {
                self.operator.processes(NODE_PATIENCE).map(|mut found| {
                    found.sort_unstable_by_key(|facts| (facts.tenant, facts.process));
                    ControlAnswer::Processes(found.iter().map(|facts| self.status(facts)).collect())
                })
            }
            ControlQuestion::End { tenant, process } => {
                let ended = self.operator.end(TenantId(tenant), ProcessId(process), NODE_PATIENCE);
                ended.map(|lived| {
                    info!(tenant, process, lived, uid, "an operator ends a process");
                    ControlAnswer::Ended(lived)
                })
            }
        };
        answer.unwrap_or_else(|error: NoAnswer| ControlAnswer::Refused(error.to_string()))
    }

    fn status(&self, facts: &ProcessFacts) -> ProcessStatus {
        let tenant = facts.tenant.0;
        let named = self.names.iter().find(|(number, _)| *number == tenant);
        let seconds = |ns: Ns| ns.0 as f64 / 1e9;
        ProcessStatus {
            tenant,
            tenant_name: named.map_or(String::new(), |(_, name)| name.clone()),
            process: facts.process.0,
            memory_bytes: facts.memory.0,
            age_s: seconds(facts.age),
            unheard_s: facts.unheard.map(seconds),
            lease_left_s: facts.lease_left.map(seconds),
            state: if facts.lives { "lives" } else { "ending" }.to_owned(),
        }
    }
}

/// Longest time that a client may have to wait for an answer.
pub(super) const ANSWER_WITHIN: Duration = PATIENCE.saturating_add(NODE_PATIENCE);

fn peer_uid(stream: &UnixStream) -> Option<u32> {
    getsockopt(stream, PeerCredentials).ok().map(|peer| peer.uid())
}

/// Root and the node's user can read the node's memory anyway.
fn may_ask(peer: Uid, own: Uid) -> bool {
    peer.is_root() || peer == own
}

fn refuse(mut stream: &UnixStream, uid: u32) {
    let problem = format!("user {uid}: must be root or the node's own user, {}", geteuid());
    let answer = serde_json::to_string(&ControlAnswer::Refused(problem));
    let answer = answer.expect("it has only text") + "\n";
    // The refusal fits the buffer of a new socket, and a disconnected peer does not need it.
    let _ = std::io::Write::write_all(&mut stream, answer.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_and_the_nodes_own_user_are_operators_and_no_other_user_is() {
        let (root, node, other) = (Uid::from_raw(0), Uid::from_raw(990), Uid::from_raw(65_534));
        assert!(may_ask(root, node) && may_ask(node, node) && may_ask(root, root));
        assert!(!may_ask(other, node) && !may_ask(other, root) && !may_ask(node, root));
    }
}
