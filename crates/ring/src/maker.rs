//! The process that made something, told from its forks.

use std::process;

use memmap2::MmapMut;

use crate::kernel;

/// Knows the process that made it. A fork has a copy of everything: of what must be used once, and
/// of sockets and rings that stay the parent's.
///
/// It is a page that the kernel fills with zeros in every fork, whatever call made that, so that to
/// ask costs a load and no call of the kernel. Where the kernel knows no such pages (before Linux
/// 4.14), it asks for the number of the process.
#[derive(Debug)]
pub struct Maker {
    page: Option<MmapMut>,
    process: u32,
}

impl Maker {
    /// Of this process.
    #[must_use]
    pub fn new() -> Maker {
        let page = MmapMut::map_anon(1).ok().and_then(|mut page| {
            kernel::wipe_on_fork(&mut page).ok()?;
            page[0] = 1;
            Some(page)
        });
        Maker { page, process: process::id() }
    }

    /// Whether this is the process that made it, and no fork.
    #[inline]
    #[must_use]
    pub fn is_here(&self) -> bool {
        match &self.page {
            Some(page) => kernel::first(page) == 1,
            None => process::id() == self.process,
        }
    }
}

impl Default for Maker {
    fn default() -> Maker {
        Maker::new()
    }
}

#[cfg(test)]
mod tests {
    use nix::libc;

    use super::*;

    #[test]
    fn a_fork_is_not_the_process_that_made_it_and_makes_its_own() {
        let by_number = Maker { page: None, process: process::id() };
        for maker in [Maker::new(), by_number] {
            assert!(maker.is_here());
            // SAFETY: the child looks at memory, and ends.
            let child = unsafe { libc::fork() };
            if child == 0 {
                let right = !maker.is_here() && Maker::new().is_here();
                // SAFETY: it ends the child at once.
                unsafe { libc::_exit(i32::from(!right)) };
            }
            let mut status = -1;
            // SAFETY: the status is written, which lives through the call.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            assert_eq!(status, 0);
            assert!(maker.is_here());
        }
    }
}
