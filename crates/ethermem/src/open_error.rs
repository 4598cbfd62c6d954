//! The errors of opening a pool.

/// The reason why a URL opens no pool. A retry can help only where a node was not reached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The URL has no `scheme:`.
    #[error("`{url}`: must be one of {allowed}")]
    NoScheme {
        /// URL that was given.
        url: String,
        /// Schemes that exist.
        allowed: String,
    },
    /// The scheme is unknown.
    #[error("scheme `{scheme}`: must be one of {allowed}")]
    UnknownScheme {
        /// Scheme that was given.
        scheme: String,
        /// Schemes that exist.
        allowed: String,
    },
    /// The scheme exists, but this build leaves it out.
    #[error("scheme `{scheme}`: this build leaves it out: build with the feature `{feature}`")]
    NotBuilt {
        /// Scheme that was given.
        scheme: &'static str,
        /// Feature of the crate `ethermem`, and of the C library, that builds it.
        feature: &'static str,
    },
    /// `sim:` has no fabric of this name.
    #[error("fabric `{fabric}`: must be one of {allowed}")]
    UnknownFabric {
        /// Fabric that was given.
        fabric: String,
        /// Every fabric's name.
        allowed: String,
    },
    /// The scheme takes nothing behind its colon, and something stands there.
    #[error("`{scheme}:` has no place, and `{found}` was given")]
    Place {
        /// Scheme of the URL.
        scheme: &'static str,
        /// Text that was found.
        found: String,
    },
    /// No node stands behind `udp:` or `node:`.
    #[error(
        "`{scheme}:{found}`: must be {scheme}://HOST:PORT or {scheme}://[IPV6]:PORT, port 1 \
         to 65535"
    )]
    NoNode {
        /// Scheme of the URL.
        scheme: &'static str,
        /// Text that was found.
        found: String,
    },
    /// No place on raw Ethernet stands behind `ring:`.
    #[error(
        "`ring:{found}`: must be ring://INTERFACE[:PORT] or ring://INTERFACE[:PORT]/MAC, port \
         1 to 65535"
    )]
    NoRing {
        /// Text that was found.
        found: String,
    },
    /// The scheme has no such parameter.
    #[error("parameter `{name}`: must be one of {allowed}")]
    UnknownParameter {
        /// Parameter that was given.
        name: String,
        /// Every parameter's name.
        allowed: String,
    },
    /// The value of a parameter is not allowed.
    #[error("parameter `{name}`: {problem}")]
    BadParameter {
        /// Name of the parameter.
        name: String,
        /// What was found and what is allowed.
        problem: String,
    },
    /// The configuration of the fabric or of its background traffic is not allowed.
    #[error("{problem}")]
    NotAllowed {
        /// The scenario key of a parameter, what was found, and what is allowed.
        problem: String,
    },
    /// The memory node does not exist or does not respond. A retry may help.
    #[error("{node}: {problem}")]
    Unreachable {
        /// Address of the node.
        node: String,
        /// What was found.
        problem: String,
    },
}
