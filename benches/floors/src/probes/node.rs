//! The memory node by itself: `ethermem node`'s own server, asked by a client that does no more
//! than write a request and take its answer. What a real client adds is not in it.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use ethermem_clio::memory::PageSize;
use ethermem_clio::node::Quota;
use ethermem_node::{NodeOptions, StartError, TenantOptions};
use ethermem_udp::seal::{ClientSeal, KeyFile, TenantKey};
use ethermem_udp::{BindError, Listen, RingPlace};
use ethermem_units::{Bytes, Ns};
use ethermem_wire::RmwOperation;
use ethermem_wire::clio::{
    ClioStatus, ENVELOPE_BYTES, Envelope, Epoch, Permissions, ProcessId, Protection, Reply,
    Request, RequestId, RequestPacket, ResponsePacket, SenderId, TenantId,
};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;

use super::relay::{Loss, Relay};
use super::udp::{DATAGRAM_BYTES_MAX, SILENCE_MAX, poll};
use super::{Cpus, Pinned, Probe, ProbeError, Server, pin};
use crate::measure::{Round, Samples};

/// Mapped when it is first used, so that short operations touch no more than before.
const MEMORY_BYTES: u64 = 160 << 20;
const REGION_BYTES: u64 = 1 << 20;
/// How long a datagram counts: results are kept as long, and must find room.
const LIFE: Ns = Ns(5_000_000);
const TENANT: TenantId = TenantId(1);
/// The default of `ethermem node`.
const POLL_FOR: Duration = Duration::from_millis(1);

/// One operation at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OneOperation {
    Read(u16),
    Write(u16),
    FetchAndAdd,
}

/// One operation of a node, in clear or encrypted at both ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeProbe {
    pub(crate) operation: OneOperation,
    pub(crate) encrypted: bool,
}

impl Probe for NodeProbe {
    fn round(&self, cpus: Cpus, count: u32) -> Result<Round, ProbeError> {
        let kind = NodeKind { encrypted: self.encrypted, loss: None, ring: false };
        let (_server, url) = start_server(Some(cpus.server), kind)?;
        let address = url.strip_prefix("udp://").and_then(|address| address.parse().ok());
        let address = address.expect("a node over UDP has an address");
        let _pinned = Pinned::on(cpus.client)?;
        let mut speaker = Speaker::connect(address, self.encrypted)?;
        let data = vec![7; DATAGRAM_BYTES_MAX];
        let (first, warm) = (speaker.region, count / 10);
        let mut samples = Samples::new();
        for at in 0..count + warm {
            // A quarter of a page on, as a program that walks its memory.
            let address = first + u64::from(at) * 1024 % (REGION_BYTES - 8192);
            let request = match self.operation {
                OneOperation::Read(bytes) => Request::Read { address, bytes: bytes.into() },
                OneOperation::Write(bytes) => {
                    Request::Write { address, data: &data[..usize::from(bytes)] }
                }
                OneOperation::FetchAndAdd => {
                    Request::Modify { address, operation: RmwOperation::FetchAndAdd(1) }
                }
            };
            let start = Instant::now();
            speaker.ask(&request, |reply| match reply {
                Reply::Bytes(_) | Reply::Done | Reply::Word(_) => Some(()),
                _ => None,
            })?;
            let took = start.elapsed();
            if at >= warm {
                samples.add(took);
            }
        }
        Ok(samples.one_by_one())
    }
}

/// What the memory node is started with, and the way to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeKind {
    pub(crate) encrypted: bool,
    pub(crate) loss: Option<Loss>,
    /// Over raw Ethernet on the loopback.
    pub(crate) ring: bool,
}

/// What a server's line begins with where the machine lacks something.
const LACKING: &str = "lacking ";

