//! The table of commands, their arities, and their execution.

mod keys;
mod run;
mod scan;
mod session;
mod set;
mod strings;

use std::fmt::Write as _;
use std::ops::ControlFlow;

use ethermem_kv::{Client, KEY_BYTES_MAX};
use tracing::warn;

use crate::info::{State, Touch, add};
use crate::keyspace::{Fault, Keyspace};
use crate::reply::Replies;
use crate::request::Words;

pub(crate) use run::{RUN_MAX, is_plain};
pub(crate) use session::Peer;
pub use strings::REPLY_BYTES_MAX;

/// A command, as `COMMAND` describes it.
pub(crate) struct Command {
    /// Name in capitals.
    pub(crate) name: &'static str,
    /// Number of words including the name; negative if that is a minimum.
    arity: i64,
    flag: &'static str,
    /// Index of the first key, of the last (-1 for the last word), and the step.
    keys: [i64; 3],
    id: Id,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Id {
    Append,
    Auth,
    Client,
    Command,
    Config,
    DbSize,
    IncrBy { sign: i64, by_word: bool },
    Delete,
    Echo,
    Exists,
    Expire { unit_ms: i64, absolute: bool },
    Flush,
    Get,
    GetDel,
    GetEx,
    Hello,
    Info,
    Keys,
    MGet,
    MSet,
    Persist,
    Ping,
    Quit,
    Reset,
    Scan,
    Select,
    Set,
    SetEx { unit_ms: i64 },
    SetNx,
    GetSet,
    StrLen,
    Ttl { unit_ms: u64, absolute: bool },
    Type,
}

const NONE: [i64; 3] = [0; 3];
const ONE: [i64; 3] = [1, 1, 1];
const ALL: [i64; 3] = [1, -1, 1];

const fn command(
    name: &'static str,
    arity: i64,
    flag: &'static str,
    keys: [i64; 3],
    id: Id,
) -> Command {
    Command { name, arity, flag, keys, id }
}

/// The commands, sorted by name.
pub(crate) static COMMANDS: [Command; 45] = [
    command("APPEND", 3, "write", ONE, Id::Append),
    command("AUTH", -2, "fast", NONE, Id::Auth),
    command("CLIENT", -2, "admin", NONE, Id::Client),
    command("COMMAND", -1, "loading", NONE, Id::Command),
    command("CONFIG", -2, "admin", NONE, Id::Config),
    command("DBSIZE", 1, "readonly", NONE, Id::DbSize),
    command("DECR", 2, "write", ONE, Id::IncrBy { sign: -1, by_word: false }),
    command("DECRBY", 3, "write", ONE, Id::IncrBy { sign: -1, by_word: true }),
    command("DEL", -2, "write", ALL, Id::Delete),
    command("ECHO", 2, "fast", NONE, Id::Echo),
    command("EXISTS", -2, "readonly", ALL, Id::Exists),
    command("EXPIRE", -3, "write", ONE, Id::Expire { unit_ms: 1000, absolute: false }),
    command("EXPIREAT", -3, "write", ONE, Id::Expire { unit_ms: 1000, absolute: true }),
    command("EXPIRETIME", 2, "readonly", ONE, Id::Ttl { unit_ms: 1000, absolute: true }),
    command("FLUSHALL", -1, "write", NONE, Id::Flush),
    command("FLUSHDB", -1, "write", NONE, Id::Flush),
    command("GET", 2, "readonly", ONE, Id::Get),
    command("GETDEL", 2, "write", ONE, Id::GetDel),
    command("GETEX", -2, "write", ONE, Id::GetEx),
    command("GETSET", 3, "write", ONE, Id::GetSet),
    command("HELLO", -1, "fast", NONE, Id::Hello),
    command("INCR", 2, "write", ONE, Id::IncrBy { sign: 1, by_word: false }),
    command("INCRBY", 3, "write", ONE, Id::IncrBy { sign: 1, by_word: true }),
    command("INFO", -1, "loading", NONE, Id::Info),
    command("KEYS", 2, "readonly", NONE, Id::Keys),
    command("MGET", -2, "readonly", ALL, Id::MGet),
    command("MSET", -3, "write", [1, -1, 2], Id::MSet),
    command("PERSIST", 2, "write", ONE, Id::Persist),
    command("PEXPIRE", -3, "write", ONE, Id::Expire { unit_ms: 1, absolute: false }),
    command("PEXPIREAT", -3, "write", ONE, Id::Expire { unit_ms: 1, absolute: true }),
    command("PEXPIRETIME", 2, "readonly", ONE, Id::Ttl { unit_ms: 1, absolute: true }),
    command("PING", -1, "fast", NONE, Id::Ping),
    command("PSETEX", 4, "write", ONE, Id::SetEx { unit_ms: 1 }),
    command("PTTL", 2, "readonly", ONE, Id::Ttl { unit_ms: 1, absolute: false }),
    command("QUIT", -1, "fast", NONE, Id::Quit),
    command("RESET", 1, "fast", NONE, Id::Reset),
    command("SCAN", -2, "readonly", NONE, Id::Scan),
    command("SELECT", 2, "fast", NONE, Id::Select),
    command("SET", -3, "write", ONE, Id::Set),
    command("SETEX", 4, "write", ONE, Id::SetEx { unit_ms: 1000 }),
    command("SETNX", 3, "write", ONE, Id::SetNx),
    command("STRLEN", 2, "readonly", ONE, Id::StrLen),
    command("TTL", 2, "readonly", ONE, Id::Ttl { unit_ms: 1000, absolute: false }),
    command("TYPE", 2, "readonly", ONE, Id::Type),
    command("UNLINK", -2, "write", ALL, Id::Delete),
];

const NAME_BYTES_MAX: usize = size_of::<u128>();

/// The names as numbers, in order, so that a lookup needs one comparison per step.
static NAMES: [u128; COMMANDS.len()] = {
    let mut names = [0; COMMANDS.len()];
    let mut at = 0;
    while at < names.len() {
        let name = COMMANDS[at].name.as_bytes();
        let mut padded = [0; NAME_BYTES_MAX];
        padded.split_at_mut(name.len()).0.copy_from_slice(name);
        names[at] = u128::from_be_bytes(padded);
        at += 1;
    }
    names
};

impl Command {
    /// Finds the command of a name in any case.
    fn find(name: &[u8]) -> Option<&'static Command> {
        let mut upper = [0; NAME_BYTES_MAX];
        upper.get_mut(..name.len())?.copy_from_slice(name);
        upper.make_ascii_uppercase();
        let at = NAMES.binary_search(&u128::from_be_bytes(upper)).ok()?;
        // A name with trailing zeros is another name.
        (COMMANDS[at].name.len() == name.len()).then_some(&COMMANDS[at])
    }

