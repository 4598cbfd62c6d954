//! The configuration of a client.

use ethermem_units::{Bytes, Ns};
use ethermem_wire::clio::{ENVELOPE_BYTES, Protection, REQUEST_BYTES, SenderId, TenantId};
use thiserror::Error;

use super::paths::PATHS_MAX;

/// The parameters of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// The client's id as a sender, drawn at random at each start.
    pub sender: SenderId,
    /// The tenant, whose key and quota apply.
    pub tenant: TenantId,
    /// How datagrams are checked.
    pub protection: Protection,
    /// Maximum datagram bytes that the path may carry in one piece.
    pub datagram_bytes_max: usize,
    /// Datagram bytes that every path carries. Longer datagrams carry operations only after a
    /// probe.
    pub datagram_bytes_base: usize,
    /// Maximum requests in flight to the node.
    pub window_max: u32,
    /// Maximum bytes of answers in flight from the node.
    pub incast_window: Bytes,
    /// A round trip that exceeds the shortest one by more than this shrinks the window.
    pub queueing_target: Ns,
    /// Minimum time after which a request is retried.
    pub retry_after_min: Ns,
    /// Maximum time after which a request is retried.
    pub retry_after_max: Ns,
    /// Time for which an operation is tried: shorter than the node remembers requests.
    pub give_up_after: Ns,
}

/// Why a client cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ClientConfigError {
    /// A datagram must hold a request with some data.
    #[error("datagrams of {0} B: must be {least} to 65,507", least = DATAGRAM_BYTES_MIN)]
    Datagram(usize),
    /// The base must be a datagram's length, and at most the maximum.
    #[error("datagrams of {0} B for certain: must be {DATAGRAM_BYTES_MIN} B to the longest")]
    Base(usize),
    /// There is no path, or there are too many.
    #[error("{0} paths: must be 1 to {PATHS_MAX}")]
    Paths(usize),
    /// The window is zero, so no request could be in flight.
    #[error("a window of 0: must be at least 1")]
    Window,
    /// The incast window is smaller than the answer to the longest request.
    #[error("an incast window of {} B: must be a datagram and more", .0.0)]
    Incast(Bytes),
    /// The minimum must be above zero and at most the maximum, and the maximum below the time to
    /// give up.
    #[error("retries after {min:?} to {max:?}, for {give_up:?}: must be that they grow")]
    Retry {
        /// The minimum time until a retry.
        min: Ns,
        /// The maximum time until a retry.
        max: Ns,
        /// The time to give up.
        give_up: Ns,
    },
}

/// Bytes of a datagram with room for 128 B of data.
const DATAGRAM_BYTES_MIN: usize = ENVELOPE_BYTES + REQUEST_BYTES + 24 + 128;
/// Maximum bytes that a UDP datagram carries.
pub(super) const DATAGRAM_BYTES_MAX: usize = 65_507;

impl ClientConfig {
    pub(crate) fn check(&self) -> Result<(), ClientConfigError> {
        let bytes = self.datagram_bytes_max;
        if !(DATAGRAM_BYTES_MIN..=DATAGRAM_BYTES_MAX).contains(&bytes) {
            return Err(ClientConfigError::Datagram(bytes));
        }
        if !(DATAGRAM_BYTES_MIN..=bytes).contains(&self.datagram_bytes_base) {
            return Err(ClientConfigError::Base(self.datagram_bytes_base));
        }
        if self.window_max == 0 {
            return Err(ClientConfigError::Window);
        }
        if self.incast_window.0 < bytes as u64 {
            return Err(ClientConfigError::Incast(self.incast_window));
        }
        let (min, max, give_up) = (self.retry_after_min, self.retry_after_max, self.give_up_after);
        if Ns::ZERO < min && min <= max && max < give_up {
            Ok(())
        } else {
            Err(ClientConfigError::Retry { min, max, give_up })
        }
    }

    /// Octets for packets in a datagram of this length.
    pub(crate) fn packets_bytes(&self, datagram: usize) -> usize {
        datagram - ENVELOPE_BYTES - self.protection.trailer_bytes()
    }

    /// Octets for packets in the longest datagram.
    pub(crate) fn packets_bytes_max(&self) -> usize {
        self.packets_bytes(self.datagram_bytes_max)
    }
}

#[cfg(test)]
impl ClientConfig {
    /// The smallest valid configuration.
    pub(super) fn least() -> ClientConfig {
        ClientConfig {
            sender: SenderId(1),
            tenant: TenantId(1),
            protection: Protection::Gcm,
            datagram_bytes_max: 1472,
            datagram_bytes_base: 1472,
            window_max: 1,
            incast_window: Bytes(1472),
            queueing_target: Ns(0),
            retry_after_min: Ns(1),
            retry_after_max: Ns(1),
            give_up_after: Ns(2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_cannot_be_is_refused() {
        let config = ClientConfig::least();
        let refused = |change: fn(&mut ClientConfig)| {
            let mut config = config;
            change(&mut config);
            config.check().err()
        };
        assert_eq!(refused(|_| {}), None);
        assert_eq!(config.packets_bytes_max(), 1472 - 32 - 16);
        let datagram = |bytes| Some(ClientConfigError::Datagram(bytes));
        assert_eq!(refused(|c| c.datagram_bytes_max = 207), datagram(207));
        assert_eq!(refused(|c| c.datagram_bytes_max = 65_508), datagram(65_508));
        assert_eq!(refused(|c| c.window_max = 0), Some(ClientConfigError::Window));
        for base in [207, 1473] {
            let config = ClientConfig { datagram_bytes_base: base, ..config };
            assert_eq!(config.check(), Err(ClientConfigError::Base(base)));
        }
        let incast = Bytes(1471);
        assert_eq!(refused(|c| c.incast_window.0 = 1471), Some(ClientConfigError::Incast(incast)));
        for change in [
            (|c| c.retry_after_min = Ns(0)) as fn(&mut ClientConfig),
            |c| c.retry_after_min = Ns(2),
            |c| c.give_up_after = Ns(1),
        ] {
            assert!(matches!(refused(change), Some(ClientConfigError::Retry { .. })));
        }
    }
}
