//! From accesses to the cache, and from the cache to memory nodes: in order, one after the other.

use ethermem_units::Ps;
use ethermem_wire::cxl::{AccessId, LineAddress, LineData, Request, Response, Sequence};

use super::sections::SectionUse;
use super::{Access, ComputeNode, LostBy, NodeIndex, Origin, Path, SectionError};
use crate::agent::Token;
use crate::cache::{Eviction, ReadStep, Victim, WriteStep};
use crate::retry::Delivery;

/// An access that needs no response of its own has this identifier: a write-back of a flush.
const NO_ACCESS: AccessId = AccessId(0);
/// Most requests to memory nodes that one access makes: a write-back and a fetch.
const REQUESTS_MAX: u32 = 2;

impl ComputeNode {
    /// Maps a section of CMem to a memory node.
    ///
    /// # Errors
    /// [`SectionError`].
    pub fn map(&mut self, section: usize, used: SectionUse) -> Result<(), SectionError> {
        let nodes = self.nodes.len();
        if usize::from(used.node.0) >= nodes {
            return Err(SectionError::NoSuchNode { node: used.node.0, nodes });
        }
        self.sections.map(section, used)
    }

    /// Ends the mapping of a section.
    ///
    /// # Errors
    /// [`SectionError`]; also while the cache has lines of it.
    pub fn unmap(&mut self, section: usize) -> Result<SectionUse, SectionError> {
        let cached = self.cache.as_ref().is_some_and(|cache| {
            let mut lines = (0..cache.places()).filter_map(|place| cache.line_at(place));
            lines.any(|(line, _)| self.sections.contains(section, line))
        });
        if cached {
            return Err(SectionError::Cached(section));
        }
        self.sections.unmap(section)
    }

    pub(super) fn enqueue(&mut self, access: Access) {
        if self.accesses.is_full() {
            // Accesses that were given up keep their places until they are looked at.
            let agent = &self.agent;
            self.accesses.retain(|access| agent.is_open(access.token));
        }
        let kept = self.accesses.push(access);
        assert!(kept.is_ok(), "there are no more open accesses than identifiers");
    }

    /// Executes accesses until one has to wait.
    pub(super) fn pump(&mut self) {
        while let Some(access) = self.accesses.front().copied() {
            if self.agent.is_open(access.token) && !self.execute(access) {
                self.counters.stalls += 1;
                return;
            }
            self.accesses.pop();
        }
    }

    /// Executes an access; `false`, and nothing changed, if it must wait.
    fn execute(&mut self, access: Access) -> bool {
        let Some(used) = self.sections.of(access.line) else {
            self.counters.unmapped += 1;
            match access.write {
                None => self.answer(access.token, None, Path::None),
                Some(_) => {
                    self.lose(access.line, LostBy::Unmapped);
                    self.complete(access.token, Path::None);
                }
            }
            return true;
        };
        // A victim may be of another memory node than the line.
        if self.nodes.iter().any(|node| !node.requester.has_room(REQUESTS_MAX)) {
            return false;
        }
        if !used.is_cached || self.cache.is_none() {
            self.execute_uncached(access, used);
            return true;
        }
        match access.write {
            None => self.execute_read(access, used),
            Some((mask, data)) => {
                let Some(cache) = &mut self.cache else { return false };
                match cache.write(access.line, mask, &data) {
                    WriteStep::Stalled => return false,
                    WriteStep::Hit => self.complete(access.token, Path::WriteHit),
                    WriteStep::Allocated => self.complete(access.token, Path::WriteMiss),
                    WriteStep::Replaced(victim) => {
                        let waits = self.eviction() == Eviction::Acknowledged;
                        self.write_back(victim, access.token.id, waits.then_some(access.token));
                        if !waits {
                            self.complete(access.token, Path::WriteMissReplace);
                        }
                    }
                }
                true
            }
        }
    }

    fn execute_read(&mut self, access: Access, used: SectionUse) -> bool {
        let Some(cache) = &mut self.cache else { return false };
        match cache.read(access.line, access.token) {
            ReadStep::Stalled => return false,
            ReadStep::Hit(data) => self.answer(access.token, Some(data), Path::ReadHit),
            ReadStep::Merged => {}
            ReadStep::Miss { fetch, victim } => {
                // The victim goes first: it may be what the fetch is to see, later.
                if let Some(victim) = victim {
                    self.write_back(victim, access.token.id, None);
                }
                let origin = Origin::Fetch(fetch);
                self.submit(used.node, access.token.id, access.line, Request::Read, origin);
            }
        }
        true
    }

