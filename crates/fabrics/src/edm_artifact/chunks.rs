//! Chunks between their sender and the switch's egress, by name.

use ethermem_engine::engine::Handle;
use ethermem_units::{Blocks, Ps};

/// A chunk on its way.
#[derive(Clone, Copy)]
pub(super) struct Chunk {
    pub(super) handle: Handle,
    pub(super) blocks: Blocks,
    /// The currently known time at which its last block leaves the switch.
    pub(super) leaves: Ps,
}

#[derive(Default)]
pub(super) struct Chunks {
    all: Vec<Chunk>,
    free: Vec<u32>,
}

impl Chunks {
    pub(super) fn insert(&mut self, chunk: Chunk) -> u32 {
        let name = self.free.pop().unwrap_or(self.all.len() as u32);
        if name as usize == self.all.len() {
            self.all.push(chunk);
        } else {
            self.all[name as usize] = chunk;
        }
        name
    }

    pub(super) fn get(&self, name: u32) -> Chunk {
        self.all[name as usize]
    }

    /// Puts off a chunk that alternates with others: it leaves no earlier than `leaves`.
    pub(super) fn put_off(&mut self, name: u32, leaves: Ps) {
        let chunk = &mut self.all[name as usize];
        chunk.leaves = chunk.leaves.max(leaves);
    }

    /// Removes a chunk, whose name may be reused.
    pub(super) fn remove(&mut self, name: u32) {
        self.free.push(name);
    }
}
