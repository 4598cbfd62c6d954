//! An interface of this machine.

use std::io;
use std::os::fd::AsFd;

use nix::libc::{
    ARPHRD_ETHER, ARPHRD_LOOPBACK, IFF_LOOPBACK, IFF_UP, SIOCGIFFLAGS, SIOCGIFHWADDR, SIOCGIFINDEX,
    SIOCGIFMTU, c_ulong,
};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use crate::kernel::ask;

/// What an interface was when it was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its number, which another one of the same name has not.
    pub index: u32,
    /// Its address.
    pub mac: [u8; 6],
    /// Longest payload of a frame.
    pub mtu: usize,
    /// Whether nothing of it leaves the machine.
    pub is_loopback: bool,
    /// Whether it is up.
    pub is_up: bool,
}

impl Interface {
    /// Looks at the interface of that name, which needs no privilege.
    ///
    /// # Errors
    /// There is none of that name ([`io::ErrorKind::NotFound`]), or it carries no Ethernet
    /// ([`io::ErrorKind::Unsupported`]).
    pub fn find(name: &str) -> io::Result<Interface> {
        let any = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
        Interface::find_by(&any, name)
    }

    /// The same in the network of a socket.
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
        // SAFETY: the kernel has answered each question in that question's part of the request.
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