/// The server, and the URL of it as a pool. Without a CPU it has those of this thread, and polls as
/// long as `ethermem node` does.
pub(crate) fn start_server(
    cpu: Option<usize>,
    kind: NodeKind,
) -> Result<(Server, String), ProbeError> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("serve-node");
    if let Some(cpu) = cpu {
        command.args(["--cpu", &cpu.to_string()]);
    }
    command.args(kind.encrypted.then_some("--encrypted"));
    command.args(kind.ring.then_some("--ring"));
    if let Some(Loss { ppm, seed }) = kind.loss {
        command.args(["--loss-ppm", &ppm.to_string(), "--seed", &seed.to_string()]);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut server = match cpu {
        Some(cpu) => Server::start(&mut command, cpu)?,
        None => Server::here(&mut command)?,
    };
    let mut line = String::new();
    let stdout = server.0.stdout.take().expect("its standard output is piped");
    BufReader::new(stdout).read_line(&mut line)?;
    if let Some(reason) = line.trim().strip_prefix(LACKING) {
        return Err(ProbeError::Lacking(reason.to_owned()));
    }
    if line.is_empty() {
        return Err(ProbeError::Failed("the memory node ended".to_owned()));
    }
    Ok((server, line.trim().to_owned()))
}

/// The other end, until its parent ends. On a CPU of its own it never sleeps.
pub(crate) fn serve(cpu: Option<usize>, kind: NodeKind) -> Result<(), ProbeError> {
    set_pdeathsig(Signal::SIGKILL)?;
    cpu.map_or(Ok(()), pin)?;
    let poll_for = if cpu.is_some() { Duration::MAX } else { POLL_FOR };
    let defaults = NodeOptions::in_clear(Bytes(MEMORY_BYTES));
    let mut options = NodeOptions {
        page: if cpu.is_some() { PageSize::Kib4 } else { defaults.page },
        insecure: !kind.encrypted,
        tenants: if kind.encrypted { vec![tenant()] } else { Vec::new() },
        ..defaults
    };
    if kind.ring {
        // Other nodes may be on the same loopback.
        let port = 10_000 + (std::process::id() % 50_000) as u16;
        let place = RingPlace { interface: "lo".to_owned(), port, mac: None };
        options.listen = Listen { udp: None, ring: Some(place) };
    }
    let mut stdout = io::stdout();
    let mut server = match ethermem_node::start(&options) {
        Ok(started) => started.server,
        Err(StartError::Bind(error @ BindError::Ring(..))) => {
            return writeln!(stdout, "{LACKING}{error}").map_err(Into::into);
        }
        Err(error) => return Err(ProbeError::Failed(error.to_string())),
    };
    let (mut relay, mut url) = (None, String::new());
    if let Some(address) = server.address() {
        relay = kind.loss.map(|loss| Relay::before(address, loss)).transpose()?;
        let address = relay.as_ref().map_or(Ok(address), Relay::address)?;
        url = format!("udp://{address}");
    }
    if let Some(place) = server.ring() {
        url = format!("ring://{place}");
    }
    writeln!(stdout, "{url}")?;
    stdout.flush()?;
    let Some(relay) = &mut relay else {
        return server.run(poll_for, &AtomicBool::new(false)).map_err(Into::into);
    };
    let goes_on = || {
        relay.turn();
        false
    };
    server.run_asking(poll_for, goes_on).map_err(Into::into)
}

/// Both ends are this program's, and end with the round: what the key is changes nothing.
pub(crate) fn tenant() -> TenantOptions {
    let key = KeyFile { tenant: TENANT, key: TenantKey([1; 32]) };
    TenantOptions { name: "floors".to_owned(), key, quota: Quota::UNLIMITED }
}

struct Speaker {
    socket: UdpSocket,
    seal: Option<ClientSeal>,
    envelope: Envelope,
    process: ProcessId,
    region: u64,
    last: u64,
    datagram: Vec<u8>,
    answer: Vec<u8>,
}

