//! Distinguishes the process that created an object from its forks.

use std::process;

use memmap2::MmapMut;

use crate::kernel;

/// Identifies the process that created it. A fork has copies of everything, including numbers that
/// must be used once, and sockets and rings that belong to the parent.
///
/// It is a page that the kernel fills with zeros in every fork, whatever call makes the fork. A
/// check is thus a load and no system call. On kernels without such pages (before Linux 4.14), it
/// compares the process number.
#[derive(Debug)]
pub struct Maker {
    page: Option<MmapMut>,
    process: u32,
}

impl Maker {
    /// Identifies this process.
    #[must_use]
    pub fn new() -> Maker {
        let page = MmapMut::map_anon(1).ok().and_then(|mut page| {
            kernel::wipe_on_fork(&mut page).ok()?;
            page[0] = 1;
            Some(page)
        });
        Maker { page, process: process::id() }
    }

    /// True in the process that created it, false in a fork.
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
            // SAFETY: the child reads memory, and ends.
            let child = unsafe { libc::fork() };
            if child == 0 {
                let right = !maker.is_here() && Maker::new().is_here();
                // SAFETY: the call ends the child at once.
                unsafe { libc::_exit(i32::from(!right)) };
            }
            let mut status = -1;
            // SAFETY: the call writes the status, which lives through the call.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            assert_eq!(status, 0);
            assert!(maker.is_here());
        }
    }
}
