//! The library that `ethermem rack run` preloads into programs: stream sockets between programs of
//! one rack pass their bytes through shared memory.
//!
//! The kernel's socket stays the program's descriptor. It carries bytes until both ends have the
//! memory and whenever the ring has no room, and one bell byte when the other end may sleep in the
//! kernel. The library uses no standard library, no thread, and no memory of the program's heap, as
//! a signal handler may call it. See docs/internals/rack-sockets.md.

#![no_std]

mod buffers;
mod calls;
mod close;
mod conn;
mod files;
#[path = "../src/ledger.rs"]
mod ledger;
mod left;
#[path = "../src/line.rs"]
mod line;
mod lock;
mod mailbox;
mod nics;
#[path = "../src/offer.rs"]
mod offer;
mod programs;
mod rack;
mod ready;
mod restart;
mod rx;
mod shared;
mod sync;
mod sys;
mod tx;
mod waits;

use core::arch::global_asm;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    const SIGABRT: usize = 6;
    loop {
        // SAFETY: nothing is passed by address.
        unsafe { sys::call4(sys::KILL, rack::process() as usize, SIGABRT, 0, 0) };
    }
}

// The compiled part of `core` refers to this symbol; nothing here unwinds. It is hidden, so that a
// program that unwinds does not bind to it.
global_asm!(
    ".hidden rust_eh_personality",
    ".globl rust_eh_personality",
    "rust_eh_personality:",
    "ud2",
);

type Hook = Option<extern "C" fn()>;

unsafe extern "C" {
    fn __register_atfork(prepare: Hook, parent: Hook, child: Hook, object: *const u8) -> i32;
}

#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn(i32, *const *const u8, *const *const u8) = start;

extern "C" fn start(_: i32, _: *const *const u8, environment: *const *const u8) {
    if rack::configure(environment) {
        rack::enter_process();
        left::adopt_all();
        // SAFETY: the hooks are functions of this library, which is never unloaded.
        unsafe {
            __register_atfork(Some(before_fork), None, Some(after_fork), core::ptr::null());
        }
    }
}

extern "C" fn before_fork() {
    conn::before_fork();
}

extern "C" fn after_fork() {
    rack::enter_process();
    conn::after_fork();
    mailbox::after_fork();
    ready::after_fork();
    shared::after_fork();
}

#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end;

extern "C" fn end() {
    rack::leave_process();
}
