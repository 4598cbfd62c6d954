//! A flow over many NICs: segments on subflows at the sender, resequencing at the receiver (4.4).

mod ecmp;
mod receiver;
mod round_trips;
mod sender;

pub use ecmp::{FiveTuple, TOEPLITZ_KEY, pinned_path};
pub use receiver::{Arrival, Delivery, Receiver};
pub use round_trips::RoundTrips;
pub use sender::{AckFault, Sender, SenderConfig, Spread, Transmit, WindowFull};

use thiserror::Error;

/// Why an end of a stream cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum StreamConfigError {
    /// The window's size is out of range.
    #[error("window = {0} segments: must be a power of two from 1 to 65,536")]
    Window(u32),
    /// There must be a subflow.
    #[error("subflows = {0}: must be at least 1")]
    Subflows(u16),
}

fn check_window(segments: u32) -> Result<(), StreamConfigError> {
    let fits = segments.is_power_of_two() && segments <= 1 << 16;
    if fits { Ok(()) } else { Err(StreamConfigError::Window(segments)) }
}
