//! Peers: one connection to redis or memcached, and redis under its own benchmark.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::unistd::geteuid;

use super::{Cpus, Pinned, Probe, ProbeError, Server, free_address};
use crate::measure::{Round, Samples};

const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Store {
    Redis,
    Memcached,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    Set,
}

/// One operation at a time over one connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OneConnection {
    pub(crate) store: Store,
    pub(crate) verb: Verb,
    pub(crate) value_bytes: usize,
    /// Both ends on the client's CPU and the client asleep while it waits: the best that a server
    /// which sleeps can do on few CPUs. Otherwise each has its own, and the client polls.
    pub(crate) one_cpu: bool,
}

/// `redis-benchmark` with 50 connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RedisBenchmark {
    pub(crate) value_bytes: usize,
    pub(crate) pipeline: u32,
}

impl Store {
    fn start(self, cpu: usize) -> Result<(Server, SocketAddr), ProbeError> {
        let address = free_address()?;
        let port = address.port().to_string();
        let mut command = match self {
            Store::Redis => {
                let mut command = Command::new("redis-server");
                command.args(["--port", &port, "--bind", "127.0.0.1", "--save", ""]);
                command.args(["--appendonly", "no", "--daemonize", "no"]);
                command
            }
            Store::Memcached => {
                let mut command = Command::new("memcached");
                command.args(["-l", "127.0.0.1", "-p", &port, "-U", "0", "-t", "1", "-m", "64"]);
                if geteuid().is_root() {
                    command.args(["-u", "nobody"]);
                }
                command
            }
        };
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok((Server::start(&mut command, cpu)?, address))
    }

    /// A request and how many bytes answer it.
    fn message(self, verb: Verb, value_bytes: usize) -> (Vec<u8>, usize) {
        let value = vec![b'x'; value_bytes];
        let digits = value_bytes.to_string().len();
        let with_value = |head: String| [head.as_bytes(), &value, b"\r\n"].concat();
        match (self, verb) {
            (Store::Redis, Verb::Get) => {
                let request = b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n".to_vec();
                (request, "$\r\n\r\n".len() + digits + value_bytes)
            }
            (Store::Redis, Verb::Set) => {
                let head = format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${value_bytes}\r\n");
                (with_value(head), "+OK\r\n".len())
            }
            (Store::Memcached, Verb::Get) => {
                let around = "VALUE k 0 \r\n\r\nEND\r\n".len();
                (b"get k\r\n".to_vec(), around + digits + value_bytes)
            }
            (Store::Memcached, Verb::Set) => {
                (with_value(format!("set k 0 0 {value_bytes}\r\n")), "STORED\r\n".len())
            }
        }
    }
}

impl Probe for OneConnection {
    fn round(&self, cpus: Cpus, count: u32) -> Result<Round, ProbeError> {
        let server_cpu = if self.one_cpu { cpus.client } else { cpus.server };
        let (_server, address) = self.store.start(server_cpu)?;
        let mut connection = Connection { stream: connect(address)?, polls: false };
        let _pinned = Pinned::on(cpus.client)?;
        let (set, set_bytes) = self.store.message(Verb::Set, self.value_bytes);
        connection.exchange(&set, &mut vec![0; set_bytes])?;
        let (request, response_bytes) = self.store.message(self.verb, self.value_bytes);
        let mut response = vec![0; response_bytes];
        connection.stream.set_nonblocking(!self.one_cpu)?;
        connection.polls = !self.one_cpu;
        let mut samples = Samples::new();
        let warm = count / 10;
        for at in 0..count + warm {
            let start = Instant::now();
            connection.exchange(&request, &mut response)?;
            let took = start.elapsed();
            if at >= warm {
                samples.add(took);
            }
        }
        if response.ends_with(b"\r\n") {
            Ok(samples.one_by_one())
        } else {
            Err(ProbeError::Failed(format!("{:?} answered something else", self.store)))
        }
    }
}

