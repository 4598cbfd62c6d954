//! Answers whose bytes go straight into the buffer of a caller that waits for a read.

use core::ops::Range;

use ethermem_units::Ns;
use ethermem_wire::clio::{
    ClioOpcode, ClioStatus, ENVELOPE_BYTES, Envelope, Protection, RESPONSE_BYTES, ResponseHead,
};

use super::super::flights::Flight;
use super::super::operation::{OperationId, Sink};
use super::super::paths::PathId;
use super::Client;

/// Octets of a datagram before the bytes of its first packet.
pub const FRONT_BYTES: usize = ENVELOPE_BYTES + RESPONSE_BYTES;

/// The buffer of a read of [`Client::submit_read_into`]. It must be as long as the read.
#[derive(Debug)]
pub struct Landing<'b> {
    /// The read.
    pub operation: OperationId,
    /// Its caller's buffer.
    pub to: &'b mut [u8],
}

impl Landing<'_> {
    pub(super) fn sink(&mut self, of: OperationId) -> Sink<'_> {
        if of == self.operation { Sink::Caller(self.to) } else { Sink::Own }
    }
}

/// Place in its read's buffer of the bytes that a request asks for.
fn place(flight: &Flight) -> Range<usize> {
    let from = flight.part.from as usize;
    from..from + flight.part.bytes as usize
}

impl Client {
    /// The place in the read's buffer of the bytes that come next, if the network loses and
    /// reorders nothing: those of the oldest request in flight. `None` if that is not a part of the
    /// read. What was received there by mistake is overwritten when the right bytes arrive.
    #[must_use]
    pub fn next_landing(&self, read: OperationId) -> Option<Range<usize>> {
        let flight = self.flights.oldest().filter(|flight| flight.operation == read)?;
        (flight.opcode == ClioOpcode::Read).then(|| place(flight))
    }

    /// The place in the read's buffer of the bytes of a datagram that begins with `front` and has
    /// `datagram_bytes`. `None` if it has anything else than bytes that the read still awaits, or
    /// must be checked before any of it is used, as all protections but the carrier's.
    #[must_use]
    pub fn awaits(
        &self,
        read: OperationId,
        front: &[u8],
        datagram_bytes: usize,
    ) -> Option<Range<usize>> {
        let (envelope, head) = parse(front)?;
        let flight = self.flights.get(head.request.0).filter(|it| it.operation == read)?;
        let place = place(flight);
        let is_plain = envelope.protection == Protection::Carrier
            && self.config.protection == Protection::Carrier
            && envelope.epoch == self.epoch();
        let is_read = flight.opcode == ClioOpcode::Read
            && head.opcode == ClioOpcode::Read as u8
            && head.status == ClioStatus::Ok;
        let is_whole = usize::from(head.length) == RESPONSE_BYTES + place.len()
            && datagram_bytes == FRONT_BYTES + place.len();
        (is_plain && is_read && is_whole).then_some(place)
    }

    /// Processes a datagram whose bytes are where [`Client::awaits`] said.
    pub fn on_landed(&mut self, now: Ns, path: PathId, front: &[u8], bytes: &[u8]) {
        let parsed = parse(front);
        let whole = parsed.and_then(|(envelope, head)| Some((envelope, head.with(bytes).ok()?)));
        let Some((envelope, packet)) = whole else {
            self.counters.ignored += 1;
            return;
        };
        self.hears(now, path, &envelope);
        self.on_answer(now, path, &envelope, &packet, |_| Sink::Landed);
        self.heard(now, path, &envelope);
    }
}

fn parse(front: &[u8]) -> Option<(Envelope, ResponseHead)> {
    let envelope = Envelope::parse(front).ok()?;
    Some((envelope, ResponseHead::parse(front.get(ENVELOPE_BYTES..)?).ok()?))
}
