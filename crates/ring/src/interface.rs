//! An interface of this machine.

use std::io;
use std::os::fd::AsFd;

use nix::libc::{
    ARPHRD_ETHER, ARPHRD_LOOPBACK, IFF_LOOPBACK, IFF_UP, SIOCGIFFLAGS, SIOCGIFHWADDR, SIOCGIFINDEX,
    SIOCGIFMTU, c_ulong,
};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use crate::kernel::ask;

/// An interface's properties when they were read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Index, which is unique even if another interface gets its name.
    pub index: u32,
    /// MAC address.
    pub mac: [u8; 6],
    /// Longest payload of a frame in octets.
    pub mtu: usize,
    /// True if nothing on it leaves the machine.
    pub is_loopback: bool,
    /// True if it is up.
    pub is_up: bool,
}

impl Interface {
    /// Reads the properties of an interface, which needs no privilege.
    ///
    /// # Errors
    /// The name does not exist ([`io::ErrorKind::NotFound`]), or the interface does not carry
    /// Ethernet ([`io::ErrorKind::Unsupported`]).
    pub fn find(name: &str) -> io::Result<Interface> {
        let any = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
        Interface::find_by(&any, name)
    }

    /// As [`Interface::find`], in the network namespace of a socket.
    pub(crate) fn find_by(socket: &impl AsFd, name: &str) -> io::Result<Interface> {
        let asked = |question: c_ulong| {
            ask(socket, name, question).map_err(|error| match error.kind() {
                io::ErrorKind::InvalidInput => io::ErrorKind::NotFound.into(),
                _ if error.raw_os_error() == Some(nix::errno::Errno::ENODEV as i32) => {
                    io::ErrorKind::NotFound.into()
                }
                _ => error,
            })
        };
        let (index, mtu) = (asked(SIOCGIFINDEX)?, asked(SIOCGIFMTU)?);
        let (flags, address) = (asked(SIOCGIFFLAGS)?, asked(SIOCGIFHWADDR)?);
        // SAFETY: the kernel has written the answer to each question into that part of the request.
        let (index, mtu, flags, address) = unsafe {
            (
                index.ifr_ifru.ifru_ifindex,
                mtu.ifr_ifru.ifru_mtu,
                i32::from(flags.ifr_ifru.ifru_flags),
                address.ifr_ifru.ifru_hwaddr,
            )
        };
        if ![ARPHRD_ETHER, ARPHRD_LOOPBACK].contains(&address.sa_family) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let mut mac = [0; 6];
        for (place, octet) in mac.iter_mut().zip(address.sa_data) {
            *place = octet as u8;
        }
        Ok(Interface {
            name: name.to_owned(),
            index: u32::try_from(index).unwrap_or(0),
            mac,
            mtu: usize::try_from(mtu).unwrap_or(0),
            is_loopback: flags & IFF_LOOPBACK != 0,
            is_up: flags & IFF_UP != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_is_found_and_no_other_name() {
        let lo = Interface::find("lo").expect("every machine has it");
        assert!(lo.is_loopback && lo.index > 0 && lo.mtu >= 1500, "{lo:?}");
        assert_eq!(lo.mac, [0; 6]);
        for name in ["no-such-one", "", "a-name-of-an-interface-that-is-too-long"] {
            let error = Interface::find(name).expect_err("there is none");
            assert_eq!(error.kind(), io::ErrorKind::NotFound, "{name}");
        }
    }
}
