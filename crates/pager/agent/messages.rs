//! The agent's messages to its pager and back: the connection, the announcement with its files, and
//! the answer.

use core::mem::size_of;
use core::ptr::{addr_of, addr_of_mut, null, null_mut};

use super::protocol::{FORKED, Hello, PROOF, VERSION, Welcome};
use super::{NAME_BYTES, STAGING_BYTES, call, call3, secret_at, sys};

/// Connects to the pager's socket; `None` if no pager listens there.
pub fn connect(name: &[u8]) -> Option<usize> {
    let socket = call3(sys::SOCKET, 1, sys::SEQPACKET | sys::CLOEXEC, 0);
    if socket < 0 {
        return None;
    }
    let mut address = [0u8; 3 + NAME_BYTES];
    address[0] = 1;
    let mut place = 0;
    while place < name.len() {
        address[3 + place] = name[place];
        place += 1;
    }
    let length = 3 + name.len();
    if call3(sys::CONNECT, socket as usize, address.as_ptr() as usize, length) < 0 {
        call3(sys::CLOSE, socket as usize, 0, 0);
        return None;
    }
    Some(socket as usize)
}

/// Announces this process, and returns the address where the memory shared with the pager is
/// mapped. For a fork's child the pager's answer also brings the userfaultfd.
pub fn introduce(socket: usize, hello: &Hello, fault: &mut Option<usize>) -> Option<usize> {
    send_hello(socket, hello, *fault);
    let (mut welcome, mut files) = receive_welcome(socket)?;
    if welcome == Welcome::PROVE {
        let secret = secret_at(hello.probe as usize);
        let proof = Hello { version: VERSION, kind: PROOF, secret, ..Hello::default() };
        send_hello(socket, &proof, None);
        (welcome, files) = receive_welcome(socket)?;
    }
    let [memory, of_child] = files;
    if hello.kind == FORKED {
        *fault = of_child;
    }
    let mut shown = None;
    if let (Welcome::ACCEPTED, Some(memory)) = (welcome, memory) {
        let how = [0, STAGING_BYTES, sys::PROT_READ_WRITE, sys::MAP_SHARED, memory, 0];
        let at = call(sys::MMAP, how);
        shown = (at > 0).then_some(at as usize);
    }
    if let Some(memory) = memory {
        call3(sys::CLOSE, memory, 0, 0);
    }
    if let Some(at) = shown {
        call3(sys::MADVISE, at, STAGING_BYTES, sys::DONTFORK);
    }
    shown
}

/// A header of `sendmsg` and `recvmsg`.
#[repr(C)]
struct Message {
    name: *const u8,
    name_bytes: usize,
    parts: *const [usize; 2],
    part_count: usize,
    control: *mut u8,
    control_bytes: usize,
    flags: usize,
}

/// One file descriptor as ancillary data (`SCM_RIGHTS` of `SOL_SOCKET`).
#[repr(C, align(8))]
struct Rights {
    bytes: usize,
    level: i32,
    kind: i32,
    file: i32,
    gap: i32,
}

/// Room for up to two file descriptors.
#[repr(C, align(8))]
struct Received {
    bytes: usize,
    level: i32,
    kind: i32,
    files: [i32; 2],
}

pub fn send_hello(socket: usize, hello: &Hello, fault: Option<usize>) {
    let mut rights =
        Rights { bytes: 20, level: 1, kind: 1, file: fault.unwrap_or(0) as i32, gap: 0 };
    let part = [hello as *const Hello as usize, size_of::<Hello>()];
    let control_bytes = if fault.is_some() { size_of::<Rights>() } else { 0 };
    let message = Message {
        name: null(),
        name_bytes: 0,
        parts: &part,
        part_count: 1,
        control: addr_of_mut!(rights).cast(),
        control_bytes,
        flags: 0,
    };
    call3(sys::SENDMSG, socket, addr_of!(message) as usize, sys::NOSIGNAL);
}

/// The pager's answer, and the file descriptors that it brings.
pub fn receive_welcome(socket: usize) -> Option<(u32, [Option<usize>; 2])> {
    let mut welcome = Welcome::default();
    let mut rights = Received { bytes: 0, level: 0, kind: 0, files: [-1; 2] };
    let part = [addr_of_mut!(welcome) as usize, size_of::<Welcome>()];
    let mut message = Message {
        name: null_mut(),
        name_bytes: 0,
        parts: &part,
        part_count: 1,
        control: addr_of_mut!(rights).cast(),
        control_bytes: size_of::<Received>(),
        flags: 0,
    };
    loop {
        let got = call3(sys::RECVMSG, socket, addr_of_mut!(message) as usize, sys::CLOEXEC);
        if got == sys::EINTR {
            continue;
        }
        if got != size_of::<Welcome>() as isize {
            return None;
        }
        // SAFETY: the kernel wrote both through the pointers above.
        let (welcome, rights) =
            unsafe { (addr_of!(welcome).read_volatile(), addr_of!(rights).read_volatile()) };
        let is_rights = rights.level == 1 && rights.kind == 1;
        let file = |place: usize| match rights.files[place] {
            file if is_rights && file >= 0 => Some(file as usize),
            _ => None,
        };
        return Some((welcome.answer, [file(0), file(1)]));
    }
}
