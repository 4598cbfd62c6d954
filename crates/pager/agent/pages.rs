//! Pages that the agent takes out of the program, or makes its own, when the pager orders it.

use core::ptr::{addr_of, addr_of_mut};

use super::protocol::{BATCH_PAGES, Done, Order, PAGE_BYTES, request};
use super::{Own, STAGING_BYTES, call3, ioctl, sys};

/// Writes to pages without changing their content, so that they are no longer shared with a fork.
pub fn unshare(order: &Order, done: &mut Done) {
    for place in 0..(order.count as usize).min(BATCH_PAGES) {
        let page = order.pages[place] as usize;
        let result = call3(sys::MADVISE, page, PAGE_BYTES, sys::POPULATE_WRITE);
        done.errors[place] = -(result.min(0)) as i32;
    }
}

/// Moves the pages to the staging area, and empties that, so that they leave local memory.
pub fn take(own: &Own, order: &Order, done: &mut Done) {
    let staging = [own.staging as u64, STAGING_BYTES as u64];
    let range = [staging[0], staging[1], request::MODE_MISSING, 0];
    let registered = ioctl(own.fault, request::REGISTER, &range);
    let count = (order.count as usize).min(BATCH_PAGES);
    let mut place = 0;
    while place < count {
        let pages = if registered < 0 { 0 } else { run_of(order, place, count) };
        // Some pages of a run may not be movable. The first of them is retried alone, to get its
        // error.
        let mut moved = move_pages(own, order, place, pages);
        if moved.is_err() && pages > 1 {
            moved = move_pages(own, order, place, 1);
        }
        match moved {
            Ok(pages) => {
                show(own, place, pages);
                place += pages;
            }
            Err(error) => {
                done.errors[place] = -error as i32;
                place += 1;
            }
        }
    }
    // While the area is not registered, emptying it causes no event that the pager would have to
    // read.
    ioctl(own.fault, request::UNREGISTER, &staging);
    call3(sys::MADVISE, own.staging, STAGING_BYTES, sys::DONTNEED);
}

/// Copies moved pages to the memory shared with the pager.
fn show(own: &Own, place: usize, pages: usize) {
    let (at, bytes) = (place * PAGE_BYTES, pages * PAGE_BYTES);
    // SAFETY: both areas have room for a batch, and only this thread uses them.
    unsafe {
        core::ptr::copy_nonoverlapping(
            (own.staging + at) as *const u8,
            (own.shown + at) as *mut u8,
            bytes,
        );
    }
}

/// Number of pages from `place` on that are contiguous.
fn run_of(order: &Order, place: usize, count: usize) -> usize {
    let mut pages = 1;
    while place + pages < count
        && order.pages[place + pages] == order.pages[place] + (pages * PAGE_BYTES) as u64
    {
        pages += 1;
    }
    pages
}

/// Moves `pages` pages by one call, and returns how many were moved, at least one.
fn move_pages(own: &Own, order: &Order, place: usize, pages: usize) -> Result<usize, isize> {
    if pages == 0 {
        return Err(sys::EAGAIN);
    }
    let (to, bytes) = (own.staging + place * PAGE_BYTES, pages * PAGE_BYTES);
    let mut words = [to as u64, order.pages[place], bytes as u64, request::MOVE_MODE, 0];
    let words = addr_of_mut!(words);
    let result = call3(sys::IOCTL, own.fault, request::MOVE as usize, words as usize);
    // SAFETY: the kernel wrote the number of bytes moved, or an error, into the word.
    let moved = unsafe { addr_of!((*words)[4]).read_volatile() } as i64;
    match (result, moved) {
        (0, _) => Ok(pages),
        (_, 1..) => Ok(moved as usize / PAGE_BYTES),
        _ => Err(result),
    }
}
