//! A stream over the same links by kernel sockets: a sender in the node's namespace, a receiver in
//! the client's. The kernel's MPTCP carries it, or TCP, or whatever a program before them makes of
//! TCP.

use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::links::{BUCKET, Links, Received, wall_ms};

/// Protocol numbers; the standard library does not take MPTCP's.
const TCP: u16 = 6;
const MPTCP: u16 = 262;
const SENDER: &str = "
import random, socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, int(sys.argv[1]))
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(('0.0.0.0', 5001))
s.listen(1)
print('ready', flush=True)
c, _ = s.accept()
data = random.Random(7).randbytes(1 << 20)
try:
    while True:
        c.sendall(data)
except OSError:
    pass
";
/// Each byte is compared with what was sent.
const RECEIVER: &str = "
import random, socket, sys, time
protocol, start, run, bucket = (int(word) for word in sys.argv[1:])
s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
s.settimeout(1)
s.connect(('10.77.0.2', 5001))
into, buckets = bytearray(1 << 20), [0] * (run // bucket + 1)
data, position, wrong = random.Random(7).randbytes(1 << 20) * 2, 0, 0
while True:
    try:
        got = s.recv_into(into)
        if got == 0:
            wrong += 1
            break
    except TimeoutError:
        got = 0
    at = time.time_ns() // 1000000 - start
    if at >= run:
        break
    if at >= 0:
        buckets[at // bucket] += got
    from_ = position % (1 << 20)
    wrong += into[:got] != data[from_:from_ + got]
    position += got
print(wrong, *buckets)
";

/// Receives over the first `count` links by MPTCP for some time. `None`, with a SKIPPED line, where
/// Python or MPTCP is missing.
pub(crate) fn mptcp(links: &Links, count: usize, time: Duration) -> Option<Received> {
    announce(links, count);
    receive(links, MPTCP, [&[], &[]], time)
}

/// Receives by TCP. The words of the node's side and of the client's stand before the program's.
#[allow(dead_code, reason = "one of the two measurements needs it")]
pub(crate) fn tcp(links: &Links, before: [&[OsString]; 2], time: Duration) -> Option<Received> {
    receive(links, TCP, before, time)
}

fn receive(
    links: &Links,
    protocol: u16,
    before: [&[OsString]; 2],
    time: Duration,
) -> Option<Received> {
    let python = |before: &[OsString], code: &str| {
        let words = [before, &["python3".into(), "-c".into(), code.into()]].concat();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).arg(protocol.to_string());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    let mut sender = links.node.enter(|| python(before[0], SENDER).spawn()).ok()?;
    let mut first = [0; 6];
    let said = sender.stdout.as_mut().map(|out| out.read_exact(&mut first));
    if !matches!(said, Some(Ok(()))) {
        let line = format!("SKIPPED: protocol {protocol}: the kernel or python3 lacks it\n");
        let _ = std::io::stderr().write_all(line.as_bytes());
        let _ = sender.wait();
        return None;
    }
    let words = [wall_ms(), time.as_millis() as u64, BUCKET.as_millis() as u64];
    let words = words.map(|word| word.to_string());
    let output = links.client.enter(|| python(before[1], RECEIVER).args(words).output());
    let output = output.expect("python3 runs");
    // A launcher ends with its program, which ends with its connection.
    if before[0].is_empty() {
        let _ = sender.kill();
    }
    sender.wait().expect("it was started");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let mut numbers = text.split_whitespace().map(|word| word.parse().expect("a number"));
    let wrong = numbers.next().expect("a number");
    Some(Received { buckets: numbers.collect(), wrong })
}

/// The node announces the addresses of its further links, and both ends allow so many subflows.
fn announce(links: &Links, count: usize) {
    for machine in [&links.client, &links.node] {
        machine.ip("mptcp endpoint flush");
        machine.ip("mptcp limits set subflows 4 add_addr_accepted 4");
    }
    for link in 1..count {
        links.node.ip(&format!("mptcp endpoint add 10.77.{link}.2 dev n{link} signal"));
    }
}
