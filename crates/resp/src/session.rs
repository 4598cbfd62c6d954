//! Sessions: what one client sends, executed in its order, and the replies; without a socket.

use ethermem_kv::{Client, Index, Store};

use crate::clock::unix_ms;
use crate::command::{Context, Peer};
use crate::info::{State, add};
use crate::reply::Replies;
use crate::request::Requests;

/// Requests of one client that are executed before others have their turn.
const BATCH: usize = 1024;
/// Replies that wait for a slow reader; nothing more is executed for it until it has read.
const UNSENT_BYTES_MAX: usize = 1 << 20;

/// One client's side of a store, over bytes that come and go as its owner likes.
pub struct Session {
    alone: State,
    talk: Talk,
}

impl Session {
    /// A session with a store, of a server of its own.
    #[must_use]
    pub fn new(store: &Store, index: Index, id: u64) -> Session {
        let alone = State::new(store.pool().clone(), index, 0);
        Session { alone, talk: Talk::new(store.client(index), id) }
    }

    /// Takes bytes, and executes what is whole.
    pub async fn receive(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && !self.talk.is_over {
            let room = self.talk.requests.room();
            let (now, rest) = bytes.split_at(bytes.len().min(room.len()));
            room[..now.len()].copy_from_slice(now);
            self.talk.requests.fill(now.len());
            bytes = rest;
            loop {
                self.talk.serve(&self.alone, unix_ms()).await;
                if !self.talk.may_execute || self.talk.is_blocked() || self.talk.is_over {
                    break;
                }
            }
        }
    }

    /// The replies so far.
    #[must_use]
    pub fn replies(&self) -> &[u8] {
        self.talk.replies.unsent()
    }
}

/// What is between the bytes of a client and the store.
pub(crate) struct Talk {
    pub(crate) requests: Requests,
    pub(crate) replies: Replies,
    peer: Peer,
    pub(crate) client: Client,
    /// Nothing more is understood or executed.
    pub(crate) is_over: bool,
    /// Requests may be here that had no turn yet.
    pub(crate) may_execute: bool,
}

impl Talk {
    pub(crate) fn new(client: Client, id: u64) -> Talk {
        Talk {
            requests: Requests::default(),
            replies: Replies::default(),
            peer: Peer { id, ..Peer::default() },
            client,
            is_over: false,
            may_execute: false,
        }
    }

    /// Executes requests that are here, as many as are a client's share.
    pub(crate) async fn serve(&mut self, state: &State, now_ms: u64) {
        let Talk { requests, replies, peer, client, is_over, may_execute } = self;
        *may_execute = true;
        for _ in 0..BATCH {
            if *is_over || peer.quits || replies.unsent().len() >= UNSENT_BYTES_MAX {
                break;
            }
            match requests.next() {
                Ok(None) => {
                    *may_execute = false;
                    break;
                }
                Ok(Some(words)) => {
                    let mut context = Context { state, client, peer, replies, now_ms };
                    context.execute(words).await;
                }
                Err(error) => {
                    replies.error(&format!("ERR Protocol error: {error}"));
                    add(&state.cut_off, 1);
                    *is_over = true;
                }
            }
        }
        self.is_over |= self.peer.quits;
    }

    pub(crate) fn is_blocked(&self) -> bool {
        self.replies.unsent().len() >= UNSENT_BYTES_MAX
    }
}
