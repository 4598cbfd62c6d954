//! Subflows that are being agreed on.

use std::net::{Ipv4Addr, TcpStream};

use super::frame::Kind;
use super::handshake::{Hello, NONCE_BYTES, Secret, frame};
use super::wire::{Frames, Step, write};

/// Room for a frame of the handshake.
const ROOM_BYTES: usize = 1024;

/// The other process cannot prove that it has this rack's key.
pub(super) const OTHER_KEY: &str = "it has another key";
/// What the other process says is no handshake.
pub(super) const OTHER_PROTOCOL: &str = "it speaks another protocol";

enum Stage {
    Connecting,
    /// The `Hello` is said; its body is kept for the proofs.
    Said,
    Proved,
    /// The other process has to say its `Hello`.
    Waiting,
    Challenged,
}

/// A socket before it is a subflow.
pub(super) struct Greeting {
    pub(super) socket: TcpStream,
    pub(super) token: u64,
    pub(super) until_ns: u64,
    /// The other process's address.
    pub(super) from: Ipv4Addr,
    /// The connecting side's, or what the other one has said.
    pub(super) hello: Option<Hello>,
    nonce: [u8; NONCE_BYTES],
    stage: Stage,
    /// Frames of the subflow may come with the last one of the handshake.
    pub(super) frames: Frames,
}

/// How far a handshake is.
pub(super) enum Outcome {
    Waits,
    /// The subflow may be used.
    Ready,
    Failed(&'static str),
}

impl Greeting {
    /// Begins with a socket that connects, if there is a `hello` to say, or with an accepted one.
    pub(super) fn new(
        socket: TcpStream,
        token: u64,
        until_ns: u64,
        from: Ipv4Addr,
        hello: Option<Hello>,
        nonce: [u8; NONCE_BYTES],
    ) -> Greeting {
        let stage = if hello.is_some() { Stage::Connecting } else { Stage::Waiting };
        let frames = Frames::new(ROOM_BYTES);
        Greeting { socket, token, until_ns, from, hello, nonce, stage, frames }
    }

    fn say(&mut self, kind: Kind, body: &[u8], next: Stage) -> Outcome {
        let frame = frame(kind, body);
        // A new connection has room for one frame.
        match write(&self.socket, &frame) {
            Step::Done(bytes) if bytes == frame.len() => {
                self.stage = next;
                Outcome::Waits
            }
            _ => Outcome::Failed("the connection broke"),
        }
    }

    /// Goes on after the socket had something. `is_known` checks what the other process says.
    pub(super) fn advance(
        &mut self,
        secret: &Secret,
        is_known: impl Fn(&Hello, Ipv4Addr) -> bool,
    ) -> Outcome {
        if let Stage::Connecting = self.stage {
            match self.socket.take_error() {
                Ok(None) if self.socket.peer_addr().is_ok() => {}
                Ok(None) => return Outcome::Waits,
                _ => return Outcome::Failed("no connection"),
            }
            let body = self.hello.as_ref().map(Hello::body).unwrap_or_default();
            return self.say(Kind::Hello, &body, Stage::Said);
        }
        let is_over = !matches!(self.frames.fill(&self.socket), Step::Done(_) | Step::Blocked);
        let (kind, body) = match self.frames.next() {
            Ok(Some((header, body))) => (header.kind, body.to_vec()),
            Ok(None) if is_over => return Outcome::Failed("it hung up"),
            Ok(None) => return Outcome::Waits,
            Err(_) => return Outcome::Failed(OTHER_PROTOCOL),
        };
        self.frame(kind, &body, secret, is_known)
    }

    fn frame(
        &mut self,
        kind: Kind,
        body: &[u8],
        secret: &Secret,
        is_known: impl Fn(&Hello, Ipv4Addr) -> bool,
    ) -> Outcome {
        let own = self.hello.as_ref().map(Hello::body).unwrap_or_default();
        match (&self.stage, kind) {
            (Stage::Waiting, Kind::Hello) => {
                let Some(hello) = Hello::parse(body).filter(|it| is_known(it, self.from)) else {
                    return Outcome::Failed("it is no rack of this file, or comes from elsewhere");
                };
                self.hello = Some(hello);
                let proof = secret.prove(Kind::Challenge, body, &self.nonce);
                let answer = [&self.nonce[..], &proof].concat();
                self.say(Kind::Challenge, &answer, Stage::Challenged)
            }
            (Stage::Said, Kind::Challenge) => {
                let Some((nonce, proof)) = body.split_first_chunk::<NONCE_BYTES>() else {
                    return Outcome::Failed(OTHER_PROTOCOL);
                };
                if !secret.is_proven(Kind::Challenge, &own, nonce, proof) {
                    return Outcome::Failed(OTHER_KEY);
                }
                self.say(Kind::Proof, &secret.prove(Kind::Proof, &own, nonce), Stage::Proved)
            }
            (Stage::Challenged, Kind::Proof) => {
                if !secret.is_proven(Kind::Proof, &own, &self.nonce, body) {
                    return Outcome::Failed(OTHER_KEY);
                }
                match self.say(Kind::Ready, &[], Stage::Proved) {
                    Outcome::Waits => Outcome::Ready,
                    failed => failed,
                }
            }
            (Stage::Proved, Kind::Ready) => Outcome::Ready,
            _ => Outcome::Failed(OTHER_PROTOCOL),
        }
    }
}
