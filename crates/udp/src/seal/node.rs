//! The node's end: the keys of its tenants, and a cache of recent senders.

use core::hash::Hasher;

use ethermem_clio::node::{Seal, SealRefused};
use ethermem_wire::clio::{Envelope, SenderId, TenantId};
use siphasher::sip::SipHasher13;

use super::keys::{DatagramKey, Keys, TenantKey};
use super::window::ReplayWindow;

/// Number of senders with cached keys and replay windows. Others cost one more derivation.
pub const SENDERS: usize = 4096;
const WAYS: usize = 4;

/// Owner of a cache entry, and the time of its last use; 0 is none.
#[derive(Clone, Copy)]
struct Owner {
    tenant: TenantId,
    sender: SenderId,
    used: u64,
}

struct Held {
    opening: DatagramKey,
    sealing: DatagramKey,
    window: ReplayWindow,
}

/// The node's encryption. Its size is fixed, and a sender without a tenant's key cannot change it.
pub struct NodeSeal {
    /// Keys of each tenant.
    tenants: Box<[Keys]>,
    node: SenderId,
    secret: [u64; 2],
    owners: Box<[[Owner; WAYS]]>,
    held: Box<[Option<Held>]>,
    turn: u64,
    /// Cache entry of the datagram that was opened last.
    last: usize,
}

const NOBODY: Owner = Owner { tenant: TenantId(0), sender: SenderId(0), used: 0 };

impl NodeSeal {
    /// The node's end, with its sender name. `secret` must be drawn at random, so that no tenant
    /// can choose senders that share an entry. Of two keys for one tenant the first counts.
    #[must_use]
    pub fn new(
        tenants: &[(TenantId, TenantKey)],
        node: SenderId,
        secret: [u64; 2],
        senders: usize,
    ) -> NodeSeal {
        let mut keys: Vec<Keys> = tenants.iter().map(|(id, key)| Keys::new(*id, key)).collect();
        keys.sort_by_key(Keys::tenant);
        keys.dedup_by_key(|keys| keys.tenant());
        let sets = senders.div_ceil(WAYS).next_power_of_two();
        NodeSeal {
            tenants: keys.into_boxed_slice(),
            node,
            secret,
            owners: vec![[NOBODY; WAYS]; sets].into_boxed_slice(),
            held: (0..sets * WAYS).map(|_| None).collect(),
            turn: 0,
            last: 0,
        }
    }

    fn set_of(&self, tenant: TenantId, sender: SenderId) -> usize {
        let mut hasher = SipHasher13::new_with_keys(self.secret[0], self.secret[1]);
        hasher.write_u64(sender.0);
        hasher.write_u16(tenant.0);
        (hasher.finish() as usize) & (self.owners.len() - 1)
    }

    fn find(&self, set: usize, tenant: TenantId, sender: SenderId) -> Option<usize> {
        let of =
            |owner: &Owner| owner.used != 0 && owner.sender == sender && owner.tenant == tenant;
        self.owners[set].iter().position(of).map(|way| set * WAYS + way)
    }

    /// Opens a datagram of a sender without an entry. The sender replaces the least recently used
    /// one, once its datagram was verified.
    fn open_new(
        &mut self,
        set: usize,
        envelope: &Envelope,
        datagram: &mut [u8],
    ) -> Result<usize, SealRefused> {
        let (tenant, sender) = (envelope.tenant, envelope.sender);
        let found = self.tenants.binary_search_by_key(&tenant, Keys::tenant);
        let keys = &self.tenants[found.map_err(|_| SealRefused::Tenant)?];
        let opening = keys.requests(sender);
        if !opening.open(envelope, datagram) {
            return Err(SealRefused::Forged);
        }
        let sealing = keys.answers(sender, self.node);
        let ways = &mut self.owners[set];
        let oldest = (0..WAYS).min_by_key(|&way| ways[way].used).expect("there are ways");
        ways[oldest] = Owner { tenant, sender, used: self.turn };
        let at = set * WAYS + oldest;
        self.held[at] = Some(Held { opening, sealing, window: ReplayWindow::EMPTY });
        Ok(at)
    }
}

impl Seal for NodeSeal {
    fn open(&mut self, envelope: &Envelope, datagram: &mut [u8]) -> Result<(), SealRefused> {
        let (tenant, sender, number) = (envelope.tenant, envelope.sender, envelope.sequence);
        let set = self.set_of(tenant, sender);
        let at = match self.find(set, tenant, sender) {
            Some(at) => {
                let held = self.held[at].as_ref().expect("an owner's keys are held");
                // The replay check comes first, because it is cheaper.
                if !held.window.is_new(number) {
                    return Err(SealRefused::Replayed);
                }
                if !held.opening.open(envelope, datagram) {
                    return Err(SealRefused::Forged);
                }
                at
            }
            None => self.open_new(set, envelope, datagram)?,
        };
        self.turn += 1;
        self.owners[set][at % WAYS].used = self.turn;
        self.held[at].as_mut().expect("an owner's keys are held").window.came(number);
        self.last = at;
        Ok(())
    }

    fn seal(&mut self, answer: &Envelope, datagram: &mut [u8]) {
        let held = self.held[self.last].as_ref().expect("a datagram was opened");
        held.sealing.seal(answer, datagram);
    }
}
