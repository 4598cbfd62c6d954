//! Captures of tcpdump: pcap and pcapng.
//!
//! The crate `pcap-file` is used in tests only. It refuses packets that a snap length cut off, as
//! `tcpdump -s 96` writes them, takes every time of pcapng for nanoseconds, and gives no offset.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use ethermem_files::InputError;

use super::octets::{Octets, Order};
use super::packet::{LINKS, Link, Segment, segment_of};

const PCAP_US: u32 = 0xa1b2_c3d4;
const PCAP_NS: u32 = 0xa1b2_3c4d;
/// The type of a section header is the same in both orders.
const SECTION: u32 = 0x0a0d_0d0a;
const SECTION_MAGIC: u32 = 0x1a2b_3c4d;
const INTERFACE: u32 = 1;
const OLD_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const PACKET: u32 = 6;
/// Octets of a packet or block in memory.
const OCTETS_MAX: u32 = 1 << 26;
const NS_PER_S: u64 = 1_000_000_000;

/// The packets of a capture that carry data of TCP or UDP, or open a connection, as they come.
pub struct NetworkTrace<'p, R = BufReader<File>> {
    octets: Octets<'p, R>,
    format: Format,
    buffer: Vec<u8>,
    others: u64,
    failed: bool,
}

enum Format {
    Pcap { order: Order, ns_per_unit: u64, link: Link },
    PcapNg { order: Order, interfaces: Vec<Interface> },
}

#[derive(Clone, Copy)]
struct Interface {
    link: Link,
    resolution: u8,
    offset_s: i64,
}

/// A packet: its time, link and octets.
struct Packet {
    at_ns: u64,
    link: Link,
    start: usize,
    end: usize,
    /// Octets on the network.
    original: usize,
}

