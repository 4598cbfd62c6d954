//! Writes what the memory node's side of retransmission does, for the equivalence test of the RTL.
//! Standard input has the parameters on one line: `selective|go-back-n WINDOW STEPS SEED`.
//!
//! A line has up to four parts, in the order in which they are done, and each part its outcome:
//! - `P RESPONDS SEQUENCE IS_READ ID STATUS DATA NEGATIVE NAK SACK`: a packet may be sent;
//! - `I ISSUED SEQUENCE ASK ID LINE MASK DATA`: the next request is executed;
//! - `C SEQUENCE IS_READ ID STATUS DATA`: a request was executed;
//! - `A ARRIVAL SEQUENCE ASK ID LINE MASK DATA`: a request has come.
//!
//! Numbers are hexadecimal, and `-` is nothing.

#[path = "support/hex.rs"]
mod hex;
#[path = "../../edm/tests/support/rng.rs"]
mod rng;
#[path = "support/text.rs"]
mod text;

use std::error::Error;
use std::io::{self, BufWriter, Write as _};

use ethermem_cxl::Storage;
use ethermem_cxl::retry::{Responder, Retransmission};
use ethermem_wire::cxl::{
    AccessId, ByteMask, Failure, LineAddress, LineData, Packet, Request, RequestPacket, Response,
    ResponsePacket, Sequence,
};

use rng::Rng;
use text::{request, response};

fn sent(packet: Option<Packet>) -> String {
    let (answer, negative) = match packet {
        Some(Packet::Response(answer)) => (Some(answer), None),
        Some(Packet::Merged(negative, answer)) => (Some(answer), Some(negative)),
        Some(Packet::Negative(negative)) => (None, Some(negative)),
        _ => (None, None),
    };
    let answer = answer.map_or("0 - - - - -".into(), |answer| format!("1 {}", response(&answer)));
    let negative = negative
        .map_or("0 - -".into(), |negative| format!("1 {:x} {:x}", negative.nak.0, negative.sack.0));
    format!("P {answer} {negative}")
}

struct Node {
    responder: Responder,
    rng: Rng,
    window: u32,
    /// Requests that are being executed.
    executing: Vec<RequestPacket>,
    /// How likely it is, of 8, that a request comes in order, and that a packet may be sent.
    in_order: u64,
    polled: u64,
}

impl Node {
    fn data(&mut self) -> LineData {
        let mut data = [0; 64];
        for word in data.chunks_exact_mut(8) {
            word.copy_from_slice(&self.rng.next().to_le_bytes());
        }
        data
    }

    /// In order, ahead, again, or from anywhere.
    fn arrival(&mut self) -> RequestPacket {
        let (next, window) = (self.responder.next_sequence(), u64::from(self.window));
        let sequence = match self.rng.below(8) {
            n if n < self.in_order => next,
            7 if self.rng.below(10) == 0 => Sequence(self.rng.next() as u32),
            n if n % 2 == 0 => next.plus(self.rng.below(window / 2 + 1) as u32),
            6 | 7 => next.minus(self.rng.below(2 * window + 2) as u32),
            _ => next.plus(self.rng.below(window + 2) as u32),
        };
        let request = match self.rng.below(3) {
            0 => Request::Read,
            1 => Request::Write(self.data()),
            _ => Request::MaskedWrite(ByteMask(self.rng.next()), self.data()),
        };
        let line = LineAddress::new(self.rng.next() % LineAddress::LINES).expect("40 bits");
        RequestPacket { sequence, id: AccessId(self.rng.next() as u8), line, request }
    }

    fn outcome(&mut self, request: &Request) -> Response {
        let failure = match self.rng.below(10) {
            0 => Some(Failure::Unmapped),
            1 => Some(Failure::Poison),
            _ => None,
        };
        match request {
            Request::Read => Response::Read(failure.map_or_else(|| Ok(self.data()), Err)),
            _ => Response::Write(failure.map_or(Ok(()), Err)),
        }
    }

    /// What happens in one step, each of the four or not.
    fn step(&mut self) -> String {
        let mut parts = Vec::new();
        if self.rng.below(8) < self.polled {
            parts.push(sent(self.responder.poll_transmit()));
        }
        if self.rng.below(2) == 0 {
            match self.responder.next_request().copied() {
                Some(packet) => {
                    self.responder.issue();
                    parts.push(format!("I 1 {}", request(&packet)));
                    self.executing.push(packet);
                }
                None => parts.push("I 0 - - - - - -".into()),
            }
        }
        // What was issued in this step completes in a later one.
        let old =
            self.executing.len() - usize::from(parts.last().is_some_and(|p| p.starts_with("I 1")));
        if old > 0 && self.rng.below(2) == 0 {
            let at = self.rng.below(old as u64) as usize;
            let packet = self.executing.remove(at);
            let outcome = self.outcome(&packet.request);
            self.responder.complete(&packet, outcome);
            let answer =
                ResponsePacket { sequence: packet.sequence, id: packet.id, response: outcome };
            parts.push(format!("C {}", response(&answer)));
        }
        if self.rng.below(3) != 0 {
            let packet = self.arrival();
            let arrival = self.responder.on_request(&packet) as u8;
            parts.push(format!("A {arrival} {}", request(&packet)));
        }
        parts.join(" ")
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    let [kind, window, steps, seed] = line.split_whitespace().collect::<Vec<_>>()[..] else {
        return Err("expected selective|go-back-n WINDOW STEPS SEED".into());
    };
    let kind = match kind {
        "selective" => Retransmission::Selective,
        "go-back-n" => Retransmission::GoBackN,
        other => return Err(format!("no retransmission {other}").into()),
    };
    let window = window.parse()?;
    // Numbers go round soon.
    let initial = Sequence(0).minus(1000);
    let mut node = Node {
        responder: Responder::new(window, kind, initial, Storage::Reserved),
        rng: Rng(seed.parse()?),
        window,
        executing: Vec::new(),
        in_order: 4,
        polled: 4,
    };
    let mut out = BufWriter::new(io::stdout().lock());
    for step in 0..steps.parse::<u64>()? {
        if step % 500 == 0 {
            (node.in_order, node.polled) = (1 + node.rng.below(5), 3 + node.rng.below(5));
        }
        writeln!(out, "{}", node.step())?;
    }
    out.flush()?;
    Ok(())
}
