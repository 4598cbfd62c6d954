//! One session with its sockets: a subflow's, and a program's for each stream.

use std::collections::{BTreeMap, VecDeque};
use std::net::TcpStream;

use super::frame::{Fault, HEADER_BYTES};
use super::handshake::NONCE_BYTES;
use super::session::Session;
use super::wire::{Frames, Step, read, set_reset, write};

/// Chunks that one call of [`Link::pump`] sends, before other sockets have their turn.
const CHUNKS_AT_ONCE: usize = 32;
/// Reads of one subflow in one turn.
const READS_AT_ONCE: usize = 4;

/// A subflow's socket.
pub(super) struct Path {
    pub(super) socket: TcpStream,
    pub(super) token: u64,
    pub(super) is_readable: bool,
    pub(super) is_writable: bool,
    frames: Frames,
}

impl Path {
    pub(super) fn new(socket: TcpStream, token: u64, frames: Frames) -> Path {
        let frames = frames.of_subflow();
        Path { socket, token, is_readable: true, is_writable: true, frames }
    }
}

/// A program's connection.
pub(super) struct Local {
    pub(super) socket: TcpStream,
    pub(super) token: u64,
    pub(super) is_readable: bool,
    pub(super) is_writable: bool,
    /// It is in the queue of streams that have something to send.
    is_queued: bool,
    /// Key of the ledger's entry, or 0.
    pub(super) shown: u64,
}

impl Local {
    pub(super) fn new(socket: TcpStream, token: u64) -> Local {
        let (is_readable, is_writable) = (true, true);
        Local { socket, token, is_readable, is_writable, is_queued: false, shown: 0 }
    }
}

/// A session, its rack, and its sockets.
pub(super) struct Link {
    pub(super) rack: usize,
    pub(super) id: [u8; NONCE_BYTES],
    pub(super) opens: bool,
    pub(super) session: Session,
    pub(super) paths: Vec<Option<Path>>,
    pub(super) locals: BTreeMap<u32, Local>,
    /// Streams whose programs have bytes.
    queue: VecDeque<u32>,
    /// Sockets of streams that have ended.
    pub(super) closed: Vec<Local>,
    /// When the last subflow went down without the other process's doing.
    pub(super) alone_ns: Option<u64>,
    room: Vec<u8>,
}

/// What a pump of a link has found.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// There is more to do at once.
    pub(super) more: bool,
    /// Subflows whose sockets have ended, and whether the other process ended them.
    pub(super) lost: Vec<(usize, bool)>,
    pub(super) fault: Option<Fault>,
}

impl Link {
    pub(super) fn new(rack: usize, id: [u8; NONCE_BYTES], opens: bool, subflows: usize) -> Link {
        Link {
            rack,
            id,
            opens,
            session: Session::new(opens, subflows),
            paths: (0..subflows).map(|_| None).collect(),
            locals: BTreeMap::new(),
            queue: VecDeque::new(),
            closed: Vec::new(),
            alone_ns: None,
            room: Vec::new(),
        }
    }

    /// Adds the program's end of a stream.
    pub(super) fn join(&mut self, stream: u32, local: Local) {
        self.locals.insert(stream, local);
        self.wake(stream);
    }

    /// The stream may have something to send.
    pub(super) fn wake(&mut self, stream: u32) {
        let local = self.locals.get_mut(&stream);
        if let Some(local) = local.filter(|it| it.is_readable && !it.is_queued) {
            local.is_queued = true;
            self.queue.push_back(stream);
        }
    }

    /// Receives frames of all subflows that have some.
    pub(super) fn receive(&mut self, now_ns: u64, found: &mut Found) {
        for subflow in 0..self.paths.len() {
            for turn in 0.. {
                let Some(path) = self.paths[subflow].as_mut().filter(|it| it.is_readable) else {
                    break;
                };
                if turn == READS_AT_ONCE {
                    found.more = true;
                    break;
                }
                match path.frames.fill(&path.socket) {
                    Step::Done(_) => {}
                    Step::Blocked => path.is_readable = false,
                    end => {
                        path.is_readable = false;
                        found.lost.push((subflow, is_by_peer(&end)));
                    }
                }
                loop {
                    match path.frames.next() {
                        Ok(None) => break,
                        Ok(Some((header, body))) => {
                            let done = self.session.receive(subflow, &header, body, now_ns);
                            if let Err(fault) = done {
                                found.fault = Some(fault);
                                return;
                            }
                        }
                        Err(fault) => {
                            found.fault = Some(fault);
                            return;
                        }
                    }
                }
            }
        }
    }

