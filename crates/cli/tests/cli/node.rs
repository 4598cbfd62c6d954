//! `ethermem node`, as a process with a socket.

use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use ethermem_wire::clio::{
    ENVELOPE_BYTES, Envelope, Epoch, NodeFacts, ProcessId, Protection, Reply, Request, RequestId,
    RequestPacket, ResponsePacket, SenderId, TenantId,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{call, command};

/// A node that ends with the test.
struct Running {
    child: Child,
    address: String,
}

impl Running {
    fn start(arguments: &[&str]) -> Running {
        let listen = ["node", "--listen", "127.0.0.1:0", "--insecure"];
        let mut command = command(Path::new("."), &[&listen, arguments].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").expect(&line).to_owned();
        Running { child, address }
    }

    /// Asks it what it is.
    fn facts(&self) -> NodeFacts {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(&self.address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut datagram = [0; 256];
        let envelope = Envelope {
            protection: Protection::Carrier,
            tenant: TenantId(0),
            epoch: Epoch::UNKNOWN,
            sender: SenderId(1),
            sequence: 1,
            clock: ethermem_units::Ns::ZERO,
        };
        let hello = RequestPacket {
            attempt: 0,
            process: ProcessId(0),
            request: RequestId(1),
            acknowledged: RequestId::NONE,
            body: Request::Hello,
        };
        let front = envelope.emit(&mut datagram).unwrap();
        let bytes = front + hello.emit(&mut datagram[front..]).unwrap();
        socket.send(&datagram[..bytes]).unwrap();
        let mut answer = [0; 1024];
        let bytes = socket.recv(&mut answer).unwrap();
        let sealed = Envelope::open(&answer[..bytes]).unwrap();
        assert_eq!(sealed.packets, ENVELOPE_BYTES..bytes);
        let packet = ResponsePacket::packets(&answer[sealed.packets]).next().unwrap().unwrap();
        let Reply::Facts(facts) = packet.reply else { panic!("{packet:?}") };
        facts
    }

    /// Ends it as an operator does: its exit code and last words.
    fn end(mut self) -> (Option<i32>, String) {
        kill(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGTERM).unwrap();
        let mut words = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut words).unwrap();
        (self.child.wait().unwrap().code(), words)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_node_says_what_it_is_until_it_is_told_to_end() {
    let node = Running::start(&["--memory", "3MiB", "--page", "4KiB", "--lease-s", "7"]);
    let facts = node.facts();
    assert_eq!((facts.memory.0, facts.page_bytes, facts.lease_ms), (3 << 20, 4096, 7000));
    // Asleep by now, it wakes up for a datagram.
    std::thread::sleep(Duration::from_millis(30));
    assert_eq!(node.facts(), facts);
    let (code, words) = node.end();
    assert_eq!(code, Some(0), "{words}");
    assert!(words.starts_with("ended: 2 requests in 2 datagrams"), "{words}");
}

#[test]
fn each_life_of_a_node_has_an_epoch_of_its_own() {
    let [one, other] = [0, 1].map(|_| Running::start(&["--memory", "1MiB"]).facts().epoch);
    assert!(one != other && one != Epoch::UNKNOWN && other != Epoch::UNKNOWN);
}

#[test]
fn what_cannot_be_served_is_refused_in_a_line() {
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    for (arguments, says) in [
        (&["--memory", "1MiB"][..], "--insecure is missing"),
        (&["--memory", "1MiB", "--insecure", "--listen", "0.0.0.0:0"], "loopback"),
        (&["--memory", "1000", "--insecure", "--listen", "127.0.0.1:0"], "whole pages of 64 KiB"),
        (&["--memory", "900TiB", "--insecure"], "are available"),
        (&["--memory", "much", "--insecure"], "--memory"),
        (&["--memory", "1MiB", "--insecure", "--listen", &taken], &taken),
    ] {
        let called = call(Path::new("."), &[&["node"], arguments].concat());
        assert_eq!((called.code, called.out.as_str()), (2, ""), "{arguments:?}");
        assert!(called.err.contains(says), "{arguments:?}: {}", called.err);
        let refused = called.err.lines().next().unwrap();
        assert!(refused.starts_with("error: "), "{arguments:?}: {}", called.err);
    }
}
