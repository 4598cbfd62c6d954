//! F: datagrams each way over UDP, both ends busy polling; one at a time, or a window of them with
//! segmentation offload both ways.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{
    RcvBuf, RcvBufForce, SndBuf, SndBufForce, UdpGroSegment, UdpGsoSegment,
};

use super::{Cpus, Pinned, Probe, ProbeError, Server, pin};
use crate::measure::{Round, Samples};

/// Largest datagram, and so the largest group of segments.
pub(crate) const DATAGRAM_BYTES_MAX: usize = 65_507;
/// Segments of one send that every kernel with UDP_SEGMENT takes.
const SEGMENTS_MAX: usize = 64;
const BUFFER_BYTES: usize = 32 << 20;
/// Operations of a sample with a window.
const BATCH: u64 = 256;
/// A server that hears nothing for so long ends; a client gives up.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(10);
const LOST_AFTER: Duration = Duration::from_millis(200);
/// Looks at the clock only so often while it polls.
const SPINS_PER_LOOK: u32 = 1 << 14;
/// Names a datagram, so that a late one is not taken for the next.
const NUMBER_BYTES: usize = 4;

/// Bytes each way, and how many may be under way.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Exchange {
    /// Bytes of a request.
    #[arg(long, value_parser = clap::value_parser!(u16).range(4..=8192))]
    pub(crate) request_bytes: u16,
    /// Bytes of a response.
    #[arg(long, value_parser = clap::value_parser!(u16).range(4..=8192))]
    pub(crate) response_bytes: u16,
    /// Requests under way; over 1 with GSO and GRO.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) window: u16,
}

impl Exchange {
    fn request(self) -> usize {
        usize::from(self.request_bytes)
    }

    fn response(self) -> usize {
        usize::from(self.response_bytes)
    }
}

impl Probe for Exchange {
    fn round(&self, cpus: Cpus, samples: u32) -> Result<Round, ProbeError> {
        let (_server, address) = self.start_server(cpus.server)?;
        let _pinned = Pinned::on(cpus.client)?;
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        prepare(&socket)?;
        socket.connect(address)?;
        socket.set_read_timeout(Some(SILENCE_MAX))?;
        socket.send(&[0])?;
        socket.recv(&mut [0])?;
        socket.set_nonblocking(true)?;
        if self.window == 1 {
            self.one_by_one(&socket, samples)
        } else {
            segment(&socket, self.request())?;
            self.windowed(&socket, samples)
        }
    }
}

impl Exchange {
    fn start_server(self, cpu: usize) -> Result<(Server, SocketAddr), ProbeError> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("serve-udp").stdin(Stdio::null()).stdout(Stdio::piped());
        command.args(["--request-bytes", &self.request_bytes.to_string()]);
        command.args(["--response-bytes", &self.response_bytes.to_string()]);
        command.args(["--window", &self.window.to_string(), "--cpu", &cpu.to_string()]);
        let mut server = Server::start(&mut command, cpu)?;
        let mut line = String::new();
        let stdout = server.0.stdout.take().expect("its standard output is piped");
        BufReader::new(stdout).read_line(&mut line)?;
        let address = line.trim().parse();
        let address = address.map_err(|_| ProbeError::Failed("the UDP server ended".to_owned()))?;
        Ok((server, address))
    }

    fn one_by_one(self, socket: &UdpSocket, count: u32) -> Result<Round, ProbeError> {
        let mut samples = Samples::new();
        let mut request = vec![1; self.request()];
        let mut response = vec![0; DATAGRAM_BYTES_MAX];
        let warm = count / 10;
        for number in 0..count + warm {
            let name = number.to_le_bytes();
            request[..NUMBER_BYTES].copy_from_slice(&name);
            let start = Instant::now();
            socket.send(&request)?;
            loop {
                let bytes = poll(socket, &mut response, SILENCE_MAX)?;
                if bytes == self.response() && response[..NUMBER_BYTES] == name {
                    break;
                }
            }
            let took = start.elapsed();
            if number >= warm {
                samples.add(took);
            }
        }
        Ok(samples.one_by_one())
    }

    /// As many requests as the window has room for go in groups, whenever it has.
    fn windowed(self, socket: &UdpSocket, count: u32) -> Result<Round, ProbeError> {
        let mut samples = Samples::new();
        let window = u64::from(self.window);
        let request = vec![1; DATAGRAM_BYTES_MAX];
        let mut response = vec![0; DATAGRAM_BYTES_MAX];
        let (mut room, mut in_batch, mut taken) = (window, 0, 0);
        let (started, mut start) = (Instant::now(), Instant::now());
        while taken < count {
            send_groups(socket, &request, self.request(), room)?;
            room = match poll(socket, &mut response, LOST_AFTER) {
                Ok(bytes) => (bytes / self.response()) as u64,
                Err(error) if error.kind() == io::ErrorKind::TimedOut => window,
                Err(error) => return Err(error.into()),
            };
            if started.elapsed() > SILENCE_MAX {
                return Err(ProbeError::Failed("too few operations in ten seconds".to_owned()));
            }
            in_batch += room;
            if in_batch >= BATCH {
                let took = start.elapsed().as_nanos() as u64;
                samples.add_ns(took * BATCH / in_batch);
                (in_batch, start, taken) = (0, Instant::now(), taken + 1);
            }
        }
        Ok(samples.in_batches(BATCH))
    }
}