    /// Sends what subflows can take.
    pub(super) fn pump(&mut self, now_ns: u64, found: &mut Found) {
        self.session.acknowledgements();
        for subflow in 0..self.paths.len() {
            self.write(subflow, found);
        }
        for _ in 0..CHUNKS_AT_ONCE {
            let (stripe, paths) = (&self.session.stripe, &self.paths);
            let may = |it: usize| paths[it].as_ref().is_some_and(|path| path.is_writable);
            let Some(subflow) = stripe.best(may) else { return };
            if !self.session.stripe.assign(subflow, now_ns)
                && !self.take_from_program(subflow, now_ns)
            {
                return;
            }
            self.write(subflow, found);
        }
        found.more = true;
    }

    fn write(&mut self, subflow: usize, found: &mut Found) {
        let Some(path) = self.paths[subflow].as_mut() else { return };
        while path.is_writable {
            let Some(bytes) = self.session.stripe.unwritten(subflow) else { return };
            match write(&path.socket, bytes) {
                Step::Done(bytes) => self.session.stripe.wrote(subflow, bytes),
                Step::Blocked => path.is_writable = false,
                end => {
                    path.is_writable = false;
                    found.lost.push((subflow, is_by_peer(&end)));
                }
            }
        }
    }

    /// Makes a chunk of the next program's bytes. False if none has any that it may send.
    fn take_from_program(&mut self, subflow: usize, now_ns: u64) -> bool {
        while let Some(stream) = self.queue.pop_front() {
            let Some(local) = self.locals.get_mut(&stream) else { continue };
            local.is_queued = false;
            let room = match self.session.room(stream) {
                Some(0) if self.session.stripe.next_number().is_none() => {
                    local.is_queued = true;
                    self.queue.push_front(stream);
                    return false;
                }
                // An event tells when there is room, and a stream that is gone needs none.
                None | Some(0) => continue,
                Some(room) => room,
            };
            if self.room.len() < HEADER_BYTES + room {
                self.room.resize(HEADER_BYTES + room, 0);
            }
            match read(&local.socket, &mut self.room[HEADER_BYTES..HEADER_BYTES + room]) {
                Step::Done(bytes) if bytes > 0 => {
                    self.room.truncate(HEADER_BYTES + bytes);
                    self.session.send(subflow, stream, now_ns, &mut self.room);
                    self.wake(stream);
                    return true;
                }
                Step::Done(_) => self.wake(stream),
                Step::Blocked => local.is_readable = false,
                Step::End => {
                    local.is_readable = false;
                    self.session.finish(stream);
                    self.close_ended(stream);
                    // The end is a chunk, too.
                    return self.session.stripe.assign(subflow, now_ns);
                }
                Step::Failed(_) => self.reset(stream),
            }
        }
        false
    }

    /// Gives a program the bytes that have come for it.
    pub(super) fn deliver(&mut self, stream: u32) {
        let Some(local) = self.locals.get_mut(&stream) else { return };
        while local.is_writable {
            let Some(bytes) = self.session.ready(stream) else { break };
            match write(&local.socket, bytes) {
                Step::Done(bytes) => self.session.take(stream, bytes),
                Step::Blocked => local.is_writable = false,
                Step::End | Step::Failed(_) => return self.reset(stream),
            }
        }
        if self.session.is_ended(stream) {
            // It fails only on a connection that the program has reset: the next read tells.
            let _ = local.socket.shutdown(std::net::Shutdown::Write);
            self.close_ended(stream);
        }
    }

    /// Lets go of the program's socket if its stream has ended in both directions.
    fn close_ended(&mut self, stream: u32) {
        if self.session.has(stream) {
            return;
        }
        if let Some(local) = self.locals.remove(&stream) {
            set_reset(&local.socket, false);
            self.closed.push(local);
        }
    }

    /// The program has reset its connection.
    fn reset(&mut self, stream: u32) {
        self.session.reset(stream);
        self.closed.extend(self.locals.remove(&stream));
    }

    /// The other end has reset the stream: the program's connection is reset when it is dropped.
    pub(super) fn was_reset(&mut self, stream: u32) {
        self.closed.extend(self.locals.remove(&stream));
    }
}

/// True if the other process, and not the network, has ended a connection.
fn is_by_peer(end: &Step) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionReset};
    match end {
        Step::Failed(error) => matches!(error.kind(), ConnectionReset | BrokenPipe),
        _ => true,
    }
}
