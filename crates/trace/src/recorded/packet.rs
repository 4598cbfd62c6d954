//! Data of TCP and UDP in captured packets.

use std::net::IpAddr;

use etherparse::{EtherType, IpNumber, Ipv6ExtensionSlice, LaxNetSlice, LaxSlicedPacket};

/// Link types that are read, for errors.
pub(super) const LINKS: &str = "1 (Ethernet), 101, 228, 229 (raw IP), 113, 276 (Linux cooked)";

/// What stands in front of the IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    Ethernet,
    Raw,
    Cooked1,
    Cooked2,
}

/// The protocol of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    /// TCP, with the number of the first octet, and whether the packet opens a connection.
    Tcp {
        /// Sequence number of the packet.
        sequence: u32,
        /// True if SYN is set.
        opens: bool,
    },
    /// UDP.
    Udp,
}

/// A packet that carries data, or opens a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Time of the capture, in ns since 1970.
    pub at_ns: u64,
    /// Address and port of the sender.
    pub from: (IpAddr, u16),
    /// Address and port of the receiver.
    pub to: (IpAddr, u16),
    /// Protocol.
    pub protocol: Protocol,
    /// Bytes of data that the packet had on the network.
    pub bytes: u32,
}

impl Link {
    /// The link of this number, of `LINKTYPE_...` at tcpdump.org.
    pub(super) fn of(number: u32) -> Option<Link> {
        match number {
            1 => Some(Link::Ethernet),
            101 | 228 | 229 => Some(Link::Raw),
            113 => Some(Link::Cooked1),
            276 => Some(Link::Cooked2),
            _ => None,
        }
    }

    /// Octets of its header, and where its EtherType stands.
    fn header(self) -> (usize, Option<usize>) {
        match self {
            Link::Ethernet => (14, Some(12)),
            Link::Raw => (0, None),
            Link::Cooked1 => (16, Some(14)),
            Link::Cooked2 => (20, Some(0)),
        }
    }
}

/// Why a packet cannot be read.
const CUT: &str = "the headers of a packet are cut off: must be captured with -s 96 or more";

/// A packet behind its IP header.
struct Ip<'o> {
    from: IpAddr,
    to: IpAddr,
    protocol: IpNumber,
    /// Octets on the network: what the header says, not what was captured.
    declared: usize,
    octets: &'o [u8],
}

/// The data of a captured packet of `original` octets; `None` if it carries none of TCP or UDP.
///
/// # Errors
/// What the packet must be, if its headers were cut off.
pub(super) fn segment_of(
    link: Link,
    at_ns: u64,
    octets: &[u8],
    original: usize,
) -> Result<Option<Segment>, &'static str> {
    let Some(ip) = ip_of(link, octets, original)? else { return Ok(None) };
    let octets = ip.octets;
    let number = |at: usize| u16::from_be_bytes([octets[at], octets[at + 1]]);
    let segment = |protocol: Protocol, bytes: usize| Segment {
        at_ns,
        from: (ip.from, number(0)),
        to: (ip.to, number(2)),
        protocol,
        bytes: bytes as u32,
    };
    match ip.protocol {
        IpNumber::TCP if octets.len() >= 14 => {
            let (header, opens) = (usize::from(octets[12] >> 4) * 4, octets[13] & 0x02 != 0);
            let sequence = u32::from(number(4)) << 16 | u32::from(number(6));
            let bytes = ip.declared.saturating_sub(header);
            let is_any = bytes > 0 || opens;
            Ok(is_any.then(|| segment(Protocol::Tcp { sequence, opens }, bytes)))
        }
        IpNumber::UDP if octets.len() >= 8 => {
            // The first fragment stands for the datagram. A length of 0 marks a jumbogram.
            let bytes = match number(4) {
                0 => ip.declared.saturating_sub(8),
                length => usize::from(length).saturating_sub(8),
            };
            Ok((bytes > 0).then(|| segment(Protocol::Udp, bytes)))
        }
        IpNumber::TCP | IpNumber::UDP if ip.declared >= 8 => Err(CUT),
        _ => Ok(None),
    }
}

/// The packet behind its IP header; `None` if it has none, or is a fragment after the first.
fn ip_of(link: Link, octets: &[u8], original: usize) -> Result<Option<Ip<'_>>, &'static str> {
    let (header, kind) = link.header();
    let Some(rest) = octets.get(header..) else { return Err(CUT) };
    let sliced = match kind {
        Some(at) => {
            let kind = EtherType(u16::from_be_bytes([octets[at], octets[at + 1]]));
            LaxSlicedPacket::from_ether_type(kind, rest)
        }
        None => match LaxSlicedPacket::from_ip(rest) {
            Ok(sliced) => sliced,
            Err(_) => return Ok(None),
        },
    };
    let (from, to, declared, payload): (IpAddr, IpAddr, Option<usize>, _) = match sliced.net {
        Some(LaxNetSlice::Ipv4(ip)) => {
            let header = ip.header();
            if header.fragments_offset().value() > 0 {
                return Ok(None);
            }
            let own = header.slice().len();
            let declared = declared(header.total_len(), own);
            let ends = (header.source_addr().into(), header.destination_addr().into());
            (ends.0, ends.1, declared, ip.payload().clone())
        }
        Some(LaxNetSlice::Ipv6(ip)) => {
            let (header, extensions) = (ip.header(), ip.extensions());
            let is_later = |extension: Ipv6ExtensionSlice<'_>| match extension {
                Ipv6ExtensionSlice::Fragment(part) => part.fragment_offset().value() > 0,
                _ => false,
            };
            if extensions.clone().into_iter().any(is_later) {
                return Ok(None);
            }
            let declared = declared(header.payload_length(), extensions.slice().len());
            let ends = (header.source_addr().into(), header.destination_addr().into());
            (ends.0, ends.1, declared, ip.payload().clone())
        }
        _ => return Ok(None),
    };
    let in_front = octets.len() - payload.payload.len();
    let declared = declared.unwrap_or(original.saturating_sub(in_front));
    let (protocol, octets) = (payload.ip_number, payload.payload);
    Ok(Some(Ip { from, to, protocol, declared, octets }))
}

/// Octets behind headers of `headers` octets. The kernel hands packets of more than 64 KiB to
/// tcpdump with a length of 0.
fn declared(length: u16, headers: usize) -> Option<usize> {
    (length > 0).then(|| usize::from(length).saturating_sub(headers))
}
