//! Calls after which another program, or the C library itself, uses a socket: its connection
//! returns to the kernel before.

use crate::calls::{next, result};
use crate::conn::{self, End, Use};
use crate::offer::VARIABLE;
use crate::{close, rack, sys};

type Text = *const u8;
type Texts = *const *const u8;

/// A program is meant to use its standard streams, also those that are sockets.
const STANDARD_LAST: i32 = 2;

unsafe extern "C" {
    static environ: Texts;
}

/// True if a program with this environment loads this library, unless it is static.
fn loads_library(environment: Texts) -> bool {
    let has = |name: &[u8]| rack::find(environment, name).is_some_and(|value| !value.is_empty());
    has(VARIABLE.as_bytes()) && has(b"LD_PRELOAD")
}

fn each_connection(use_: impl Fn(&Use, &End, bool)) {
    const F_GETFD: usize = 1;
    const CLOEXEC: isize = 1;
    if !rack::is_on() {
        return;
    }
    for fd in 0..conn::highest_descriptor() {
        let Some(used) = conn::connection(fd) else { continue };
        let Some(end) = used.end() else { continue };
        let flags = sys::fcntl(fd, F_GETFD, 0);
        if flags >= 0 {
            use_(&used, end, flags & CLOEXEC == 0);
        }
    }
}

/// Returns the connections whose descriptors another program will have.
fn before_program(environment: Texts, replaces: bool) {
    let loads = loads_library(environment);
    each_connection(|used, end, stays| {
        if stays {
            if !end.is_kernel() {
                close::leave(used, end);
            }
            // A socket that other processes have, too, may be inherited by accident alone.
            if !loads && replaces && !rack::is_borrowed() && close::is_sole(end) {
                close::strand(used.fd);
            }
        } else if replaces && !rack::is_borrowed() {
            close::drop_at_exec(used, end);
        }
    });
    if !loads {
        (0..=STANDARD_LAST).for_each(close::strand);
    }
}

/// The program goes on: none was executed.
fn after_failure(replaces: bool) {
    if replaces && !rack::is_borrowed() {
        each_connection(|_, end, stays| {
            if !stays {
                close::keep_after_exec(end);
            }
        });
    }
}

macro_rules! before {
    ($name:ident, $text:literal, $environment:expr, $replaces:literal,
     ($($argument:ident: $kind:ty),*)) => {
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($argument: $kind),*) -> i32 {
            type Real = unsafe extern "C" fn($($kind),*) -> i32;
            // SAFETY: the C library's function has this type, and gets the program's arguments.
            unsafe {
                let environment = $environment;
                let environment = if environment.is_null() { environ } else { environment };
                before_program(environment, $replaces);
                let result = match next::<Real>($text) {
                    Some(real) => real($($argument),*),
                    None => result(-38) as i32,
                };
                after_failure($replaces);
                result
            }
        }
    };
}

before!(execve, c"execve", environment, true,
    (path: Text, arguments: Texts, environment: Texts));
before!(execv, c"execv", environ, true, (path: Text, arguments: Texts));
before!(execvp, c"execvp", environ, true, (file: Text, arguments: Texts));
before!(execvpe, c"execvpe", environment, true,
    (file: Text, arguments: Texts, environment: Texts));
before!(fexecve, c"fexecve", environment, true, (fd: i32, arguments: Texts, environment: Texts));
before!(posix_spawn, c"posix_spawn", environment, false, (process: usize, path: Text,
    actions: usize, attributes: usize, arguments: Texts, environment: Texts));
before!(posix_spawnp, c"posix_spawnp", environment, false, (process: usize, file: Text,
    actions: usize, attributes: usize, arguments: Texts, environment: Texts));

/// The C library's streams call the kernel by themselves.
#[unsafe(no_mangle)]
unsafe extern "C" fn fdopen(fd: i32, mode: Text) -> usize {
    type Real = unsafe extern "C" fn(i32, Text) -> usize;
    if let Some(used) = conn::connection(fd).filter(|_| !mode.is_null()) {
        used.end().map(|end| close::leave(&used, end));
        // SAFETY: the mode is a text that ends with a zero.
        let mode = unsafe { core::ffi::CStr::from_ptr(mode.cast()).to_bytes() };
        // A stream does not find bytes that were put aside.
        if mode.contains(&b'r') || mode.contains(&b'+') {
            close::strand(fd);
        }
    }
    // SAFETY: the C library's function has this type.
    unsafe { next::<Real>(c"fdopen").map_or(0, |real| real(fd, mode)) }
}
