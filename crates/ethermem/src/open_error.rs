//! Why a URL opens no pool.

/// Why a URL opens no pool. A retry cannot help, but where a node is not reached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// There is no `scheme:`.
    #[error("`{url}`: allowed are {allowed}")]
    NoScheme {
        /// What was given.
        url: String,
        /// What would do.
        allowed: String,
    },
    /// The scheme is not known.
    #[error("scheme `{scheme}`: allowed are {allowed}")]
    UnknownScheme {
        /// What was given.
        scheme: String,
        /// What would do.
        allowed: String,
    },
    /// The scheme is known, and this build leaves it out.
    #[error("scheme `{scheme}`: this build leaves it out: build with the feature `{feature}`")]
    NotBuilt {
        /// What was given.
        scheme: &'static str,
        /// The feature of the crate `ethermem`, and of the C library, that has it.
        feature: &'static str,
    },
    /// `sim:` has no fabric of this name.
    #[error("fabric `{fabric}`: allowed are {allowed}")]
    UnknownFabric {
        /// What was given.
        fabric: String,
        /// Every name.
        allowed: String,
    },
    /// Behind the scheme of `local:` stands something.
    #[error("`{scheme}:` has no place, and `{found}` was given")]
    Place {
        /// Which.
        scheme: &'static str,
        /// What was given.
        found: String,
    },
    /// Behind `udp:` or `node:` stands no node.
    #[error(
        "`{scheme}:{found}`: allowed are {scheme}://HOST:PORT and {scheme}://[IPV6]:PORT, port 1 \
         to 65535"
    )]
    NoNode {
        /// Which.
        scheme: &'static str,
        /// What was given.
        found: String,
    },
    /// Behind `ring:` stands no place on raw Ethernet.
    #[error(
        "`ring:{found}`: allowed are ring://INTERFACE[:PORT] and ring://INTERFACE[:PORT]/MAC, port \
         1 to 65535"
    )]
    NoRing {
        /// What was given.
        found: String,
    },
    /// The scheme has no such parameter.
    #[error("parameter `{name}`: allowed are {allowed}")]
    UnknownParameter {
        /// What was given.
        name: String,
        /// Every name.
        allowed: String,
    },
    /// The parameter cannot be so.
    #[error("parameter `{name}`: {problem}")]
    BadParameter {
        /// Which.
        name: String,
        /// What was found and what is allowed.
        problem: String,
    },
    /// The fabric, or what goes on beside, cannot be so.
    #[error("{problem}")]
    NotAllowed {
        /// The key of a scenario that a parameter stands for, what was found, what is allowed.
        problem: String,
    },
    /// The memory node is not there, or does not answer. A retry may help.
    #[error("{node}: {problem}")]
    Unreachable {
        /// Where it should be.
        node: String,
        /// What was found.
        problem: String,
    },
}
