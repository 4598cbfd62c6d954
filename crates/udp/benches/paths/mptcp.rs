//! Kernel MPTCP over the same links: a sender in the node's namespace, a receiver in the client's.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::{BUCKET, Links, Received, wall_ms};

/// IPPROTO_MPTCP.
const SENDER: &str = "
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(('0.0.0.0', 5001))
s.listen(1)
print('ready', flush=True)
c, _ = s.accept()
data = bytes(1 << 20)
try:
    while True:
        c.sendall(data)
except OSError:
    pass
";
const RECEIVER: &str = "
import socket, sys, time
start, run, bucket = (int(word) for word in sys.argv[1:])
s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
s.settimeout(1)
s.connect(('10.77.0.2', 5001))
into, buckets = bytearray(1 << 20), [0] * (run // bucket + 1)
while True:
    try:
        got = s.recv_into(into)
    except TimeoutError:
        got = 0
    at = time.time_ns() // 1000000 - start
    if at >= run:
        break
    if at >= 0:
        buckets[at // bucket] += got
print(*buckets)
";

/// Receives over the first `count` links for some time. `None`, with a SKIPPED line, where Python
/// or MPTCP is missing.
pub(crate) fn receive(links: &Links, count: usize, time: Duration) -> Option<Received> {
    announce(links, count);
    let start = wall_ms();
    let python = |code: &str| {
        let mut command = Command::new("python3");
        command.args(["-c", code]).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    let mut sender = links.node.enter(|| python(SENDER).spawn()).ok()?;
    let mut first = [0; 6];
    let said = sender.stdout.as_mut().map(|out| std::io::Read::read_exact(out, &mut first));
    if !matches!(said, Some(Ok(()))) {
        let _ = std::io::stderr().write_all(b"SKIPPED: MPTCP: the kernel or python3 lacks it\n");
        let _ = sender.wait();
        return None;
    }
    let words = [start, time.as_millis() as u64, BUCKET.as_millis() as u64];
    let words = words.map(|word| word.to_string());
    let output = links.client.enter(|| python(RECEIVER).args(words).output());
    let output = output.expect("python3 runs");
    let _ = sender.kill();
    sender.wait().expect("it was started");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let buckets = text.split_whitespace().map(|word| word.parse().expect("a number")).collect();
    Some(Received { buckets, wrong: 0 })
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