impl<'p> NetworkTrace<'p> {
    /// Opens a capture.
    ///
    /// # Errors
    /// [`InputError`] when the file cannot be read, or does not begin as a capture does.
    pub fn open(path: &'p Path) -> Result<NetworkTrace<'p>, InputError> {
        let file = File::open(path).map_err(|error| InputError::io(path, "be read", &error))?;
        NetworkTrace::of(BufReader::new(file), path)
    }
}

impl<'p, R: Read> NetworkTrace<'p, R> {
    /// The capture that `reader` has.
    pub(super) fn of(reader: R, path: &'p Path) -> Result<NetworkTrace<'p, R>, InputError> {
        let mut octets = Octets::new(reader, path);
        let mut magic = [0; 4];
        if !octets.fill(&mut magic, 0, "the first number")? {
            return Err(octets.refuse(0, "an empty file: must be a capture, pcap or pcapng"));
        }
        let format = if Order::Little.u32(&magic, 0) == SECTION {
            Format::PcapNg { order: section(&mut octets, 0)?, interfaces: Vec::new() }
        } else {
            pcap(&mut octets, magic)?
        };
        Ok(NetworkTrace { octets, format, buffer: Vec::new(), others: 0, failed: false })
    }

    /// Packets so far without data of TCP or UDP over IP.
    #[must_use]
    pub fn others(&self) -> u64 {
        self.others
    }

    fn next_segment(&mut self) -> Result<Option<Segment>, InputError> {
        loop {
            let start = self.octets.at();
            let Some(packet) = self.next_packet(start)? else { return Ok(None) };
            let octets = &self.buffer[packet.start..packet.end];
            match segment_of(packet.link, packet.at_ns, octets, packet.original) {
                Ok(Some(segment)) => return Ok(Some(segment)),
                Ok(None) => self.others += 1,
                Err(problem) => return Err(self.octets.refuse(start, problem)),
            }
        }
    }

    fn next_packet(&mut self, start: u64) -> Result<Option<Packet>, InputError> {
        match &self.format {
            Format::Pcap { order, ns_per_unit, link } => {
                let (order, ns_per_unit, link) = (*order, *ns_per_unit, *link);
                self.next_pcap(start, order, ns_per_unit, link)
            }
            Format::PcapNg { .. } => self.next_block(),
        }
    }

    fn next_pcap(
        &mut self,
        start: u64,
        order: Order,
        ns_per_unit: u64,
        link: Link,
    ) -> Result<Option<Packet>, InputError> {
        let mut header = [0; 16];
        if !self.octets.fill(&mut header, start, "the header of a packet")? {
            return Ok(None);
        }
        let (s, part) = (order.u32(&header, 0), order.u32(&header, 4));
        let part_ns = u64::from(part) * ns_per_unit;
        if part_ns >= NS_PER_S {
            let problem = format!("{part} parts of a second: must be less than a second");
            return Err(self.octets.refuse(start, &problem));
        }
        let captured = order.u32(&header, 8);
        take(&mut self.octets, &mut self.buffer, captured, start, "a packet")?;
        let at_ns = u64::from(s) * NS_PER_S + part_ns;
        let original = order.u32(&header, 12) as usize;
        Ok(Some(Packet { at_ns, link, start: 0, end: captured as usize, original }))
    }

    /// The packet of the next block that has one.
    fn next_block(&mut self) -> Result<Option<Packet>, InputError> {
        loop {
            let Format::PcapNg { order, interfaces } = &mut self.format else {
                unreachable!("only pcapng has blocks")
            };
            let start = self.octets.at();
            let mut kind = [0; 4];
            if !self.octets.fill(&mut kind, start, "a block")? {
                return Ok(None);
            }
            let kind = order.u32(&kind, 0);
            if kind == SECTION {
                *order = section(&mut self.octets, start)?;
                interfaces.clear();
                continue;
            }
            let order = *order;
            let mut length = [0; 4];
            self.octets.rest(&mut length, start, "a block")?;
            let length = order.u32(&length, 0);
            if length < 12 || !length.is_multiple_of(4) {
                let problem =
                    format!("a block of {length} octets: must be a multiple of 4 from 12");
                return Err(self.octets.refuse(start, &problem));
            }
            take(&mut self.octets, &mut self.buffer, length - 8, start, "a block")?;
            let body = &self.buffer[..length as usize - 12];
            let again = order.u32(&self.buffer, length as usize - 12);
            if again != length {
                let problem =
                    format!("a block of {length} octets ends with {again}: must be the same");
                return Err(self.octets.refuse(start, &problem));
            }
            let refuse = |problem: String| self.octets.refuse(start, &problem);
            match kind {
                INTERFACE => interfaces.push(interface(order, body).map_err(refuse)?),
                PACKET | OLD_PACKET => {
                    return packet(order, kind, body, interfaces).map(Some).map_err(refuse);
                }
                SIMPLE_PACKET => {
                    let problem = "a packet without a time: must be an enhanced packet block";
                    return Err(refuse(problem.to_owned()));
                }
                _ => {}
            }
        }
    }
}

impl<R: Read> Iterator for NetworkTrace<'_, R> {
    type Item = Result<Segment, InputError>;