    fn execute_uncached(&mut self, access: Access, used: SectionUse) {
        let request = match access.write {
            None => Request::Read,
            Some((mask, data)) if mask.is_full() => Request::Write(data),
            Some((mask, data)) => Request::MaskedWrite(mask, data),
        };
        let origin = Origin::Uncached(access.token);
        self.submit(used.node, access.token.id, access.line, request, origin);
    }

    /// Sends a dirty line to its memory node.
    pub(super) fn write_back(&mut self, victim: Victim, id: AccessId, waits: Option<Token>) {
        let Victim { line, mask, data } = victim;
        let Some(used) = self.sections.of(line) else {
            unreachable!("a section with lines in the cache stays mapped");
        };
        let request = match mask.is_full() {
            true => Request::Write(data),
            false => Request::MaskedWrite(mask, data),
        };
        self.submit(used.node, id, line, request, Origin::WriteBack(waits));
    }

    /// Sends a dirty line of a flush.
    pub(super) fn flush_back(&mut self, victim: Victim) {
        self.write_back(victim, NO_ACCESS, None);
    }

    fn submit(
        &mut self,
        node: NodeIndex,
        id: AccessId,
        line: LineAddress,
        request: Request,
        origin: Origin,
    ) {
        self.nodes[usize::from(node.0)].requester.submit(id, line, request, origin);
    }

    /// Hands the responses of a memory node to what waits for them, in the order of the requests.
    pub(super) fn deliver(&mut self, node: usize) {
        while let Some(delivery) = self.nodes[node].requester.poll_delivery() {
            self.take_delivery(delivery);
        }
    }

    /// Gives up a memory node: what waits for it ends, loads with poison. The node is attached anew
    /// with another first sequence number.
    pub fn detach(&mut self, node: NodeIndex, initial: Sequence) {
        let at = usize::from(node.0);
        if at >= self.nodes.len() {
            return;
        }
        while let Some(delivery) = self.nodes[at].requester.poll_abandoned() {
            self.take_delivery(delivery);
        }
        self.nodes[at].requester.restart(initial);
        self.nodes[at].congestion = None;
        self.pump();
    }

    fn take_delivery(&mut self, delivery: Delivery<Origin>) {
        let Delivery { origin, line, response } = delivery;
        let lost = match response {
            Some(Response::Write(Err(_))) => Some(LostBy::Refused),
            None => Some(LostBy::NodeLost),
            Some(_) => None,
        };
        let data = match response {
            Some(Response::Read(Ok(data))) => Some(data),
            _ => None,
        };
        match origin {
            Origin::Fetch(fetch) => self.end_fetch(fetch, data.as_ref()),
            Origin::WriteBack(waits) => {
                if let Some(why) = lost {
                    self.lose(line, why);
                }
                if let Some(token) = waits {
                    self.complete(token, Path::WriteMissReplace);
                }
            }
            Origin::Uncached(token) if token.is_write => {
                if let Some(why) = lost.filter(|_| self.agent.is_open(token)) {
                    self.lose(line, why);
                }
                self.complete(token, Path::Uncached);
            }
            Origin::Uncached(token) => self.answer(token, data, Path::Uncached),
        }
    }

    fn end_fetch(&mut self, fetch: u32, data: Option<&LineData>) {
        let Some(cache) = &mut self.cache else { return };
        cache.fill(fetch, data);
        while let Some((token, data)) = self.cache.as_mut().and_then(|c| c.poll_filled(fetch)) {
            self.answer(token, data, Path::ReadMiss);
        }
    }

    /// Ends accesses that had no response in time.
    pub(super) fn give_up(&mut self, now: Ps) {
        while let Some(token) = self.agent.overdue(now) {
            if !token.is_write {
                self.answer(token, None, Path::None);
                continue;
            }
            // A write that waits for the cache was not done, and will not be; one that is in the
            // cache and waits for its victim alone is done; one past the cache is uncertain.
            let mut waiting = None;
            self.accesses.retain(|access| {
                let is_it = access.token == token;
                waiting = if is_it { Some(access.line) } else { waiting };
                !is_it
            });
            if let Some(line) = waiting {
                self.lose(line, LostBy::NotSent);
                self.complete(token, Path::None);
            } else if let Some(line) = self.uncached_line(token) {
                self.lose(line, LostBy::Uncertain);
                self.complete(token, Path::None);
            } else {
                self.complete(token, Path::WriteMissReplace);
            }
        }
    }

    /// The line of a write past the cache that is under way.
    fn uncached_line(&self, token: Token) -> Option<LineAddress> {
        let mut lines = self.nodes.iter().filter_map(|node| {
            node.requester.find(|origin| matches!(origin, Origin::Uncached(t) if *t == token))
        });
        lines.next()
    }
}
