//! The datagram handler of a node: it decides whether a request is executed at all.

use std::sync::Arc;

use ethermem_units::Ns;
use ethermem_wire::clio::{
    AcknowledgedIds, ClioOpcode, ClioStatus, Envelope, Epoch, Malformed, NodeFacts, PacketError,
    Packets, ProcessId, REQUEST_BYTES, RESPONSE_BYTES, Reply, Request, RequestId, RequestPacket,
    ResponsePacket, SenderId, TenantId,
};

use super::answers::{Answers, Data};
use super::config::{NodeConfig, NodeConfigError};
use super::processes::Processes;
use super::recent::{Known, Name, Outcome, Recent};
use super::runs::Runs;
use super::tenants::{Tenant, TenantUse, Tenants};
use crate::memory::{Footprint, VirtualMemory};
use crate::offload::{Offload, Offloads, Stop};

/// Maximum bytes of an answer without data.
const SHORT_ANSWER_BYTES: usize = RESPONSE_BYTES + 32;
/// Number of places checked for a lapsed lease at a time: the check may follow every datagram.
const SWEEP_PLACES: usize = 4;

/// The resource that a node lacked: the detail of [`ClioStatus::Busy`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Busy {
    /// No page is ready for a first touch.
    Pages = 1,
    /// There is no place to remember the request.
    Recent = 2,
    /// The answers of the datagram exceed one datagram.
    Answer = 3,
    /// There is no place for a process.
    Processes = 4,
    /// The node is about to end, and accepts no new process.
    Ending = 5,
    /// The operation has begun and not ended: a later copy of the request gets its result.
    Running = 6,
    /// Too many operations are in progress.
    Runs = 7,
    /// The requests exceed the rate of the tenant.
    Rate = 8,
    /// Another request is in progress on the range of this one.
    Held = 9,
}

impl Busy {
    pub(super) fn refused(self) -> Outcome {
        Outcome::Refused(ClioStatus::Busy, self as u64)
    }
}

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeCounters {
    /// Datagrams that arrived.
    pub datagrams: u64,
    /// Datagrams that could not be parsed, or are of another version.
    pub dropped_malformed: u64,
    /// Datagrams whose check failed.
    pub dropped_corrupt: u64,
    /// Encrypted datagrams that were duplicates.
    pub dropped_replayed: u64,
    /// Datagrams with another protection than the node requires.
    pub dropped_protection: u64,
    /// Datagrams of unknown tenants.
    pub dropped_tenant: u64,
    /// Requests that arrived, valid or not.
    pub requests: u64,
    /// Requests that were executed.
    pub executed: u64,
    /// Duplicates of executed requests, which were answered with the kept result.
    pub repeated: u64,
    /// Requests that were refused because they arrived after their deadline.
    pub expired: u64,
    /// Requests that were refused because a resource was used up.
    pub busy: u64,
    /// Requests over their tenant's rate.
    pub over_rate: u64,
    /// Requests to another epoch of the node.
    pub wrong_epoch: u64,
    /// Requests that were not executed, and whose refusal had no room in the answer.
    pub unanswered: u64,
    /// Processes whose lease ended.
    pub lapsed: u64,
    /// Slices of operations that take several.
    pub offload_slices: u64,
    /// Slices of requests of the slow path.
    pub slow_slices: u64,
    /// Operations that were stopped, by the number of their [`Stop`].
    pub offload_stopped: [u64; Stop::ALL.len()],
}

/// A memory node, as the module `node` describes it.
pub struct Node<B> {
    pub(super) config: NodeConfig,
    pub(super) memory: VirtualMemory<B>,
    pub(super) processes: Processes,
    pub(super) tenants: Tenants,
    pub(super) recent: Recent,
    pub(super) offloads: Offloads,
    pub(super) runs: Runs,
    pub(super) counters: NodeCounters,
    /// The sequence number of each tenant, since a tenant must not learn how many answers others
    /// get. The last number is for unknown tenants.
    sequences: Box<[u64]>,
    /// True if new processes are refused.
    pub(super) ending: bool,
    /// Where the data of the request in execution are.
    pub(super) data: Data,
}

/// The origin of a request.
pub(super) struct Arrived {
    pub(super) now: Ns,
    sender: SenderId,
    pub(super) tenant: Tenant,
    epoch: Epoch,
    /// The deadline of its datagram.
    until: Ns,
}

impl Arrived {
    /// The sender: its id is unique only within its tenant.
    fn who(&self) -> (Tenant, SenderId) {
        (self.tenant, self.sender)
    }