    /// The first command of the table with this id.
    fn of(id: Id) -> &'static Command {
        COMMANDS.iter().find(|command| command.id == id).expect("the table has every id")
    }

    /// Index of the command in the table.
    pub(crate) fn place(&self) -> usize {
        let found = COMMANDS.binary_search_by_key(&self.name, |command| command.name);
        found.expect("a command is of the table")
    }

    fn takes(&self, words: usize) -> bool {
        let words = words as i64;
        if self.arity < 0 { words >= -self.arity } else { words == self.arity }
    }

    /// True if the command is refused while there is no store. `PING` also tests for the store.
    fn needs_store(&self) -> bool {
        let about_client = matches!(self.id, Id::Auth | Id::Client | Id::Hello | Id::Reset);
        let about_server = matches!(self.id, Id::Command | Id::Config | Id::Info);
        let plain = matches!(self.id, Id::Echo | Id::Quit | Id::Select);
        !(about_client || about_server || plain)
    }

    /// True if a client may send the command before it has authenticated.
    fn is_for_strangers(&self) -> bool {
        matches!(self.id, Id::Auth | Id::Hello | Id::Quit | Id::Reset)
    }

    /// Length in bytes of the command's longest key.
    fn longest_key(&self, words: Words<'_>) -> Option<usize> {
        let [first, last, step] = self.keys.map(|at| usize::try_from(at).ok());
        let keys = words.from(first.filter(|&first| first > 0)?);
        let most = last.map_or(usize::MAX, |last| last - first.unwrap_or(0) + 1);
        keys.take(most).step_by(step?).map(<[u8]>::len).max()
    }

    /// The keys that a request touches, for its turn.
    fn touch<'w>(&self, words: Words<'w>) -> Touch<'w> {
        let [first, last, step] = self.keys;
        let several = last < 0 && words.count() as i64 > first + step;
        if several || matches!(self.id, Id::Flush | Id::Keys) {
            Touch::Several
        } else if self.flag == "write" && first > 0 {
            Touch::Changes(words.word(first as usize))
        } else {
            Touch::Sees
        }
    }
}

/// The state that a client's command may access.
pub(crate) struct Context<'c> {
    pub(crate) state: &'c State,
    pub(crate) client: &'c mut Client,
    pub(crate) peer: &'c mut Peer,
    pub(crate) replies: &'c mut Replies,
    /// Start of the client's batch, in milliseconds since 1970.
    pub(crate) now_ms: u64,
}

