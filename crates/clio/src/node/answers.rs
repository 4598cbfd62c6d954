//! Answers to a datagram, whose bytes may stay in the node's memory until the carrier sends them.

use ethermem_units::Ns;
use ethermem_wire::clio::{
    ClioOpcode, ClioStatus, ENVELOPE_BYTES, Envelope, EnvelopeError, Packets, Permissions,
    Protection, RESPONSE_BYTES, Reply, RequestId, RequestPacket, ResponsePacket, WRITE_BYTES,
};

use super::machine::Node;
use crate::memory::{AccessError, Extent, SpaceId, VirtualMemory};

/// Fewest bytes of a read that stay in memory. Below, a copy costs less than a longer call of the
/// system.
const OUTSIDE_BYTES_MIN: u32 = 8 << 10;

/// The buffer for the answers of a datagram.
pub(super) struct Answers<'a> {
    pub(super) into: &'a mut [u8],
    pub(super) used: usize,
    /// Number of answers that had no room.
    pub(super) left_out: u64,
    /// The bytes of a read may stay in memory: it is the only request.
    refers: bool,
    outside: Option<Extent>,
}

/// Where the data of a write are.
#[derive(Debug)]
pub(super) enum Data {
    /// In its packet.
    Here,
    /// So many bytes are with the carrier.
    Elsewhere(usize),
    /// The carrier puts them here.
    Awaited(Extent),
}

impl Data {
    pub(super) fn bytes(&self, here: &[u8]) -> usize {
        match self {
            Data::Here => here.len(),
            Data::Elsewhere(bytes) => *bytes,
            Data::Awaited(place) => place.bytes(),
        }
    }
}

/// The answer to a datagram.
#[derive(Debug)]
pub struct Answer {
    /// Octets in the buffer; 0 means no answer.
    pub bytes: usize,
    /// Bytes of the memory that follow them in the answer, for [`VirtualMemory::slices`]. They are
    /// those of the answer until the node processes its next datagram.
    pub outside: Option<Extent>,
}

/// Octets of a datagram before the data of its only packet, a write.
pub const WRITE_FRONT_BYTES: usize = ENVELOPE_BYTES + WRITE_BYTES;

/// The answer to a write whose data the carrier still has.
#[derive(Debug)]
pub struct Landing {
    /// Octets of the answer; 0 means no answer.
    pub bytes: usize,
    /// Where the data must be put, by [`Node::memory_for`], before anything else happens: the write
    /// counts as done. `None`: it was refused, or done before, and the data are of no use.
    pub place: Option<Extent>,
}