    /// The name of one of its requests.
    pub(super) fn name(&self, request: RequestId, opcode: ClioOpcode) -> Name {
        Name { tenant: self.tenant, sender: self.sender, request, opcode }
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Node<B> {
    /// A node whose memory is `bytes`, which must be zeros.
    ///
    /// # Errors
    /// [`NodeConfigError`].
    ///
    /// # Panics
    /// If the length of `bytes` is not the configured size.
    pub fn new(config: NodeConfig, bytes: B) -> Result<Node<B>, NodeConfigError> {
        config.check()?;
        let tenants = Tenants::new(&config.tenants);
        let (requests, lifetime) = (config.recent_requests, config.lifetime_max);
        let recent = Recent::new(requests, config.key, tenants.count(), lifetime);
        Ok(Node {
            memory: VirtualMemory::new(&config.memory, config.key, bytes)?,
            processes: Processes::new(
                config.processes_max,
                config.lease,
                tenants.count(),
                config.key,
            ),
            sequences: vec![0; tenants.count() + 1].into_boxed_slice(),
            tenants,
            offloads: Offloads::built_in(),
            runs: Runs::default(),
            recent,
            counters: NodeCounters::default(),
            data: Data::Here,
            ending: false,
            config,
        })
    }

    /// Counts since the start.
    #[must_use]
    pub fn counters(&self) -> NodeCounters {
        self.counters
    }

    /// Registers an operation that runs at the node; it replaces one with this name.
    pub fn register(&mut self, name: &str, offload: Arc<dyn Offload>) {
        self.offloads.add(name, offload);
    }

    /// Registers an operation for one tenant.
    pub fn register_for(&mut self, tenant: TenantId, name: &str, offload: Arc<dyn Offload>) {
        self.offloads.add_for(tenant, name, offload);
    }

    /// True if every tenant has an operation with this name.
    #[must_use]
    pub fn knows(&self, name: &str) -> bool {
        self.offloads.get(name).is_some()
    }

    /// The epoch of the node.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.config.epoch
    }

    /// The node's memory, to inspect.
    #[must_use]
    pub fn memory(&self) -> &VirtualMemory<B> {
        &self.memory
    }

    /// The use and the counters of each tenant.
    pub fn tenant_uses(&self) -> impl Iterator<Item = (TenantId, &TenantUse)> {
        self.tenants.uses()
    }

    /// Refuses new processes from now on; existing ones continue.
    pub fn take_no_more_processes(&mut self) {
        self.ending = true;
    }

    /// Number of live processes of clients.
    #[must_use]
    pub fn processes(&self) -> usize {
        self.processes.count() - self.runs.own_processes()
    }

    /// The memory that the node needs for itself: the page table, and everything else that the fast
    /// path may use.
    #[must_use]
    pub fn footprint(&self) -> Footprint {
        let mut footprint = self.memory.map().footprint();
        footprint.fast_path_bytes += self.processes.fast_path_bytes();
        footprint.fast_path_bytes += self.tenants.bytes() + self.recent.bytes();
        footprint
    }

    /// The envelope of the answer to a datagram. Its sequence number counts the answers to the
    /// tenant.
    pub fn answer_envelope(&mut self, now: Ns, asked: &Envelope) -> Envelope {
        let tenant = self.tenants.find(asked.tenant).map(|tenant| usize::from(tenant.index()));
        let sequence = &mut self.sequences[tenant.unwrap_or(self.tenants.count())];
        *sequence += 1;
        Envelope {
            protection: self.config.protection,
            tenant: asked.tenant,
            epoch: self.config.epoch,
            sender: self.config.sender,
            sequence: *sequence,
            clock: now,
        }
    }

    /// Processes the packets of a checked datagram. The packets of its answer are written into
    /// `into`. Returns their length.
    pub fn on_packets(
        &mut self,
        now: Ns,
        envelope: &Envelope,
        packets: &[u8],
        into: &mut [u8],
    ) -> usize {
        let mut answers = Answers::new(into);
        self.answer_packets(now, envelope, packets, &mut answers);
        answers.used
    }

    pub(super) fn answer_packets(
        &mut self,
        now: Ns,
        envelope: &Envelope,
        packets: &[u8],
        answers: &mut Answers<'_>,
    ) {
        let Some(arrived) = self.arrived(now, envelope) else { return };
        for packet in Packets::new(packets) {
            self.counters.requests += 1;
            match packet {
                Ok(packet) => self.on_request(&arrived, &packet, answers),
                Err(PacketError::Refused { request, attempt, opcode, problem }) => {
                    let status = match problem {
                        Malformed::Opcode(_) => ClioStatus::UnknownOpcode,
                        _ => ClioStatus::Malformed,
                    };
                    let reply = Reply::Refused(status, 0);
                    answers.put(&ResponsePacket { opcode, attempt, request, reply });
                }
                Err(PacketError::Truncated { .. }) => self.counters.dropped_malformed += 1,
            }
        }
        self.counters.unanswered += answers.left_out;
    }

    /// The origin of a datagram's requests; `None` if it has no right to any.
    pub(super) fn arrived(&mut self, now: Ns, envelope: &Envelope) -> Option<Arrived> {
        let Some(tenant) = self.tenants.find(envelope.tenant) else {
            self.counters.dropped_tenant += 1;
            return None;
        };
        let (sender, epoch, until) = (envelope.sender, envelope.epoch, envelope.clock);
        self.runs.datagram();
        Some(Arrived { now, sender, tenant, epoch, until })
    }

    pub(super) fn on_request(
        &mut self,
        arrived: &Arrived,
        packet: &RequestPacket<'_>,
        answers: &mut Answers<'_>,
    ) {
        let opcode = packet.body.opcode() as u8;
        let (attempt, request) = (packet.attempt, packet.request);
        let answer = |reply| ResponsePacket { opcode, attempt, request, reply };
        if packet.body.opcode() == ClioOpcode::Hello {
            return answers.put(&answer(Reply::Facts(self.facts())));
        }
        if let Some(refused) = self.refuse(arrived, packet) {
            return answers.put(&answer(refused.into()));
        }
        if packet.acknowledged != RequestId::NONE {
            self.recent.acknowledge(arrived.who(), packet.acknowledged, arrived.until);
        }
        match packet.body {
            Request::Acknowledge(ids) => self.acknowledge(arrived, ids),
            // The answer to a probe is as long as the probe.
            Request::Probe { padding } => {
                let zeros = usize::from(padding) + REQUEST_BYTES - RESPONSE_BYTES;
                answers.put(&answer(Reply::Padding(zeros as u16)));
            }
            Request::Read { address, bytes } => {
                self.read(arrived, packet, (address, bytes), answers)
            }
            Request::Offload { name, arguments } => {
                self.extend(arrived, packet, (name, arguments), answers);
            }
            _ => {
                let outcome = if answers.room() < SHORT_ANSWER_BYTES {
                    self.busy(Busy::Answer)
                } else {
                    self.once(arrived, packet)
                };
                answers.put(&answer(outcome.into()));
            }
        }
    }

    /// Checks that apply to all requests of a datagram, but are counted for each.
    fn refuse(&mut self, arrived: &Arrived, packet: &RequestPacket<'_>) -> Option<Outcome> {
        let Arrived { now, until, .. } = *arrived;
        if arrived.epoch != self.config.epoch {
            self.counters.wrong_epoch += 1;
            let epoch = self.config.epoch.0.into();
            return Some(Outcome::Refused(ClioStatus::WrongEpoch, epoch));
        }
        if now > until || until > now.saturating_add(self.config.lifetime_max) {
            self.counters.expired += 1;
            return Some(Outcome::Refused(ClioStatus::Expired, now.0));
        }
        // A copy of an executed request must not be refused, whatever the rate is.
        if !self.tenants.request(now, arrived.tenant) && !self.was_begun(arrived, packet) {
            self.tenants.over_rate(arrived.tenant);
            self.counters.over_rate += 1;
            return Some(Busy::Rate.refused());
        }
        None
    }

    /// True for a copy of a request that was executed, or is in progress.
    fn was_begun(&self, arrived: &Arrived, packet: &RequestPacket<'_>) -> bool {
        let name = arrived.name(packet.request, packet.body.opcode());
        let executed = matches!(self.recent.find(arrived.now, name), Known::Executed(..));
        executed || self.known_run(name).is_some()
    }

    fn acknowledge(&mut self, arrived: &Arrived, ids: AcknowledgedIds<'_>) {
        ids.iter().for_each(|id| self.recent.acknowledge(arrived.who(), id, arrived.until));
    }

    /// Reads directly into the answer, or leaves the bytes in memory for the carrier.
    fn read(
        &mut self,
        arrived: &Arrived,
        packet: &RequestPacket<'_>,
        (address, bytes): (u64, u32),
        answers: &mut Answers<'_>,
    ) {
        let (attempt, request) = (packet.attempt, packet.request);
        let opcode = ClioOpcode::Read as u8;
        let refused =
            |outcome: Outcome| ResponsePacket { opcode, attempt, request, reply: outcome.into() };
        let process = self.processes.heard(arrived.now, packet.process, arrived.tenant);
        let Some(space) = process else {
            return answers.put(&refused(no_such_process(packet.process)));
        };
        let most = self.config.data_bytes_max;
        if bytes == 0 || bytes > most {
            let status = ClioStatus::BadLength;
            return answers.put(&refused(Outcome::Refused(status, most.into())));
        }
        let whole = RESPONSE_BYTES + bytes as usize;
        if answers.room() < whole {
            let outcome = self.busy(Busy::Answer);
            return answers.put(&refused(outcome));
        }
        match answers.read(&mut self.memory, (space, address, bytes), (attempt, request)) {
            Ok(()) => {
                self.counters.executed += 1;
                self.tenants.executed(arrived.tenant, ClioOpcode::Read);
                self.tenants.read(arrived.tenant, bytes.into());
            }
            Err(error) => {
                let outcome = self.access_refused(error);
                answers.put(&refused(outcome));
            }
        }
    }

    /// Executes a request other than a read, once if it changes something.
    fn once(&mut self, arrived: &Arrived, packet: &RequestPacket<'_>) -> Outcome {
        let opcode = packet.body.opcode();
        if opcode.is_repeatable() {
            return self.execute(arrived, packet);
        }
        let name = arrived.name(packet.request, opcode);
        if let Some(Err(outcome)) = self.known_run(name) {
            // The client is alive, however long the request takes.
            self.processes.heard(arrived.now, packet.process, arrived.tenant);
            return outcome;
        }
        let place = match self.recent.find(arrived.now, name) {
            Known::Executed(outcome, _) => {
                self.counters.repeated += 1;
                return outcome;
            }
            Known::Reused => return Outcome::Refused(ClioStatus::Malformed, 0),
            Known::Full => return self.busy(Busy::Recent),
            Known::New(place) => place,
        };
        let outcome = self.execute(arrived, packet);
        // A request refused for lack of room had no effect, and may be retried.
        if !matches!(outcome, Outcome::Refused(ClioStatus::Busy, _)) {
            let until = arrived.now.saturating_add(self.config.keep);
            self.recent.keep(place, name, until, outcome);
        }
        outcome
    }

    fn execute(&mut self, arrived: &Arrived, packet: &RequestPacket<'_>) -> Outcome {
        let (now, tenant, opcode) = (arrived.now, arrived.tenant, packet.body.opcode());
        let outcome = if packet.body == Request::CreateProcess {
            self.create_process(now, tenant)
        } else {
            let Some(space) = self.processes.heard(now, packet.process, tenant) else {
                return no_such_process(packet.process);
            };
            let name = arrived.name(packet.request, opcode);
            self.dispatch(now, (name, (space, packet.process, tenant)), &packet.body)
        };
        // A request refused for lack of room had no effect.
        let is_busy = matches!(outcome, Outcome::Refused(ClioStatus::Busy, _));
        self.counters.executed += u64::from(!is_busy);
        match outcome {
            Outcome::Refused(ClioStatus::Quota, _) => self.tenants.over_quota(tenant),
            Outcome::Refused(..) => {}
            _ => self.tenants.executed(tenant, opcode),
        }
        if let (Request::Write { data, .. }, Outcome::Done) = (&packet.body, &outcome) {
            self.tenants.written(tenant, self.data.bytes(data) as u64);
        }
        outcome
    }

    pub(super) fn busy(&mut self, what: Busy) -> Outcome {
        self.counters.busy += 1;
        what.refused()
    }

    fn facts(&self) -> NodeFacts {
        NodeFacts {
            epoch: self.config.epoch,
            page_bytes: self.config.memory.page.bytes() as u32,
            data_bytes_max: self.config.data_bytes_max,
            lifetime_us_max: u32::try_from(self.config.lifetime_max.0 / 1000).unwrap_or(u32::MAX),
            memory: self.config.memory.memory,
            lease_ms: self.config.lease.0 / 1_000_000,
        }
    }

    /// Does a bounded part of the deferred work, to be called between datagrams. It prepares
    /// about `budget_bytes` of pages. It also runs one slice of an operation, of a slow-path
    /// request, or of the end of a process whose lease is over. Returns whether more work is left.
    pub fn tend(&mut self, now: Ns, budget_bytes: u64) -> bool {
        self.memory.refill(budget_bytes);
        let ends = self.end_dead(now, SWEEP_PLACES);
        self.run_slice(now);
        ends || self.runs.wait_for_work() || self.memory.map().wants_refill()
    }

    /// True if an operation or request waits for its next slice, which [`Node::tend`] runs.
    #[must_use]
    pub fn runs_wait(&self) -> bool {
        self.runs.wait_for_work()
    }

    /// Checks all processes, and begins to take back what a dead one has. Returns whether there was
    /// one. Call it before a sleep: a sleeping caller runs [`Node::tend`], which checks a few
    /// places, too seldom.
    pub fn sweep(&mut self, now: Ns) -> bool {
        let ends = self.end_dead(now, usize::MAX);
        if ends {
            self.run_slice(now);
        }
        ends
    }
}

pub(super) fn no_such_process(process: ProcessId) -> Outcome {
    Outcome::Refused(ClioStatus::NoSuchProcess, process.0.into())
}
