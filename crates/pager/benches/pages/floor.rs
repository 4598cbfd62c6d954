//! The bare sequences of system calls, without table, policy or recovery.

use std::io::Result;
use std::net::UdpSocket;
use std::time::Instant;

use ethermem_pager::protocol::request;
use nix::libc;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;

pub(crate) const PAGE_BYTES: usize = 4096;
const RUN_PAGES: usize = 16;

/// What the bare sequences cost on this machine.
pub(crate) struct Floor {
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    /// Pages per second, put 16 to a call.
    pub(crate) copies: f64,
}

pub(crate) fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * share) as usize]
}

pub(crate) fn median(values: &mut [f64]) -> f64 {
    quantile(values, 0.5)
}

pub(crate) fn bind_to(processor: usize) -> Result<()> {
    let mut set = CpuSet::new();
    set.set(processor)?;
    Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
}

fn order<const WORDS: usize>(file: i32, code: u64, mut words: [u64; WORDS]) -> i32 {
    // SAFETY: every code states the length of its argument.
    unsafe { libc::ioctl(file, code, words.as_mut_ptr()) }
}

/// Fresh memory whose page faults are reported through the returned file.
fn registered(pages: usize) -> (*mut u8, i32) {
    let bytes = pages * PAGE_BYTES;
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: fresh memory, and a new file.
    let (memory, file) = unsafe {
        let memory = libc::mmap(std::ptr::null_mut(), bytes, rights, flags, -1, 0);
        libc::madvise(memory, bytes, libc::MADV_NOHUGEPAGE);
        (memory.cast::<u8>(), libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC) as i32)
    };
    assert!(file >= 0, "userfaultfd: {}", std::io::Error::last_os_error());
    order(file, request::API, [request::API_VERSION, 0, 0]);
    order(file, request::REGISTER, [memory as u64, bytes as u64, request::MODE_MISSING, 0]);
    (memory, file)
}

/// Runs `work` in a child process and returns its number, by which the caller kills it.
fn beside(work: impl FnOnce()) -> i32 {
    // SAFETY: this process still has one thread.
    let child = unsafe { libc::fork() };
    if child == 0 {
        work();
        // SAFETY: ends the child.
        unsafe { libc::_exit(0) };
    }
    child
}

fn end(child: i32) {
    // SAFETY: the number is that of a child of this process.
    unsafe {
        libc::kill(child, libc::SIGKILL);
        libc::waitpid(child, std::ptr::null_mut(), 0);
    }
}

/// Answers each datagram with a page, without sleeping.
fn serve_pages(socket: &UdpSocket) {
    let (page, mut asked) = ([7u8; PAGE_BYTES], [0u8; 64]);
    loop {
        if let Ok((_, from)) = socket.recv_from(&mut asked) {
            let _ = socket.send_to(&page, from);
        }
    }
}

/// Serves faults: fetches the page and puts it.
fn serve_faults(file: i32, socket: &UdpSocket) {
    let (mut page, mut message) = ([0u8; PAGE_BYTES], [0u64; 4]);
    loop {
        // SAFETY: a message of the kernel has 32 bytes.
        let bytes = unsafe { libc::read(file, message.as_mut_ptr().cast(), 32) };
        if bytes != 32 {
            continue;
        }
        let _ = socket.send(&[1; 64]);
        while socket.recv(&mut page).is_err() {}
        let to = message[2] & !(PAGE_BYTES as u64 - 1);
        order(file, request::COPY, [to, page.as_ptr() as u64, PAGE_BYTES as u64, 0, 0]);
    }
}

/// Measures a fault with a page fetched from another process over UDP, and pages put in runs.
pub(crate) fn measure(pages: usize) -> Result<Floor> {
    let before = nix::sched::sched_getaffinity(Pid::from_raw(0))?;
    let (memory, file) = registered(pages);
    let server = UdpSocket::bind("127.0.0.1:0")?;
    server.set_nonblocking(true)?;
    let client = UdpSocket::bind("127.0.0.1:0")?;
    client.connect(server.local_addr()?)?;
    client.set_nonblocking(true)?;
    let store = beside(|| {
        let _ = bind_to(1);
        serve_pages(&server);
    });
    let pager = beside(|| {
        let _ = bind_to(0);
        serve_faults(file, &client);
    });
    bind_to(0)?;
    let mut times: Vec<f64> = (0..pages)
        .map(|page| {
            let began = Instant::now();
            // SAFETY: the address is inside of the mapping.
            let byte = unsafe { memory.add(page * PAGE_BYTES).read_volatile() };
            assert_eq!(byte, 7, "a wrong page");
            began.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    end(pager);
    end(store);
    let (memory, file) = registered(pages);
    let run = vec![7u8; RUN_PAGES * PAGE_BYTES];
    let mut copies: Vec<f64> = (0..pages / RUN_PAGES)
        .map(|place| {
            let (to, bytes) = (memory as u64 + (place * run.len()) as u64, run.len() as u64);
            let began = Instant::now();
            order(file, request::COPY, [to, run.as_ptr() as u64, bytes, 0, 0]);
            RUN_PAGES as f64 / began.elapsed().as_secs_f64()
        })
        .collect();
    sched_setaffinity(Pid::from_raw(0), &before)?;
    Ok(Floor {
        p50_us: median(&mut times),
        p99_us: quantile(&mut times, 0.99),
        copies: median(&mut copies),
    })
}