    /// The next packet with data; after an error, `None`.
    fn next(&mut self) -> Option<Result<Segment, InputError>> {
        if self.failed {
            return None;
        }
        let next = self.next_segment();
        self.failed = next.is_err();
        next.transpose()
    }
}

/// Reads so many octets into the buffer.
fn take<R: Read>(
    octets: &mut Octets<'_, R>,
    buffer: &mut Vec<u8>,
    count: u32,
    start: u64,
    what: &str,
) -> Result<(), InputError> {
    if count > OCTETS_MAX {
        let problem = format!("{what} of {count} octets: must be at most {OCTETS_MAX}");
        return Err(octets.refuse(start, &problem));
    }
    buffer.resize(count as usize, 0);
    octets.rest(buffer, start, what)
}

fn pcap<R: Read>(octets: &mut Octets<'_, R>, magic: [u8; 4]) -> Result<Format, InputError> {
    let known = [
        (Order::Little, PCAP_US, 1_000),
        (Order::Big, PCAP_US, 1_000),
        (Order::Little, PCAP_NS, 1),
        (Order::Big, PCAP_NS, 1),
    ];
    let found = known.into_iter().find(|(order, number, _)| order.u32(&magic, 0) == *number);
    let Some((order, _, ns_per_unit)) = found else {
        let magic = magic.iter().map(|octet| format!("{octet:02x}")).collect::<String>();
        let problem = format!(
            "{magic} begins no capture: must be a1b2c3d4, a1b23c4d or 0a0d0d0a, in any order"
        );
        return Err(octets.refuse(0, &problem));
    };
    let mut header = [0; 20];
    octets.rest(&mut header, 0, "the header of the file")?;
    // The upper bits say whether frames end with a checksum.
    let link = Link::of(order.u32(&header, 16) & 0xffff);
    let link = link.ok_or_else(|| octets.refuse(20, &unknown_link(order.u32(&header, 16))))?;
    Ok(Format::Pcap { order, ns_per_unit, link })
}

fn unknown_link(link: u32) -> String {
    format!("link type {link}: must be {LINKS}")
}

/// Reads a section header behind its type, and returns the order of the section's numbers.
fn section<R: Read>(octets: &mut Octets<'_, R>, start: u64) -> Result<Order, InputError> {
    let mut header = [0; 8];
    octets.rest(&mut header, start, "a section header")?;
    let is = |order: &Order| order.u32(&header, 4) == SECTION_MAGIC;
    let Some(order) = [Order::Little, Order::Big].into_iter().find(is) else {
        return Err(octets.refuse(start, "a section without 1a2b3c4d: must be pcapng"));
    };
    let length = order.u32(&header, 0);
    if length < 28 || !length.is_multiple_of(4) {
        let problem =
            format!("a section header of {length} octets: must be a multiple of 4 from 28");
        return Err(octets.refuse(start, &problem));
    }
    octets.skip(u64::from(length) - 12, start, "a section header")?;
    Ok(order)
}

fn interface(order: Order, body: &[u8]) -> Result<Interface, String> {
    if body.len() < 8 {
        return Err("an interface without a link type: must be whole".to_owned());
    }
    let number = u32::from(order.u16(body, 0));
    let link = Link::of(number).ok_or_else(|| unknown_link(number))?;
    let mut interface = Interface { link, resolution: 6, offset_s: 0 };
    let mut options = &body[8..];
    while options.len() >= 4 {
        let (code, length) = (order.u16(options, 0), usize::from(order.u16(options, 2)));
        let Some(value) = options.get(4..4 + length) else {
            return Err(format!("option {code} of {length} octets: must be within its block"));
        };
        match (code, length) {
            (0, _) => break,
            (9, 1) => interface.resolution = value[0],
            (14, 8) => interface.offset_s = order.u64(value, 0).cast_signed(),
            _ => {}
        }
        options = options.get(4 + length.next_multiple_of(4)..).unwrap_or_default();
    }
    // A power of 10, or of 2.
    let exponent = interface.resolution & 0x7f;
    let most = if interface.resolution & 0x80 == 0 { 18 } else { 63 };
    if exponent > most {
        return Err(format!("a resolution with exponent {exponent}: must be at most {most}"));
    }
    Ok(interface)
}

fn packet(
    order: Order,
    kind: u32,
    body: &[u8],
    interfaces: &[Interface],
) -> Result<Packet, String> {
    if body.len() < 20 {
        return Err(format!("a packet block with {} octets: must be at least 20", body.len()));
    }
    let index = match kind {
        OLD_PACKET => usize::from(order.u16(body, 0)),
        _ => order.u32(body, 0) as usize,
    };
    let Some(interface) = interfaces.get(index) else {
        return Err(format!("interface {index} of {}: must be described before", interfaces.len()));
    };
    let units = u64::from(order.u32(body, 4)) << 32 | u64::from(order.u32(body, 8));
    let captured = order.u32(body, 12) as usize;
    if captured > body.len() - 20 {
        return Err(format!("a packet of {captured} octets: must be within its block"));
    }
    let at_ns = interface.ns(units).ok_or("a time before 1970 or after 2554: must be between")?;
    let original = order.u32(body, 16) as usize;
    Ok(Packet { at_ns, link: interface.link, start: 20, end: 20 + captured, original })
}

impl Interface {
    /// Nanoseconds since 1970 for a time in units of the interface.
    fn ns(&self, units: u64) -> Option<u64> {
        let exponent = u32::from(self.resolution & 0x7f);
        let scaled = u128::from(units) * u128::from(NS_PER_S);
        let ns = if self.resolution & 0x80 == 0 {
            scaled / 10_u128.pow(exponent)
        } else {
            scaled >> exponent
        };
        let offset = i128::from(self.offset_s) * i128::from(NS_PER_S);
        u64::try_from(i128::try_from(ns).ok()? + offset).ok()
    }
}