impl<'a> Answers<'a> {
    pub(super) fn new(into: &'a mut [u8]) -> Answers<'a> {
        Answers { into, used: 0, left_out: 0, refers: false, outside: None }
    }

    pub(super) fn room(&self) -> usize {
        self.into.len() - self.used
    }

    /// Adds an answer. One without room is left out: the client retries.
    pub(super) fn put(&mut self, answer: &ResponsePacket<'_>) {
        match answer.emit(&mut self.into[self.used..]) {
            Ok(bytes) => self.used += bytes,
            Err(_) => self.left_out += 1,
        }
    }

    /// Adds the answer to a read, for which there is room.
    pub(super) fn read<B: AsRef<[u8]> + AsMut<[u8]>>(
        &mut self,
        memory: &mut VirtualMemory<B>,
        (space, address, bytes): (SpaceId, u64, u32),
        (attempt, request): (u8, RequestId),
    ) -> Result<(), AccessError> {
        let opcode = ClioOpcode::Read as u8;
        let front = ResponsePacket { opcode, attempt, request, reply: Reply::Bytes(&[]) };
        let length = bytes as usize;
        if self.refers && bytes >= OUTSIDE_BYTES_MIN {
            self.outside = Some(memory.extent(space, (address, length), Permissions::READ)?);
            let written = front.emit_before(length, &mut self.into[self.used..]);
            self.used += written.expect("there is room, and it fits a packet");
            return Ok(());
        }
        let end = self.used + RESPONSE_BYTES + length;
        let packet = &mut self.into[self.used..end];
        memory.read(space, address, &mut packet[RESPONSE_BYTES..])?;
        front.emit_around(packet).expect("there is room, and it fits a packet");
        self.used = end;
        Ok(())
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Node<B> {
    /// Processes a datagram with the carrier's check or with a CRC. The answer is written into
    /// `answer`, which must be as long as an answer may be. Returns its length; 0 means no answer.
    ///
    /// Datagrams protected by AES-GCM go to [`Node::on_sealed`].
    pub fn on_datagram(&mut self, now: Ns, datagram: &[u8], answer: &mut [u8]) -> usize {
        self.handle(now, datagram, answer, false).bytes
    }

    /// As [`Node::on_datagram`], for a carrier that sends bytes from several places as one
    /// datagram: the bytes of a long read stay in memory. With a CRC, none do.
    pub fn answer(&mut self, now: Ns, datagram: &[u8], answer: &mut [u8]) -> Answer {
        let refers = self.config.protection == Protection::Carrier;
        self.handle(now, datagram, answer, refers)
    }

    /// As [`Node::on_datagram`], for a datagram of which only the first [`WRITE_FRONT_BYTES`] are
    /// at hand: those of one write. `None` if it is anything else, or has a check over all of it.
    pub fn answer_front(
        &mut self,
        now: Ns,
        front: &[u8; WRITE_FRONT_BYTES],
        datagram_bytes: usize,
        answer: &mut [u8],
    ) -> Option<Landing> {
        let envelope = Envelope::parse(front).ok()?;
        let (packet, data_bytes) = RequestPacket::parse_write(&front[ENVELOPE_BYTES..])?;
        let plain = [Protection::Carrier; 2];
        let is_plain = [envelope.protection, self.config.protection] == plain;
        if !is_plain || datagram_bytes != WRITE_FRONT_BYTES + data_bytes {
            return None;
        }
        let mut answers = Answers::new(answer.get_mut(ENVELOPE_BYTES..)?);
        self.counters.datagrams += 1;
        if let Some(arrived) = self.arrived(now, &envelope) {
            self.counters.requests += 1;
            self.data = Data::Elsewhere(data_bytes);
            self.on_request(&arrived, &packet, &mut answers);
        }
        let place = match core::mem::replace(&mut self.data, Data::Here) {
            Data::Awaited(place) => Some(place),
            Data::Here | Data::Elsewhere(_) => None,
        };
        self.counters.unanswered += answers.left_out;
        if answers.used == 0 {
            return Some(Landing { bytes: 0, place });
        }
        let used = answers.used;
        let front = self.answer_envelope(now, &envelope);
        let emitted = front.emit(answer).expect("there is room for the envelope");
        Some(Landing { bytes: emitted + used, place })
    }

    /// The memory of a write's data, in order.
    pub fn memory_for(&mut self, place: &Extent) -> Vec<&mut [u8]> {
        self.memory.slices_mut(place)
    }

    fn handle(&mut self, now: Ns, datagram: &[u8], answer: &mut [u8], refers: bool) -> Answer {
        const NONE: Answer = Answer { bytes: 0, outside: None };
        self.counters.datagrams += 1;
        let trailer = self.config.protection.trailer_bytes();
        let Some(end) = answer.len().checked_sub(trailer).filter(|&end| end > ENVELOPE_BYTES)
        else {
            return NONE;
        };
        let (envelope, used, outside) = match Envelope::open(datagram) {
            Ok(opened) if opened.envelope.protection != self.config.protection => {
                self.counters.dropped_protection += 1;
                return NONE;
            }
            Ok(opened) => {
                let packets = &datagram[opened.packets];
                let mut answers = Answers::new(&mut answer[ENVELOPE_BYTES..end]);
                answers.refers = refers && Packets::new(packets).is_one();
                self.answer_packets(now, &opened.envelope, packets, &mut answers);
                (opened.envelope, answers.used, answers.outside)
            }
            Err(EnvelopeError::Corrupt { envelope, .. }) => {
                self.counters.dropped_corrupt += 1;
                // The answer must not exceed the datagram, so that a forged datagram cannot amplify
                // traffic.
                let end = end.min(datagram.len().saturating_sub(trailer)).max(ENVELOPE_BYTES);
                (envelope, nack(&envelope, &mut answer[ENVELOPE_BYTES..end]), None)
            }
            Err(_) => {
                self.counters.dropped_malformed += 1;
                return NONE;
            }
        };
        if used == 0 {
            return NONE;
        }
        let front = self.answer_envelope(now, &envelope);
        let sealed =
            front.emit(answer).and_then(|front_bytes| front.seal(answer, front_bytes + used));
        Answer { bytes: sealed.expect("room was left for envelope and trailer"), outside }
    }
}

/// The answer to a datagram that was changed on its way.
fn nack(envelope: &Envelope, into: &mut [u8]) -> usize {
    if envelope.protection != Protection::Crc {
        return 0;
    }
    let nack = ResponsePacket {
        opcode: ClioOpcode::Nack as u8,
        attempt: 0,
        request: RequestId::NONE,
        reply: Reply::Refused(ClioStatus::Corrupt, envelope.sequence),
    };
    nack.emit(into).unwrap_or(0)
}