impl Context<'_> {
    fn keyspace(&mut self) -> Keyspace<'_> {
        Keyspace { client: self.client, now_ms: self.now_ms }
    }

    /// Executes one request, with exactly one reply. Breaks if a real memory node gave no response
    /// to this request, or to one that it waited for: one timeout is enough for both.
    pub(crate) async fn execute(&mut self, words: Words<'_>) -> ControlFlow<()> {
        if is_of_http(words.word(0)) {
            self.refuse_http();
            return ControlFlow::Break(());
        }
        let Some(command) = Command::find(words.word(0)) else {
            self.replies.error(&unknown(words));
            return ControlFlow::Continue(());
        };
        if !command.takes(words.count()) {
            let name = command.name.to_ascii_lowercase();
            let text = format!("ERR wrong number of arguments for '{name}' command");
            self.replies.error(&text);
            return ControlFlow::Continue(());
        }
        if self.peer.is_stranger(self.state) && !command.is_for_strangers() {
            self.replies.error("NOAUTH Authentication required.");
            return ControlFlow::Continue(());
        }
        if let Some(bytes) = command.longest_key(words).filter(|&bytes| bytes > KEY_BYTES_MAX) {
            // The check precedes the first change of any key.
            let fault = Fault::Store(ethermem_kv::Error::KeyTooLong { bytes });
            self.replies.error(&fault.text());
            return ControlFlow::Continue(());
        }
        if command.id == Id::Set
            && words.count() == 3
            && self.state.takes_turns()
            && let Some(role) = self.state.together.join(words.word(1), words.word(2))
        {
            return self.set_together(command, words.word(1), role).await;
        }
        let _turn = self.state.turn(command.touch(words)).await;
        // The store may have disappeared while this request waited for its turn.
        if let Some(absence) = self.state.absence().filter(|_| command.needs_store()) {
            self.replies.error(&absence.text());
            return ControlFlow::Continue(());
        }
        let began = self.state.begin(self.client);
        let done = self.dispatch(command, words).await;
        let answered = done.map_or_else(|fault| self.failed(&fault), ControlFlow::Continue);
        self.state.end(self.client, command, began);
        if matches!(command.id, Id::Expire { .. } | Id::GetEx | Id::SetEx { .. })
            || (command.id == Id::Set && words.count() > 3)
        {
            self.state.keys_may_end.set(true);
        }
        answered
    }

    fn failed(&mut self, fault: &Fault) -> ControlFlow<()> {
        fail(self.state, self.replies, fault)
    }

    /// Ends a connection that speaks HTTP, without a reply and before anything behind it, as Redis
    /// does.
    fn refuse_http(&mut self) {
        self.peer.quits = true;
        add(&self.state.cut_off, 1);
        if self.state.may_warn_of_http() {
            let from = self.peer.address.map_or_else(|| "?".to_owned(), |from| from.to_string());
            warn!(from, "possible attack: a client sent POST or Host: as a browser does; closed");
        }
    }

    async fn dispatch(&mut self, command: &Command, words: Words<'_>) -> Result<(), Fault> {
        match command.id {
            Id::Get => self.get(words).await,
            Id::Set => self.set(words).await,
            Id::MGet => self.mget(words).await,
            Id::MSet => self.mset(words).await,
            Id::IncrBy { sign, by_word } => self.increment(words, sign, by_word).await,
            Id::Append => self.append(words).await,
            Id::Auth => self.auth(words),
            Id::StrLen => self.strlen(words).await,
            Id::GetDel => self.getdel(words).await,
            Id::GetEx => self.getex(words).await,
            Id::GetSet => self.getset(words).await,
            Id::SetEx { unit_ms } => self.setex(words, unit_ms).await,
            Id::SetNx => self.setnx(words).await,
            Id::Delete => self.delete(words).await,
            Id::Exists => self.exists(words).await,
            Id::Expire { unit_ms, absolute } => self.expire(words, unit_ms, absolute).await,
            Id::Ttl { unit_ms, absolute } => self.ttl(words, unit_ms, absolute).await,
            Id::Persist => self.persist(words).await,
            Id::Type => self.type_of(words).await,
            Id::Scan => self.scan(words).await,
            Id::Keys => self.keys(words).await,
            Id::DbSize => self.dbsize().await,
            Id::Flush => self.flush(words).await,
            Id::Info => self.info(words).await,
            Id::Ping => self.ping(words),
            Id::Echo => {
                self.replies.bulk(words.word(1));
                Ok(())
            }
            Id::Hello => self.hello(words),
            Id::Select => self.select(words),
            Id::Command => self.command(words),
            Id::Config => self.config(words),
            Id::Client => self.client(words),
            Id::Quit => self.quit(),
            Id::Reset => self.reset(),
        }
    }
}

/// Replies to a request that failed. Breaks as [`Context::execute`] does.
fn fail(state: &State, replies: &mut Replies, fault: &Fault) -> ControlFlow<()> {
    let text = fault.text();
    replies.error(&text);
    if text.starts_with("UNCERTAIN") {
        add(&state.uncertain, 1);
    }
    match fault.of_pool() {
        Some(error) if state.failed(error) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    }
}

