//! Frame filters that run in the kernel, so that rejected frames cost their receiver nothing.

use nix::libc::{
    BPF_ABS, BPF_H, BPF_JEQ, BPF_JGT, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, PACKET_BROADCAST,
    PACKET_HOST, SKF_AD_IFINDEX, SKF_AD_OFF, SKF_AD_PKTTYPE, c_int, sock_filter,
};

/// Required octets at an offset of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// Two octets.
    Half(u16, [u8; 2]),
    /// Four octets.
    Word(u16, [u8; 4]),
}

/// Accepts frames to this machine in which all fields match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Required fields.
    pub fields: Vec<Field>,
    /// True to accept broadcast frames, too.
    pub broadcast: bool,
}

/// Filter result that accepts the whole frame.
const ALL: u32 = u32::MAX;

impl Filter {
    /// The filter program for the interface with this index.
    pub(crate) fn program(&self, index: u32) -> Vec<sock_filter> {
        // Each field is a load and a jump. The kind of address and the interface come before them,
        // accepting and rejecting behind.
        let leave = 2 * self.fields.len() + 5;
        let mut program = Vec::with_capacity(leave + 1);
        let most = if self.broadcast { PACKET_BROADCAST } else { PACKET_HOST };
        let about = |what: c_int| statement(BPF_LD | BPF_W | BPF_ABS, (SKF_AD_OFF + what) as u32);
        let past = |at: usize| u8::try_from(leave - at - 1).expect("a filter is short");
        program.push(about(SKF_AD_PKTTYPE));
        program.push(jump(BPF_JGT, u32::from(most), past(1), 0));
        // The kernel delivers frames of the interface to its socket, even if an 802.1Q tag assigns
        // them to another interface.
        program.push(about(SKF_AD_IFINDEX));
        program.push(jump(BPF_JEQ, index, 0, past(3)));
        for field in &self.fields {
            let (size, at, value) = match *field {
                Field::Half(at, octets) => (BPF_H, at, u16::from_be_bytes(octets).into()),
                Field::Word(at, octets) => (BPF_W, at, u32::from_be_bytes(octets)),
            };
            program.push(statement(BPF_LD | size | BPF_ABS, at.into()));
            let no = past(program.len());
            program.push(jump(BPF_JEQ, value, 0, no));
        }
        program.push(statement(BPF_RET | BPF_K, ALL));
        program.push(statement(BPF_RET | BPF_K, 0));
        program
    }
}

fn statement(code: u32, k: u32) -> sock_filter {
    sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

fn jump(test: u32, k: u32, yes: u8, no: u8) -> sock_filter {
    sock_filter { code: (BPF_JMP | test | BPF_K) as u16, jt: yes, jf: no, k }
}
