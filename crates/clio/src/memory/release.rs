//! Release of memory: an allocation with all its shares, one share, or everything that a process
//! has.

use core::task::Poll;

use super::map::AddressMap;
use super::page::{PageKey, SpaceId};
use super::ranges::Kind;
use super::task::Steps;

/// Number of steps that a range costs beside its pages.
const RANGE_STEPS: u64 = 4;

/// A held range whose pages are being removed.
#[derive(Debug)]
pub(super) struct Release {
    space: SpaceId,
    first: u64,
    /// Number of pages that were removed.
    done: u64,
    /// A share of the range, which is removed first.
    share: Option<Box<Release>>,
}

impl Release {
    /// Releases a range that the task holds.
    pub(super) fn of(space: SpaceId, first: u64) -> Release {
        Release { space, first, done: 0, share: None }
    }

    /// Continues; at the end returns the number of memory pages that lost their owner. It waits
    /// while another task works on a share of the range.
    pub(super) fn step(&mut self, map: &mut AddressMap, steps: &mut Steps) -> Poll<u64> {
        loop {
            if steps.are_over() {
                return Poll::Pending;
            }
            if let Some(share) = &mut self.share {
                if share.step(map, steps).is_pending() {
                    return Poll::Pending;
                }
                self.share = None;
            }
            let range = map.ranges_of(self.space).get(self.first).expect("it is held");
            let pages = range.pages;
            match &range.kind {
                Kind::Own { shares } => {
                    if let Some(&(with, first)) = shares.last() {
                        if !map.ranges_of(with).hold(first) {
                            return Poll::Pending;
                        }
                        self.share = Some(Box::new(Release::of(with, first)));
                        continue;
                    }
                    if self.remove_pages(map, steps, pages, true).is_pending() {
                        return Poll::Pending;
                    }
                    map.ranges_of(self.space).remove(self.first);
                    return Poll::Ready(pages);
                }
                &Kind::Shared { owner, first: owned } => {
                    if self.remove_pages(map, steps, pages, false).is_pending() {
                        return Poll::Pending;
                    }
                    map.ranges_of(self.space).remove(self.first);
                    map.ranges_of(owner).forget_share(owned, (self.space, self.first));
                    return Poll::Ready(0);
                }
            }
        }
    }

    fn remove_pages(
        &mut self,
        map: &mut AddressMap,
        steps: &mut Steps,
        pages: u64,
        owns: bool,
    ) -> Poll<()> {
        let before = self.done;
        while self.done < pages && !steps.are_over() {
            steps.take(1);
            map.remove_page(PageKey::new(self.space, self.first + self.done), owns);
            self.done += 1;
        }
        if owns {
            map.reserved_pages -= self.done - before;
            map.ranges_of(self.space).give_back(self.first, self.done - before);
        }
        if self.done < pages {
            return Poll::Pending;
        }
        steps.take(RANGE_STEPS);
        Poll::Ready(())
    }
}

/// All ranges of a space, which are being removed.
#[derive(Debug)]
pub(super) struct End {
    space: SpaceId,
    release: Option<Release>,
    pages: u64,
}

impl End {
    pub(super) fn of(space: SpaceId) -> End {
        End { space, release: None, pages: 0 }
    }

    /// Continues; at the end returns the number of memory pages that lost their owner. It waits
    /// while another task works on a range of the space.
    pub(super) fn step(&mut self, map: &mut AddressMap, steps: &mut Steps) -> Poll<u64> {
        loop {
            if let Some(release) = &mut self.release {
                match release.step(map, steps) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(pages) => self.pages += pages,
                }
                self.release = None;
            }
            let Some(first) = map.ranges_of(self.space).first() else {
                return Poll::Ready(self.pages);
            };
            if !map.ranges_of(self.space).hold(first) {
                return Poll::Pending;
            }
            self.release = Some(Release::of(self.space, first));
        }
    }
}
