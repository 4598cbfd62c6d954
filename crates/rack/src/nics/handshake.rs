//! How two processes agree on a subflow: each proves that it has the racks' secret, pure.

use ring::hmac;

use super::frame::{Header, Kind};

/// Bytes of a random number, and of a proof.
pub const NONCE_BYTES: usize = 16;
/// Bytes of a proof.
pub const PROOF_BYTES: usize = 32;
/// First bytes of a `Hello`: the protocol and its version.
const MAGIC: [u8; 8] = *b"em-nics1";
const FIXED_BYTES: usize = 8 + 2 * NONCE_BYTES + 12 + 1;
const NAME_BYTES_MAX: usize = 32;

/// What the connecting process says first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The session, a random number.
    pub session: [u8; NONCE_BYTES],
    /// A random number of this subflow.
    pub nonce: [u8; NONCE_BYTES],
    /// The subflow.
    pub subflow: u32,
    /// Subflows of the session.
    pub subflows: u32,
    /// How often the subflow was connected.
    pub incarnation: u32,
    /// The connecting process's rack.
    pub rack: String,
}

impl Hello {
    /// As the body of a frame.
    #[must_use]
    pub fn body(&self) -> Vec<u8> {
        let mut body = MAGIC.to_vec();
        body.extend(self.session);
        body.extend(self.nonce);
        for field in [self.subflow, self.subflows, self.incarnation] {
            body.extend(field.to_le_bytes());
        }
        body.push(self.rack.len() as u8);
        body.extend(self.rack.as_bytes());
        body
    }

    /// Reads a body; `None` if it is not one of this version.
    #[must_use]
    pub fn parse(body: &[u8]) -> Option<Hello> {
        let (fixed, name) = body.split_at_checked(FIXED_BYTES)?;
        let rest = fixed.strip_prefix(&MAGIC)?;
        let (session, rest) = rest.split_first_chunk()?;
        let (nonce, rest) = rest.split_first_chunk()?;
        let word =
            |at: usize| rest.get(4 * at..4 * at + 4)?.try_into().ok().map(u32::from_le_bytes);
        let is_name = usize::from(*rest.last()?) == name.len() && name.len() <= NAME_BYTES_MAX;
        let rack = std::str::from_utf8(name).ok().filter(|_| is_name)?.to_owned();
        let (subflow, subflows, incarnation) = (word(0)?, word(1)?, word(2)?);
        Some(Hello { session: *session, nonce: *nonce, subflow, subflows, incarnation, rack })
    }
}

/// The secret of all racks. Without a file it is empty, and proves nothing.
#[derive(Debug)]
pub struct Secret(hmac::Key);

impl Secret {
    /// A secret from the bytes of a file.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Secret {
        Secret(hmac::Key::new(hmac::HMAC_SHA256, bytes))
    }

    fn text(kind: Kind, hello: &[u8], nonce: &[u8]) -> Vec<u8> {
        [&[kind as u8], hello, nonce].concat()
    }

    /// The proof of one side: of the accepting one in a `Challenge`, of the other one in a `Proof`.
    #[must_use]
    pub fn prove(&self, kind: Kind, hello: &[u8], nonce: &[u8]) -> Vec<u8> {
        hmac::sign(&self.0, &Secret::text(kind, hello, nonce)).as_ref().to_vec()
    }

    /// True if the other side has the secret.
    #[must_use]
    pub fn is_proven(&self, kind: Kind, hello: &[u8], nonce: &[u8], proof: &[u8]) -> bool {
        hmac::verify(&self.0, &Secret::text(kind, hello, nonce), proof).is_ok()
    }
}

/// A frame of the handshake.
#[must_use]
pub fn frame(kind: Kind, body: &[u8]) -> Vec<u8> {
    Header { kind, body_bytes: body.len(), stream: 0, chunk: 0, position: 0 }.frame(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello() -> Hello {
        let (session, nonce, rack) = ([1; 16], [2; 16], "lab".to_owned());
        Hello { session, nonce, subflow: 3, subflows: 4, incarnation: 5, rack }
    }

    #[test]
    fn a_hello_returns_what_was_put_in_and_nothing_else_is_one() {
        let body = hello().body();
        assert_eq!(Hello::parse(&body), Some(hello()));
        for cut in 0..body.len() {
            assert_eq!(Hello::parse(&body[..cut]), None, "{cut} B");
        }
        assert_eq!(Hello::parse(&[&body[..], b"x"].concat()), None);
        let mut other = body;
        other[7] ^= 1;
        assert_eq!(Hello::parse(&other), None, "another version");
    }

    #[test]
    fn a_proof_holds_for_its_side_its_hello_and_its_secret() {
        let (secret, other) = (Secret::new(b"secret"), Secret::new(b"Secret"));
        let (hello, nonce) = (hello().body(), [7; 16]);
        let proof = secret.prove(Kind::Challenge, &hello, &nonce);
        assert_eq!(proof.len(), PROOF_BYTES);
        assert!(secret.is_proven(Kind::Challenge, &hello, &nonce, &proof));
        assert!(!secret.is_proven(Kind::Proof, &hello, &nonce, &proof), "a reflected proof");
        assert!(!other.is_proven(Kind::Challenge, &hello, &nonce, &proof));
        assert!(!secret.is_proven(Kind::Challenge, &hello[1..], &nonce, &proof));
        assert!(!secret.is_proven(Kind::Challenge, &hello, &[8; 16], &proof));
    }
}
