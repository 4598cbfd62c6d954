//! Commands on the connection and the server.

use std::net::IpAddr;
use std::time::Instant;

use ethermem_kv::Statistics;

use super::{COMMANDS, Command, Context, unknown_subcommand};
use crate::access::Checked;
use crate::glob;
use crate::info::{self, State, add};
use crate::keyspace::{Fault, SYNTAX};
use crate::number::integer;
use crate::request::Words;

/// State of a client's connection.
#[derive(Debug, Default)]
pub(crate) struct Peer {
    pub(crate) id: u64,
    pub(crate) name: Vec<u8>,
    /// True if the client has quit, or is to be disconnected.
    pub(crate) quits: bool,
    pub(crate) address: Option<IpAddr>,
    has_named_password: bool,
    wrong_passwords: u32,
}

/// A connection with this many wrong passwords is closed.
const WRONG_PASSWORDS_MAX: u32 = 5;
const WRONG_PASSWORD: Fault =
    Fault::Text("WRONGPASS invalid username-password pair or user is disabled.");
const TOO_MANY: Fault = Fault::Text("ERR too many wrong passwords from this address: wait 10 s");
const HELLO_FIRST: Fault = Fault::Text(
    "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO \
     <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP \
     protocol version at the same time",
);

impl Peer {
    pub(crate) fn new(id: u64) -> Peer {
        Peer { id, ..Peer::default() }
    }

    /// True if the client must authenticate first.
    pub(crate) fn is_stranger(&self, state: &State) -> bool {
        !self.has_named_password && !state.gate.is_open()
    }
}

/// Answers of `CONFIG GET`: settings that clients ask for, with their effective values.
const CONFIG: [(&str, &str); 8] = [
    ("appendonly", "no"),
    ("databases", "1"),
    ("io-threads", "1"),
    ("maxmemory", "0"),
    ("maxmemory-policy", "noeviction"),
    ("proto-max-bulk-len", "67100632"),
    ("save", ""),
    ("timeout", "0"),
];

/// Redis's error for a number outside of its range.
const NO_INDEX: &str = "ERR value is out of range, value must between -2147483648 and 2147483647";
const NAME: Fault =
    Fault::Text("ERR Client names cannot contain spaces, newlines or special characters.");