impl Probe for RedisBenchmark {
    fn round(&self, cpus: Cpus, samples: u32) -> Result<Round, ProbeError> {
        let (_server, address) = Store::Redis.start(cpus.server)?;
        drop(connect(address)?);
        let mut command = Command::new("redis-benchmark");
        command.args(["-p", &address.port().to_string(), "-t", "get", "-c", "50", "--csv"]);
        command.args(["-d", &self.value_bytes.to_string(), "-P", &self.pipeline.to_string()]);
        // A get of nothing is shorter than one of a value.
        let (mut stream, (set, answer)) =
            (connect(address)?, Store::Redis.message(Verb::Set, self.value_bytes));
        stream.write_all(&benchmark_key(&set))?;
        stream.read_exact(&mut vec![0; answer])?;
        command.args(["-n", &(u64::from(samples) * 16).to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut running = Server::start(&mut command, cpus.client)?;
        let mut text = String::new();
        let mut stdout = running.0.stdout.take().expect("its standard output is piped");
        stdout.read_to_string(&mut text)?;
        let rate = benchmark_rate(&text);
        let rate = rate.ok_or_else(|| ProbeError::Failed("redis-benchmark: no rate".to_owned()))?;
        Ok(Round { latency: None, operations_per_s: rate })
    }
}

/// The key that `redis-benchmark` asks for.
fn benchmark_key(set: &[u8]) -> Vec<u8> {
    let at = set.windows(4).position(|four| four == b"$1\r\n").expect("the key is named `k`");
    let key = b"$16\r\nkey:__rand_int__\r\n";
    [&set[..at], key, &set[at + b"$1\r\nk\r\n".len()..]].concat()
}

/// Operations a second, of a table as CSV with a row of names.
fn benchmark_rate(csv: &str) -> Option<f64> {
    let mut lines = csv.lines().map(|line| line.split(',').map(|cell| cell.trim_matches('"')));
    let column = lines.next()?.position(|name| name == "rps")?;
    lines.find_map(|mut row| row.nth(column)?.parse().ok())
}

/// As soon as it listens.
fn connect(address: SocketAddr) -> Result<TcpStream, ProbeError> {
    let start = Instant::now();
    loop {
        match TcpStream::connect(address) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                return Ok(stream);
            }
            Err(error) if start.elapsed() > PATIENCE => return Err(error.into()),
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

struct Connection {
    stream: TcpStream,
    polls: bool,
}

impl Connection {
    fn exchange(&mut self, request: &[u8], response: &mut [u8]) -> io::Result<()> {
        self.stream.write_all(request)?;
        if !self.polls {
            return self.stream.read_exact(response);
        }
        let mut filled = 0;
        while filled < response.len() {
            match self.stream.read(&mut response[filled..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(bytes) => filled += bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::hint::spin_loop(),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_those_of_the_protocols() {
        let (set, answer) = Store::Redis.message(Verb::Set, 2);
        assert_eq!(set, b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2\r\nxx\r\n");
        assert_eq!(answer, 5);
        assert_eq!(Store::Redis.message(Verb::Get, 64).1, b"$64\r\n".len() + 64 + 2);
        let (set, _) = Store::Memcached.message(Verb::Set, 3);
        assert_eq!(set, b"set k 0 0 3\r\nxxx\r\n");
        let get = Store::Memcached.message(Verb::Get, 4096).1;
        assert_eq!(get, b"VALUE k 0 4096\r\n".len() + 4096 + b"\r\nEND\r\n".len());
        let set = benchmark_key(&Store::Redis.message(Verb::Set, 1).0);
        assert_eq!(set, b"*3\r\n$3\r\nSET\r\n$16\r\nkey:__rand_int__\r\n$1\r\nx\r\n");
    }

    #[test]
    fn the_rate_is_found_by_the_name_of_its_column() {
        let csv = "\"test\",\"rps\",\"p50_latency_ms\"\n\"GET\",\"690607.75\",\"0.5\"\n";
        assert_eq!(benchmark_rate(csv), Some(690_607.75));
        assert_eq!(benchmark_rate("\"test\"\n\"GET\"\n"), None);
    }
}
