//! The Unix socket for operators: the node's end, and a client's question.

use std::fs;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Instant;

use nix::sys::socket::sockopt::SendTimeout;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, UnixAddr, connect, listen, setsockopt, socket,
};
use nix::sys::stat::{Mode, fchmod};
use nix::sys::time::TimeVal;
use thiserror::Error;

use super::desk::ANSWER_WITHIN;
use super::{ControlAnswer, ControlQuestion};

/// Connections that wait to be accepted.
const BACKLOG: i32 = 64;
/// The kernel's `sun_path`, without the zero at its end.
const PATH_BYTES_MAX: usize = 107;
/// Most octets of an answer: more than all processes of a node take.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// A name in the file system. Dropping it removes the name, unless another socket has taken it.
pub(super) struct Bound {
    path: PathBuf,
    /// Device and inode of the socket.
    file: Option<(u64, u64)>,
}

impl Drop for Bound {
    fn drop(&mut self) {
        if self.file.is_some() && identity(&self.path) == self.file {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

/// Binds a socket to a path. A socket left behind by a killed node is replaced.
pub(super) fn bind(path: &Path) -> io::Result<(UnixListener, Bound)> {
    let address = address(path)?;
    if let Ok(found) = fs::symlink_metadata(path) {
        if !found.file_type().is_socket() {
            let problem = "a file that is no socket has this name; it must be free";
            return Err(io::Error::new(ErrorKind::AlreadyExists, problem));
        }
        // The probe does not block: a live node that does not accept also has the path.
        let probe = unix(SockFlag::SOCK_NONBLOCK)?;
        match connect(probe.as_raw_fd(), &address) {
            Err(nix::errno::Errno::ECONNREFUSED) => fs::remove_file(path)?,
            Err(nix::errno::Errno::EAGAIN) | Ok(()) => {
                return Err(io::Error::new(ErrorKind::AddrInUse, "another node has it"));
            }
            Err(error) => return Err(error.into()),
        }
    }
    let listener = unix(SockFlag::SOCK_NONBLOCK)?;
    // The mode is set before the name exists, so that no other user can ever connect.
    fchmod(&listener, Mode::S_IRUSR | Mode::S_IWUSR)?;
    nix::sys::socket::bind(listener.as_raw_fd(), &address)?;
    let bound = Bound { path: path.to_owned(), file: identity(path) };
    listen(&listener, Backlog::new(BACKLOG)?)?;
    Ok((listener.into(), bound))
}

fn unix(flags: SockFlag) -> io::Result<OwnedFd> {
    Ok(socket(AddressFamily::Unix, SockType::Stream, flags | SockFlag::SOCK_CLOEXEC, None)?)
}

fn address(path: &Path) -> io::Result<UnixAddr> {
    let bytes = path.as_os_str().as_bytes();
    if bytes.is_empty() || bytes.len() > PATH_BYTES_MAX || bytes.contains(&0) {
        let found = bytes.len();
        let problem = format!("a path of {found} B: a socket's must have 1 to {PATH_BYTES_MAX}");
        return Err(io::Error::new(ErrorKind::InvalidInput, problem));
    }
    Ok(UnixAddr::new(path)?)
}

/// The reason why an operator has no answer; each is one line for people, without the path.
#[derive(Debug, Error)]
pub enum AskError {
    /// There is no socket.
    #[error("no such socket: the node must run on this machine with this --control")]
    Missing,
    /// The socket was left by a node that was killed.
    #[error("no node serves this socket: the node must run")]
    Dead,
    /// The user is not an operator.
    #[error("permission denied: the user must be root or the node's own")]
    NotAllowed,
    /// The node does not answer.
    #[error("no answer within {} s: the node must not be stopped", ANSWER_WITHIN.as_secs())]
    Silent,
    /// The node ended meanwhile.
    #[error("the node ended before it answered")]
    Ended,
    /// The answer is not that of a node of this version.
    #[error("the answer is malformed: the socket must be a node's: {0}")]
    Malformed(String),
    /// The system returned an error.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Sends a question to a node that runs on this machine.
///
/// # Errors
/// [`AskError`].
pub fn ask(path: &Path, question: ControlQuestion) -> Result<ControlAnswer, AskError> {
    let end = Instant::now() + ANSWER_WITHIN;
    let fd = unix(SockFlag::empty())?;
    // The timeout also bounds connecting: a node that accepts nothing has a full backlog.
    setsockopt(&fd, SendTimeout, &TimeVal::new(ANSWER_WITHIN.as_secs() as i64, 0))
        .map_err(io::Error::from)?;
    connect(fd.as_raw_fd(), &address(path)?).map_err(|error| of_io(error.into()))?;
    let mut stream = UnixStream::from(fd);
    let mut line = serde_json::to_string(&question).map_err(io::Error::from)?;
    line.push('\n');
    match stream.write_all(line.as_bytes()) {
        // A node that refuses this user closes the connection before it reads.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
        sent => sent.map_err(of_io)?,
    }
    let mut answer = Vec::new();
    let mut some = vec![0; 64 << 10];
    while !answer.ends_with(b"\n") {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(AskError::Silent);
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut some) {
            Ok(0) => return Err(AskError::Ended),
            Ok(bytes) => answer.extend_from_slice(&some[..bytes]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(of_io(error)),
        }
        if answer.len() as u64 > ANSWER_BYTES_MAX {
            return Err(AskError::Malformed(format!("more than {ANSWER_BYTES_MAX} B")));
        }
    }
    serde_json::from_slice(&answer).map_err(|error| AskError::Malformed(error.to_string()))
}

fn of_io(error: io::Error) -> AskError {
    match error.kind() {
        ErrorKind::NotFound => AskError::Missing,
        ErrorKind::ConnectionRefused => AskError::Dead,
        ErrorKind::PermissionDenied => AskError::NotAllowed,
        ErrorKind::WouldBlock | ErrorKind::TimedOut => AskError::Silent,
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => AskError::Ended,
        _ => AskError::Io(error),
    }
}
