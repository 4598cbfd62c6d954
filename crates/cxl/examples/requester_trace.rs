//! Writes what the compute node's side of retransmission does, for the equivalence test of the RTL.
//! Standard input has the parameters on one line: `selective|go-back-n WINDOW SLOTS RETRY_CYCLES
//! STEPS SEED`.
//!
//! A line is the time in cycles and up to four parts, in the order in which they are done, each
//! with its outcome:
//! - `S SENT WHY SEQUENCE ASK ID LINE MASK DATA`: a packet may be sent;
//! - `D DELIVERED ORIGIN LINE IS_READ ID STATUS DATA`: a response may be delivered;
//! - `Q ORIGIN ASK ID LINE MASK DATA`: a new request;
//! - `R RECEIPT SEQUENCE IS_READ ID STATUS DATA`, `N RECEIPT NAK SACK` or `T`: a response or a
//!   SACK + NAK has come, or what has waited for too long is looked for.
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
use ethermem_cxl::retry::{Requester, RequesterConfig, ResponseFault, Retransmission};
use ethermem_units::Ps;
use ethermem_wire::cxl::{
    AccessId, ByteMask, Failure, LineAddress, LineData, Negative, Request, RequestPacket, Response,
    ResponsePacket, Sequence,
};

use rng::Rng;
use text::{request, response};

struct Node {
    requester: Requester<u8>,
    rng: Rng,
    /// The model's time counts clock cycles.
    now: Ps,
    initial: Sequence,
    /// Every request, from the initial number on.
    requests: Vec<RequestPacket>,
    /// After the newest request that was sent.
    unsent: u32,
    /// How likely it is, of 16, that the next response in order comes, and that one is delivered.
    in_order: u64,
    delivered: u64,
    /// The next response in order.
    answer: u32,
}

impl Node {
    fn data(&mut self) -> LineData {
        let mut data = [0; 64];
        for word in data.chunks_exact_mut(8) {
            word.copy_from_slice(&self.rng.next().to_le_bytes());
        }
        data
    }

    fn send(&mut self) -> String {
        let Some(packet) = self.requester.next_packet().copied() else {
            return "S 0 - - - - - - -".into();
        };
        let before = self.requester.counters();
        self.requester.mark_sent(self.now);
        let resent = self.requester.counters().resent;
        let why = (0..3).find(|&why| resent[why] != before.resent[why]).unwrap_or(3);
        self.unsent = self.unsent.max(packet.sequence.since(self.initial).cast_unsigned() + 1);
        format!("S 1 {why} {}", request(&packet))
    }

    fn deliver(&mut self) -> String {
        let Some(delivery) = self.requester.poll_delivery() else {
            return "D 0 - - - - - -".into();
        };
        let Some(response) = delivery.response else { unreachable!("none was given up") };
        let packet = ResponsePacket { sequence: Sequence(0), id: AccessId(0), response };
        let text = text::response_word(&packet);
        format!("D 1 {:x} {:x} {text}", delivery.origin, delivery.line.number())
    }

    fn submit(&mut self) -> String {
        let asked = match self.rng.below(3) {
            0 => Request::Read,
            1 => Request::Write(self.data()),
            _ => Request::MaskedWrite(ByteMask(self.rng.next()), self.data()),
        };
        let line = LineAddress::new(self.rng.next() % LineAddress::LINES).expect("40 bits");
        let (id, origin) = (AccessId(self.rng.next() as u8), self.rng.next() as u8);
        let packet =
            RequestPacket { sequence: self.requester.next_sequence(), id, line, request: asked };
        self.requester.submit(id, line, asked, origin);
        self.requests.push(packet);
        format!("Q {origin:x} {}", text::request_word(&packet))
    }