/// True for the name of a command that only HTTP sends. A web page can make a browser send any
/// body to this server, and that body must not be executed.
fn is_of_http(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"POST") || name.eq_ignore_ascii_case(b"Host:")
}

/// Redis's error for an unknown command.
fn unknown(words: Words<'_>) -> String {
    const SHOWN_BYTES: usize = 128;
    let cut = |word: &[u8], most: usize| {
        String::from_utf8_lossy(&word[..word.len().min(most)]).into_owned()
    };
    let name = cut(words.word(0), SHOWN_BYTES);
    let mut text = format!("ERR unknown command '{name}', with args beginning with: ");
    let mut shown = 0;
    for word in words.from(1) {
        if shown >= SHOWN_BYTES {
            break;
        }
        let word = cut(word, SHOWN_BYTES - shown);
        shown += word.len() + 3;
        write!(text, "'{word}' ").expect("a string takes all");
    }
    text
}

/// Redis's error for an unknown subcommand.
fn unknown_subcommand(command: &str, words: Words<'_>) -> String {
    let given = String::from_utf8_lossy(words.word(1));
    format!("ERR unknown subcommand '{given:.128}'. Try {command} HELP.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Requests;

    #[test]
    fn every_command_is_found_by_its_name() {
        for command in &COMMANDS {
            let found = Command::find(command.name.to_ascii_lowercase().as_bytes());
            assert!(found.is_some_and(|found| found.id == command.id), "{}", command.name);
            for other in [format!("{}\0", command.name), format!("\0{}", command.name)] {
                assert!(Command::find(other.as_bytes()).is_none(), "{other:?}");
            }
        }
        assert!(Command::find(b"").is_none());
        assert!(Command::find(b"LPUSH").is_none());
        assert!(Command::find(&[b'G'; 1000]).is_none());
    }

    /// Calls `see` with the words of a line.
    fn with_words<R>(line: &str, see: impl FnOnce(Words<'_>) -> R) -> R {
        let mut requests = Requests::default();
        let bytes = format!("{line}\n");
        requests.room()[..bytes.len()].copy_from_slice(bytes.as_bytes());
        requests.fill(bytes.len());
        see(requests.next().expect("a line").expect("it is whole"))
    }

    fn of_line<R>(line: &str, see: impl FnOnce(&Command, Words<'_>) -> R) -> R {
        with_words(line, |words| see(Command::find(words.word(0)).expect("it is known"), words))
    }

    /// Tests which requests have the server to themselves, and which wait for changes of one key.
    #[test]
    fn a_request_takes_turns_for_what_it_touches() {
        for line in ["DEL a b", "MSET a 1 b 2", "MGET a b", "EXISTS a a", "FLUSHALL", "KEYS *"] {
            assert!(of_line(line, |c, w| matches!(c.touch(w), Touch::Several)), "{line}");
        }
        for line in ["DEL a", "MSET a 1", "SET a b", "INCR a", "SET a b NX", "GETEX a"] {
            let is_key = |c: &Command, w: Words<'_>| matches!(c.touch(w), Touch::Changes(b"a"));
            assert!(of_line(line, is_key), "{line}");
        }
        for line in ["MGET a", "EXISTS a", "GET a", "TTL a", "SCAN 0", "PING a", "DBSIZE"] {
            assert!(of_line(line, |c, w| matches!(c.touch(w), Touch::Sees)), "{line}");
        }
    }

    #[test]
    fn the_page_of_the_server_lists_every_command() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/how-to/run-a-kv-server.md");
        let page = std::fs::read_to_string(page).expect("the page");
        let (_, list) = page.split_once("\n## Commands\n").expect("the list of commands");
        let list = list.trim_start().split("\n\n").next().expect("a table");
        let words: Vec<&str> = list.split(|c: char| !c.is_ascii_uppercase()).collect();
        for command in &COMMANDS {
            assert!(words.contains(&command.name), "{} is not listed", command.name);
        }
    }

    #[test]
    fn without_a_store_and_without_the_password_some_commands_are_served() {
        let names = |of: fn(&Command) -> bool| -> Vec<&str> {
            COMMANDS.iter().filter(|command| of(command)).map(|command| command.name).collect()
        };
        assert_eq!(
            names(|command| !command.needs_store()),
            [
                "AUTH", "CLIENT", "COMMAND", "CONFIG", "ECHO", "HELLO", "INFO", "QUIT", "RESET",
                "SELECT"
            ]
        );
        assert_eq!(names(Command::is_for_strangers), ["AUTH", "HELLO", "QUIT", "RESET"]);
        for (at, command) in COMMANDS.iter().enumerate() {
            assert_eq!(command.place(), at);
        }
    }
}
