//! The floor of long operations: a TCP exchange of the same bytes between two processes, one at a
//! time, by blocking calls.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Instant;

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;

use super::udp::SILENCE_MAX;
use super::{ProbeError, Server};
use crate::measure::{Round, Samples};

/// A request has three 64-bit words, little endian: how many bytes follow it, how many the response
/// has, and where in the server's memory they are.
const REQUEST_BYTES: usize = 24;

/// One exchange: bytes of the request's body and of the response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    pub(crate) request_bytes: u64,
    pub(crate) response_bytes: u64,
    /// Exchanges walk through so much memory of the server.
    pub(crate) memory_bytes: u64,
}

impl Stream {
    /// A round with both ends on this thread's CPUs.
    pub(crate) fn round(self, count: u32) -> Result<Round, ProbeError> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["serve-stream", "--to", &listener.local_addr()?.to_string()]);
        command.args(["--memory-bytes", &self.memory_bytes.to_string()]);
        let _server = Server::here(command.stdin(Stdio::null()))?;
        let (mut stream, _) = listener.accept()?;
        prepare(&stream)?;
        let length = |bytes: u64| usize::try_from(bytes).expect("rows have at most 64 MiB");
        let mut request = vec![7; REQUEST_BYTES + length(self.request_bytes)];
        request[..8].copy_from_slice(&self.request_bytes.to_le_bytes());
        request[8..16].copy_from_slice(&self.response_bytes.to_le_bytes());
        let mut response = vec![0; length(self.response_bytes)];
        let (warm, mut samples) = (count / 10 + 1, Samples::new());
        for number in 0..count + warm {
            let longest = self.request_bytes.max(self.response_bytes);
            let place = u64::from(number) * longest % self.memory_bytes;
            request[16..REQUEST_BYTES].copy_from_slice(&place.to_le_bytes());
            let start = Instant::now();
            stream.write_all(&request)?;
            stream.read_exact(&mut response)?;
            let took = start.elapsed();
            if number >= warm {
                samples.add(took);
            }
        }
        Ok(samples.one_by_one())
    }
}

fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(SILENCE_MAX))
}

/// The other end, until its parent ends or is silent.
pub(crate) fn serve(to: SocketAddr, memory_bytes: usize) -> Result<(), ProbeError> {
    set_pdeathsig(Signal::SIGKILL)?;
    let mut stream = TcpStream::connect(to)?;
    prepare(&stream)?;
    // Every page is touched before the first request.
    let mut memory = vec![2; memory_bytes];
    loop {
        let mut request = [0; REQUEST_BYTES];
        match stream.read_exact(&mut request) {
            Ok(()) => {}
            // The client has what it wanted.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        let word = |at: usize| request[at..at + 8].try_into().map(u64::from_le_bytes);
        let word =
            |at| usize::try_from(word(at).expect("it has eight bytes")).unwrap_or(usize::MAX);
        let (body, response, place) = (word(0), word(8), word(16));
        if place.saturating_add(body.max(response)) > memory.len() {
            let asked = format!("asked for {body} and {response} bytes at {place}");
            return Err(ProbeError::Failed(asked));
        }
        stream.read_exact(&mut memory[place..place + body])?;
        stream.write_all(&memory[place..place + response])?;
    }
}