impl Speaker {
    /// With a process and memory of its own.
    fn connect(address: SocketAddr, encrypted: bool) -> Result<Speaker, ProbeError> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.connect(address)?;
        socket.set_nonblocking(true)?;
        // The node is started for it alone.
        let sender = SenderId(1);
        let seal = encrypted.then(|| ClientSeal::new(TENANT, &tenant().key.key, sender));
        let envelope = Envelope {
            protection: if encrypted { Protection::Gcm } else { Protection::Carrier },
            tenant: if encrypted { TENANT } else { TenantId(0) },
            epoch: Epoch::UNKNOWN,
            sender,
            sequence: 0,
            clock: Ns::ZERO,
        };
        let (datagram, answer) = (vec![0; DATAGRAM_BYTES_MAX], vec![0; DATAGRAM_BYTES_MAX]);
        let (process, region, last) = (ProcessId(0), 0, 0);
        let mut speaker =
            Speaker { socket, seal, envelope, process, region, last, datagram, answer };
        speaker.envelope.epoch = speaker.ask(&Request::Hello, |reply| match reply {
            Reply::Facts(facts) => Some(facts.epoch),
            _ => None,
        })?;
        speaker.process = speaker.ask(&Request::CreateProcess, |reply| match reply {
            Reply::Created(process) => Some(*process),
            _ => None,
        })?;
        let permissions = Permissions::READ_WRITE;
        let allocate = Request::Allocate { bytes: REGION_BYTES, at: 0, permissions };
        speaker.region = speaker.ask(&allocate, |reply| match reply {
            Reply::Address(address) => Some(*address),
            _ => None,
        })?;
        Ok(speaker)
    }

    /// The answer to a request, as far as `take` wants it. Where the node had no time or room, the
    /// same is asked again.
    fn ask<T>(
        &mut self,
        body: &Request<'_>,
        take: impl Fn(&Reply<'_>) -> Option<T>,
    ) -> Result<T, ProbeError> {
        let acknowledged = RequestId(self.last);
        self.last += 1;
        let request = RequestId(self.last);
        for attempt in 0..u8::MAX {
            let process = self.process;
            let packet = RequestPacket { attempt, process, request, acknowledged, body: *body };
            self.envelope.sequence += 1;
            let front = self.envelope.emit(&mut self.datagram);
            let packet = packet.emit(&mut self.datagram[ENVELOPE_BYTES..]);
            let bytes = front.and_then(|front| Ok(front + packet?));
            let bytes = bytes.map_err(|error| ProbeError::Failed(error.to_string()))?;
            let bytes = bytes + self.envelope.protection.trailer_bytes();
            if let Some(seal) = &self.seal {
                let sealed = seal.seal(&mut self.datagram[..bytes]);
                sealed.map_err(|error| ProbeError::Failed(error.to_string()))?;
            }
            self.socket.send(&self.datagram[..bytes])?;
            let bytes = poll(&self.socket, &mut self.answer, SILENCE_MAX)?;
            let wrong = |what: String| Err(ProbeError::Failed(format!("{body:?}: {what}")));
            let answer = &mut self.answer[..bytes];
            let opened = match &mut self.seal {
                Some(seal) => seal.open(answer),
                None => Envelope::open(answer).ok(),
            };
            let Some(sealed) = opened else {
                return wrong("the answer is no datagram of the node".to_owned());
            };
            self.envelope.clock = sealed.envelope.clock.saturating_add(LIFE);
            let packets = &self.answer[sealed.packets];
            match ResponsePacket::packets(packets).next() {
                Some(Ok(ResponsePacket { request: answered, reply, .. }))
                    if answered == request =>
                {
                    if let Some(taken) = take(&reply) {
                        return Ok(taken);
                    }
                    if !matches!(reply.status(), ClioStatus::Busy | ClioStatus::Expired) {
                        return wrong(format!("{reply:?}"));
                    }
                }
                other => return wrong(format!("{other:?}")),
            }
        }
        Err(ProbeError::Failed(format!("{body:?}: refused too often")))
    }
}
