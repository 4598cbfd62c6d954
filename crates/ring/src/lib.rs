//! Ethernet frames from and to one interface, received through a ring that is shared with the
//! kernel (AF_PACKET). The crate does not interpret their content. All unsafe code towards the
//! kernel is here, behind [`Ring`] and [`Maker`].

mod alarm;
mod filter;
mod interface;
mod kernel;
mod maker;
mod ring;

pub use alarm::Alarm;
pub use filter::{Field, Filter};
pub use interface::Interface;
pub use maker::Maker;
pub use ring::{Ring, RingError, Waiter};