impl Context<'_> {
    pub(super) fn ping(&mut self, words: Words<'_>) -> Result<(), Fault> {
        match words.count() {
            1 => self.replies.simple("PONG"),
            2 => self.replies.bulk(words.word(1)),
            _ => return Err(Fault::Text("ERR wrong number of arguments for 'ping' command")),
        }
        Ok(())
    }

    pub(super) fn auth(&mut self, words: Words<'_>) -> Result<(), Fault> {
        match words.count() {
            2 if self.state.gate.is_open() => return Err(NO_PASSWORD),
            2 => self.name_password(b"default", words.word(1))?,
            3 => self.name_password(words.word(1), words.word(2))?,
            _ => return Err(SYNTAX),
        }
        self.replies.ok();
        Ok(())
    }

    /// The only user is Redis's default user.
    fn name_password(&mut self, user: &[u8], password: &[u8]) -> Result<(), Fault> {
        let checked = match user {
            b"default" => self.state.gate.check(password, self.peer.address, Instant::now()),
            _ => Checked::Wrong,
        };
        if checked == Checked::Right {
            self.peer.has_named_password = true;
            self.peer.wrong_passwords = 0;
            return Ok(());
        }
        add(&self.state.wrong_passwords, 1);
        self.peer.wrong_passwords += 1;
        self.peer.quits |= self.peer.wrong_passwords >= WRONG_PASSWORDS_MAX;
        Err(if checked == Checked::Wrong { WRONG_PASSWORD } else { TOO_MANY })
    }

    pub(super) fn hello(&mut self, words: Words<'_>) -> Result<(), Fault> {
        let mut third = self.replies.is_third;
        let mut rest = words.from(1);
        if let Some(version) = rest.next() {
            third = match integer(version) {
                Some(2) => false,
                Some(3) => true,
                Some(_) => return Err(Fault::Text("NOPROTO unsupported protocol version")),
                None => {
                    let text = "ERR Protocol version is not an integer or out of range";
                    return Err(Fault::Text(text));
                }
            };
        }
        let (mut name, mut credentials) = (None, None);
        while let Some(option) = rest.next() {
            let option_name = option.to_ascii_uppercase();
            match (option_name.as_slice(), rest.next()) {
                (b"SETNAME", Some(given)) => name = Some(allowed_name(given)?),
                (b"AUTH", Some(user)) if rest.len() > 0 => {
                    credentials = rest.next().map(|password| (user, password));
                }
                _ => {
                    let given = String::from_utf8_lossy(option);
                    let text = format!("ERR Syntax error in HELLO option '{given}'");
                    self.replies.error(&text);
                    return Ok(());
                }
            }
        }
        if let Some((user, password)) = credentials {
            self.name_password(user, password)?;
        }
        if self.peer.is_stranger(self.state) {
            return Err(HELLO_FIRST);
        }
        if let Some(name) = name {
            self.peer.name = name;
        }
        self.replies.is_third = third;
        self.replies.map(7);
        for (field, text) in [("server", "redis"), ("version", info::REDIS_VERSION)] {
            self.replies.bulk(field.as_bytes());
            self.replies.bulk(text.as_bytes());
        }
        for (field, number) in [("proto", if third { 3 } else { 2 }), ("id", self.peer.id as i64)] {
            self.replies.bulk(field.as_bytes());
            self.replies.integer(number);
        }
        for (field, text) in [("mode", "standalone"), ("role", "master")] {
            self.replies.bulk(field.as_bytes());
            self.replies.bulk(text.as_bytes());
        }
        self.replies.bulk(b"modules");
        self.replies.array(0);
        Ok(())
    }

    pub(super) fn select(&mut self, words: Words<'_>) -> Result<(), Fault> {
        match integer(words.word(1)) {
            Some(0) => self.replies.ok(),
            Some(index) if i32::try_from(index).is_err() => return Err(Fault::Text(NO_INDEX)),
            Some(_) => return Err(Fault::Text("ERR DB index is out of range")),
            None => return Err(Fault::Text("ERR value is not an integer or out of range")),
        }
        Ok(())
    }

    pub(super) fn command(&mut self, words: Words<'_>) -> Result<(), Fault> {
        if words.count() == 1 {
            self.replies.array(COMMANDS.len());
            COMMANDS.iter().for_each(|command| self.describe(command));
            return Ok(());
        }
        match words.word(1).to_ascii_uppercase().as_slice() {
            b"COUNT" if words.count() > 2 => {
                let text = "ERR wrong number of arguments for 'command|count' command";
                return Err(Fault::Text(text));
            }
            b"COUNT" => self.replies.integer(COMMANDS.len() as i64),
            b"LIST" => return self.list(words),
            // No command has documentation: redis-cli then shows no hints, and works.
            b"DOCS" => self.replies.map(0),
            b"INFO" => {
                self.replies.array(words.count() - 2);
                for name in words.from(2) {
                    match Command::find(name) {
                        Some(command) => self.describe(command),
                        None => self.replies.null(),
                    }
                }
            }
            _ => self.replies.error(&unknown_subcommand("COMMAND", words)),
        }
        Ok(())
    }

    /// The names of all commands, or of those that a filter selects. There are no modules, and no
    /// categories of access.
    fn list(&mut self, words: Words<'_>) -> Result<(), Fault> {
        let rest: Vec<Vec<u8>> = words.from(2).map(<[u8]>::to_ascii_lowercase).collect();
        let rest: Vec<&[u8]> = rest.iter().map(Vec::as_slice).collect();
        let pattern = match rest[..] {
            [] => Some(&b"*"[..]),
            [b"filterby", b"pattern", pattern] => Some(pattern),
            [b"filterby", b"module" | b"aclcat", _] => None,
            _ => return Err(SYNTAX),
        };
        let names = COMMANDS.iter().map(|command| command.name.to_ascii_lowercase());
        let is_asked = |name: &String| pattern.is_some_and(|p| glob::matches(p, name.as_bytes()));
        let names: Vec<String> = names.filter(is_asked).collect();
        self.replies.array(names.len());
        names.iter().for_each(|name| self.replies.bulk(name.as_bytes()));
        Ok(())
    }

    fn describe(&mut self, command: &Command) {
        self.replies.array(6);
        self.replies.bulk(command.name.to_ascii_lowercase().as_bytes());
        self.replies.integer(command.arity);
        self.replies.array(1);
        self.replies.simple(command.flag);
        command.keys.iter().for_each(|key| self.replies.integer(*key));
    }

    pub(super) fn config(&mut self, words: Words<'_>) -> Result<(), Fault> {
        match words.word(1).to_ascii_uppercase().as_slice() {
            b"GET" if words.count() > 2 => {
                let asked = |name: &str| {
                    let name = name.as_bytes();
                    words.from(2).any(|it| glob::matches(&it.to_ascii_lowercase(), name))
                };
                let told: Vec<_> = CONFIG.iter().filter(|(name, _)| asked(name)).collect();
                self.replies.map(told.len());
                for (name, value) in told {
                    self.replies.bulk(name.as_bytes());
                    self.replies.bulk(value.as_bytes());
                }
            }
            b"GET" => {
                let text = "ERR wrong number of arguments for 'config|get' command";
                return Err(Fault::Text(text));
            }
            b"RESETSTAT" if words.count() > 2 => {
                let text = "ERR wrong number of arguments for 'config|resetstat' command";
                return Err(Fault::Text(text));
            }
            b"RESETSTAT" => {
                self.state.reset();
                self.replies.ok();
            }
            _ => self.replies.error(&unknown_subcommand("CONFIG", words)),
        }
        Ok(())
    }

    pub(super) fn client(&mut self, words: Words<'_>) -> Result<(), Fault> {
        let subcommand = words.word(1).to_ascii_uppercase();
        match (subcommand.as_slice(), words.count()) {
            (b"SETNAME", 3) => {
                self.peer.name = allowed_name(words.word(2))?;
                self.replies.ok();
            }
            (b"GETNAME", 2) => {
                let name = std::mem::take(&mut self.peer.name);
                self.reply_optional(Some(&name[..]).filter(|name| !name.is_empty()));
                self.peer.name = name;
            }
            (b"ID", 2) => self.replies.integer(self.peer.id as i64),
            (b"SETINFO", 4) => {
                let option = words.word(2).to_ascii_uppercase();
                if !matches!(option.as_slice(), b"LIB-NAME" | b"LIB-VER") {
                    let given = String::from_utf8_lossy(words.word(2));
                    self.replies.error(&format!("ERR Unrecognized option '{given}'"));
                    return Ok(());
                }
                allowed_name(words.word(3))?;
                self.replies.ok();
            }
            (b"SETNAME" | b"GETNAME" | b"ID" | b"SETINFO", _) => {
                let name = String::from_utf8_lossy(&subcommand).to_ascii_lowercase();
                let text = format!("ERR wrong number of arguments for 'client|{name}' command");
                self.replies.error(&text);
            }
            _ => self.replies.error(&unknown_subcommand("CLIENT", words)),
        }
        Ok(())
    }

    pub(super) fn quit(&mut self) -> Result<(), Fault> {
        self.peer.quits = true;
        self.replies.ok();
        Ok(())
    }

    pub(super) fn reset(&mut self) -> Result<(), Fault> {
        self.peer.name.clear();
        self.peer.has_named_password = false;
        self.replies.is_third = false;
        self.replies.simple("RESET");
        Ok(())
    }

    pub(super) async fn info(&mut self, words: Words<'_>) -> Result<(), Fault> {
        let statistics = match self.state.absence() {
            Some(_) => Statistics::default(),
            None => self.client.statistics().await?,
        };
        let sections: Vec<Vec<u8>> = words.from(1).map(<[u8]>::to_ascii_lowercase).collect();
        let text = self.state.info(&sections, &statistics);
        self.replies.text(&text);
        Ok(())
    }
}

const NO_PASSWORD: Fault = Fault::Text(
    "ERR AUTH <password> called without any password configured for the default user. Are you \
     sure your configuration is correct?",
);

/// Accepts a name without spaces or unprintable characters.
fn allowed_name(name: &[u8]) -> Result<Vec<u8>, Fault> {
    const BYTES_MAX: usize = 256;
    if name.len() > BYTES_MAX {
        return Err(SYNTAX);
    }
    if name.iter().all(u8::is_ascii_graphic) { Ok(name.to_vec()) } else { Err(NAME) }
}