/// A datagram of 64 B each way at a time between two processes that sleep on their sockets.
pub(crate) struct Blocking;

impl Blocking {
    const BYTES: usize = 64;

    /// A round with both ends on this thread's CPUs.
    pub(crate) fn round(count: u32) -> Result<Round, ProbeError> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.set_read_timeout(Some(SILENCE_MAX))?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["serve-blocking", "--to", &socket.local_addr()?.to_string()]);
        let _server = Server::here(command.stdin(Stdio::null()))?;
        let mut bytes = [0; Blocking::BYTES];
        let (_, server) = socket.recv_from(&mut bytes)?;
        socket.connect(server)?;
        let (warm, mut samples) = (count / 10, Samples::new());
        for number in 0..count + warm {
            let start = Instant::now();
            socket.send(&bytes)?;
            socket.recv(&mut bytes)?;
            let took = start.elapsed();
            if number >= warm {
                samples.add(took);
            }
        }
        Ok(samples.one_by_one())
    }

    /// The other end, until its parent ends or is silent.
    pub(crate) fn serve(to: SocketAddr) -> Result<(), ProbeError> {
        set_pdeathsig(Signal::SIGKILL)?;
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.set_read_timeout(Some(SILENCE_MAX))?;
        socket.connect(to)?;
        let mut bytes = [0; Blocking::BYTES];
        socket.send(&bytes)?;
        loop {
            match socket.recv(&mut bytes).and_then(|_| socket.send(&bytes)) {
                Ok(_) => {}
                // The client has ended.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// The other end, until its parent ends or is silent.
pub(crate) fn serve(exchange: Exchange, cpu: usize) -> Result<(), ProbeError> {
    set_pdeathsig(Signal::SIGKILL)?;
    pin(cpu)?;
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    prepare(&socket)?;
    socket.set_read_timeout(Some(SILENCE_MAX))?;
    let mut stdout = io::stdout();
    writeln!(stdout, "{}", socket.local_addr()?)?;
    stdout.flush()?;
    let mut received = vec![0; DATAGRAM_BYTES_MAX];
    let (_, client) = socket.recv_from(&mut received)?;
    socket.connect(client)?;
    if exchange.window > 1 {
        segment(&socket, exchange.response())?;
    }
    socket.send(&[0])?;
    socket.set_nonblocking(true)?;
    let mut response = vec![2; DATAGRAM_BYTES_MAX];
    let mut answer = || -> io::Result<()> {
        let bytes = poll(&socket, &mut received, SILENCE_MAX)?;
        if exchange.window == 1 {
            response[..NUMBER_BYTES].copy_from_slice(&received[..NUMBER_BYTES]);
            return socket.send(&response[..exchange.response()]).map(drop);
        }
        let requests = (bytes / exchange.request()) as u64;
        send_groups(&socket, &response, exchange.response(), requests)
    };
    loop {
        match answer() {
            Ok(()) => {}
            // The client has what it wanted.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

/// So many segments, in as few sends as may be.
fn send_groups(socket: &UdpSocket, from: &[u8], each: usize, segments: u64) -> io::Result<()> {
    let per_send = (DATAGRAM_BYTES_MAX / each).min(SEGMENTS_MAX);
    let mut left = usize::try_from(segments).expect("no more than a window");
    while left > 0 {
        let now = left.min(per_send);
        match socket.send(&from[..now * each]) {
            Ok(_) => left -= now,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::hint::spin_loop(),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Polls for a datagram.
pub(crate) fn poll(socket: &UdpSocket, into: &mut [u8], patience: Duration) -> io::Result<usize> {
    let (mut spins, mut since) = (0_u32, None);
    loop {
        match socket.recv(into) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            other => return other,
        }
        std::hint::spin_loop();
        spins += 1;
        if spins.is_multiple_of(SPINS_PER_LOOK)
            && since.get_or_insert_with(Instant::now).elapsed() > patience
        {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "no datagram came"));
        }
    }
}

/// Room for a whole window; less where this process may not have it.
fn prepare(socket: &UdpSocket) -> Result<(), ProbeError> {
    if setsockopt(socket, RcvBufForce, &BUFFER_BYTES).is_err() {
        setsockopt(socket, RcvBuf, &BUFFER_BYTES)?;
    }
    if setsockopt(socket, SndBufForce, &BUFFER_BYTES).is_err() {
        setsockopt(socket, SndBuf, &BUFFER_BYTES)?;
    }
    Ok(())
}

/// What is sent is cut into datagrams of so many bytes, and received datagrams come joined.
fn segment(socket: &UdpSocket, bytes: usize) -> Result<(), ProbeError> {
    let lacking = |error| ProbeError::Lacking(format!("this kernel's UDP has no GSO: {error}"));
    let bytes = i32::try_from(bytes).expect("clap holds it to 8192");
    setsockopt(socket, UdpGsoSegment, &bytes).map_err(lacking)?;
    setsockopt(socket, UdpGroSegment, &true).map_err(lacking)
}
