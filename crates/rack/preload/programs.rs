//! Calls after which another program, or the C library itself, uses a socket: its connection
//! returns to the kernel before.

use core::sync::atomic::Ordering;

use crate::calls::{next, result};
use crate::conn::{self, stage};
use crate::{close, rack, sys};

type Text = *const u8;
type Texts = *const *const u8;

/// Returns the connections whose descriptors another program will have.
fn before_program() {
    const F_GETFD: usize = 1;
    const CLOEXEC: isize = 1;
    if !rack::is_on() {
        return;
    }
    for fd in 0..conn::highest_descriptor() {
        let Some(used) = conn::connection(fd) else { continue };
        let Some(end) = used.end() else { continue };
        let flags = sys::fcntl(fd, F_GETFD, 0);
        let is_early = end.stage.load(Ordering::Acquire) != stage::KERNEL;
        if flags >= 0 && flags & CLOEXEC == 0 && is_early {
            close::leave(&used, end);
        }
    }
}

macro_rules! before {
    ($name:ident, $text:literal, ($($argument:ident: $kind:ty),*)) => {
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($argument: $kind),*) -> i32 {
            before_program();
            type Real = unsafe extern "C" fn($($kind),*) -> i32;
            // SAFETY: the C library's function has this type, and gets the program's arguments.
            unsafe {
                match next::<Real>($text) {
                    Some(real) => real($($argument),*),
                    None => result(-38) as i32,
                }
            }
        }
    };
}

before!(execve, c"execve", (path: Text, arguments: Texts, environment: Texts));
before!(execv, c"execv", (path: Text, arguments: Texts));
before!(execvp, c"execvp", (file: Text, arguments: Texts));
before!(execvpe, c"execvpe", (file: Text, arguments: Texts, environment: Texts));
before!(fexecve, c"fexecve", (fd: i32, arguments: Texts, environment: Texts));
before!(posix_spawn, c"posix_spawn", (process: usize, path: Text, actions: usize,
    attributes: usize, arguments: Texts, environment: Texts));
before!(posix_spawnp, c"posix_spawnp", (process: usize, file: Text, actions: usize,
    attributes: usize, arguments: Texts, environment: Texts));

/// The C library's streams call the kernel by themselves.
#[unsafe(no_mangle)]
unsafe extern "C" fn fdopen(fd: i32, mode: Text) -> usize {
    type Real = unsafe extern "C" fn(i32, Text) -> usize;
    if let Some(used) = conn::connection(fd) {
        used.end().map(|end| close::leave(&used, end));
    }
    // SAFETY: the C library's function has this type.
    unsafe { next::<Real>(c"fdopen").map_or(0, |real| real(fd, mode)) }
}