    /// A response in order, or one after it, before it, outside of the window, or wrong.
    fn respond(&mut self) -> String {
        let at = match self.rng.below(16) {
            n if n < self.in_order => self.answer,
            n if n % 3 == 0 => self.answer + self.rng.below(6) as u32,
            n if n % 3 == 1 => self.answer.saturating_sub(self.rng.below(20) as u32),
            _ => self.rng.below(u64::from(self.unsent) + 2) as u32,
        };
        if at == self.answer && at < self.unsent {
            self.answer += 1;
        }
        let sequence = self.initial.plus(at);
        let asked = self.requests.get(at as usize);
        let is_read = asked.is_none_or(|asked| matches!(asked.request, Request::Read));
        let id = asked.map_or(AccessId(0), |asked| asked.id);
        let (wrong_kind, wrong_id) = (self.rng.below(64) == 0, self.rng.below(64) == 0);
        let failure = (self.rng.below(10) == 0).then_some(Failure::Poison);
        let word = match is_read != wrong_kind {
            true => Response::Read(failure.map_or_else(|| Ok(self.data()), Err)),
            false => Response::Write(failure.map_or(Ok(()), Err)),
        };
        let id = AccessId(id.0 ^ u8::from(wrong_id));
        let packet = ResponsePacket { sequence, id, response: word };
        let receipt = receipt(self.requester.on_response(&packet));
        format!("R {receipt} {}", response(&packet))
    }

    /// Between what was answered and what was sent; or anything.
    fn negative(&mut self) -> String {
        let any = self.rng.below(8) == 0;
        let sack = match any {
            true => self.rng.below(u64::from(self.unsent) + 3) as u32,
            false => self.answer + 1 + self.rng.below(12) as u32,
        };
        let nak = sack.saturating_sub(self.rng.below(16) as u32);
        let negative = Negative { nak: self.initial.plus(nak), sack: self.initial.plus(sack) };
        let receipt = receipt(self.requester.on_negative(negative));
        format!("N {receipt} {:x} {:x}", negative.nak.0, negative.sack.0)
    }

    fn step(&mut self) -> String {
        self.now = Ps(self.now.0 + 1 + self.rng.below(3));
        let mut parts = vec![format!("{:x}", self.now.0)];
        let sends = self.rng.below(2) == 0;
        if sends {
            parts.push(self.send());
        }
        if self.rng.below(16) < self.delivered {
            parts.push(self.deliver());
        }
        let had_room = self.requester.has_room(1);
        // The hardware's room is that before the delivery of this cycle.
        let delivers = parts.last().is_some_and(|part| part.starts_with("D 1"));
        if had_room && !delivers && self.rng.below(2) == 0 {
            parts.push(self.submit());
        }
        match self.rng.below(16) {
            0..8 => parts.push(self.respond()),
            8 => parts.push(self.negative()),
            9..14 if !sends => {
                self.requester.on_timer(self.now);
                parts.push("T".into());
            }
            _ => {}
        }
        parts.join(" ")
    }
}

fn receipt(outcome: Result<(), ResponseFault>) -> u8 {
    match outcome {
        Ok(()) => 0,
        Err(ResponseFault::OutsideWindow { .. }) => 1,
        Err(ResponseFault::Duplicate(_)) => 2,
        Err(ResponseFault::Mismatch(_)) => 3,
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    let [kind, window, slots, retry, steps, seed] = line.split_whitespace().collect::<Vec<_>>()[..]
    else {
        return Err("expected selective|go-back-n WINDOW SLOTS RETRY_CYCLES STEPS SEED".into());
    };
    let retransmission = match kind {
        "selective" => Retransmission::Selective,
        "go-back-n" => Retransmission::GoBackN,
        other => return Err(format!("no retransmission {other}").into()),
    };
    let (window, slots): (u32, u32) = (window.parse()?, slots.parse()?);
    // Numbers go round soon.
    let initial = Sequence(0).minus(1000);
    let config = RequesterConfig {
        window,
        backlog: slots - window,
        retransmission,
        retry_after: Ps(retry.parse()?),
        initial,
        storage: Storage::Reserved,
    };
    let mut node = Node {
        requester: Requester::new(config),
        rng: Rng(seed.parse()?),
        now: Ps::ZERO,
        initial,
        requests: Vec::new(),
        unsent: 0,
        in_order: 8,
        delivered: 8,
        answer: 0,
    };
    let mut out = BufWriter::new(io::stdout().lock());
    for step in 0..steps.parse::<u64>()? {
        if step % 300 == 0 {
            (node.in_order, node.delivered) = (node.rng.below(15), 1 + node.rng.below(15));
            // What was lost long ago: the oldest without its response.
            node.answer = node.requester.oldest().since(initial).cast_unsigned();
        }
        writeln!(out, "{}", node.step())?;
    }
    out.flush()?;
    Ok(())
}
