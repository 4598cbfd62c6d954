//! Keys with expiry, on top of the store. The tag of a value is its expiry in milliseconds since
//! 1970; 0 is never.

use ethermem_kv::{Client, Entry, Version, When, Written};

/// The reason why a command failed, as reported to the client.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The text as it is.
    Text(&'static str),
    /// An error of the store.
    Store(ethermem_kv::Error),
    /// Some of the command's keys were changed before the failure.
    Partly {
        /// Number of keys changed.
        done: usize,
        /// Failure of the next key.
        then: Box<Fault>,
    },
}

pub(crate) const SYNTAX: Fault = Fault::Text("ERR syntax error");
pub(crate) const NOT_INTEGER: Fault = Fault::Text("ERR value is not an integer or out of range");

impl From<ethermem_kv::Error> for Fault {
    fn from(error: ethermem_kv::Error) -> Fault {
        Fault::Store(error)
    }
}

impl Fault {
    /// This failure, for a command that had changed `done` keys before.
    pub(crate) fn after(self, done: usize) -> Fault {
        if done == 0 { self } else { Fault::Partly { done, then: Box::new(self) } }
    }

    /// The pool's error, if the failure has one.
    pub(crate) fn of_pool(&self) -> Option<&ethermem::Error> {
        use ethermem_kv::Error::{Pool, Uncertain};
        match self {
            Fault::Store(Pool(error) | Uncertain(error)) => Some(error),
            Fault::Store(_) | Fault::Text(_) => None,
            Fault::Partly { then, .. } => then.of_pool(),
        }
    }

    /// The error line for the client. `-UNCERTAIN` means that all or part of the command may have
    /// been done; every other error means that nothing was done.
    pub(crate) fn text(&self) -> String {
        use ethermem::Error::{Full, NoAnswer};
        use ethermem_kv::Error::{Pool, Uncertain};
        match self {
            Fault::Text(text) => (*text).to_owned(),
            Fault::Partly { done, then } => {
                format!("UNCERTAIN keys changed before the command failed: {done}; {}", then.text())
            }
            Fault::Store(error @ Uncertain(_)) => format!("UNCERTAIN {error}"),
            Fault::Store(Pool(Full { .. })) => {
                "OOM command not allowed when used memory > 'maxmemory'.".to_owned()
            }
            // A command that may have been done is uncertain.
            Fault::Store(Pool(NoAnswer { node, waited_ms })) => {
                format!("ERR {node} did not answer within {waited_ms} ms: nothing was done")
            }
            Fault::Store(error) => format!("ERR {error}"),
        }
    }
}

/// An existing value with its expiry.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) bytes: Vec<u8>,
    pub(crate) ends_ms: u64,
}

/// Change of a key.
pub(crate) enum Change {
    /// Keep the key as it is.
    Keep,
    /// Store this value, with its expiry.
    Set(Vec<u8>, u64),
    Delete,
}

/// The keys as commands see them: expired keys are absent.
pub(crate) struct Keyspace<'c> {
    pub(crate) client: &'c mut Client,
    pub(crate) now_ms: u64,
}

impl Keyspace<'_> {
    pub(crate) fn is_over(&self, ends_ms: u64) -> bool {
        is_over(ends_ms, self.now_ms)
    }

    /// Calls a function with the value of a key, if it exists.
    pub(crate) async fn show<R>(
        &mut self,
        key: &[u8],
        show: impl FnOnce(&[u8], u64) -> R,
    ) -> Result<Option<R>, Fault> {
        let now_ms = self.now_ms;
        let live = |entry: Entry<'_>| {
            let over = is_over(entry.tag, now_ms);
            (!over).then(|| show(entry.value, entry.tag))
        };
        Ok(self.client.read_with(key, live).await?.flatten())
    }

    /// Changes a key atomically, depending on its value.
    pub(crate) async fn change<R>(
        &mut self,
        key: &[u8],
        mut decide: impl FnMut(Option<Held>) -> Result<(Change, R), Fault>,
    ) -> Result<R, Fault> {
        loop {
            let read = self.client.read(key).await?;
            let version = read.as_ref().map(|value| value.version);
            let held = read.map(|value| Held { bytes: value.bytes, ends_ms: value.tag });
            let held = held.filter(|held| !self.is_over(held.ends_ms));
            let (change, result) = decide(held)?;
            let when = version.map_or(When::Absent, When::Is);
            let written = match (change, version) {
                (Change::Keep, _) | (Change::Delete, None) => return Ok(result),
                (Change::Set(bytes, ends_ms), _) => {
                    self.client.write(key, &bytes, ends_ms, when).await?
                }
                (Change::Delete, Some(version)) => self.drop_if(key, version).await?,
            };
            if written.is_done() {
                return Ok(result);
            }
        }
    }

    /// Deletes a key; returns false if it does not exist.
    pub(crate) async fn delete(&mut self, key: &[u8]) -> Result<bool, Fault> {
        self.change(key, |held| Ok((Change::Delete, held.is_some()))).await
    }

    /// Deletes an expired key, which is invisible to clients.
    pub(crate) async fn reap(&mut self, key: &[u8]) -> Result<bool, ethermem_kv::Error> {
        let ended = |entry: Entry<'_>| (entry.version, entry.tag);
        match self.client.read_with(key, ended).await? {
            Some((version, tag)) if self.is_over(tag) => {
                Ok(self.drop_if(key, version).await?.is_done())
            }
            _ => Ok(false),
        }
    }

    async fn drop_if(
        &mut self,
        key: &[u8],
        version: Version,
    ) -> Result<Written, ethermem_kv::Error> {
        self.client.delete_when(key, When::Is(version)).await
    }
}

/// True if a key with this expiry is absent by now.
pub(crate) fn is_over(ends_ms: u64, now_ms: u64) -> bool {
    ends_ms != 0 && ends_ms <= now_ms
}

#[cfg(test)]
mod tests {
    use ethermem::Pool;
    use ethermem_kv::{Config, Index, Store};

    use super::*;

    #[test]
    fn what_has_ended_is_dropped_and_nothing_else() {
        let pool = Pool::open("local:").expect("a pool that there is");
        pool.run(async {
            let store = Store::create(&pool, Config::default()).await.expect("there is memory");
            let mut client = store.client(Index::Client);
            for (key, ends_ms) in [(b"a", 0), (b"b", 5), (b"c", 6), (b"d", 7)] {
                client.write(key, b"v", ends_ms, When::Always).await.expect("there is memory");
            }
            for (key, goes) in [(b"a", false), (b"b", true), (b"c", true), (b"d", false)] {
                let mut keyspace = Keyspace { client: &mut client, now_ms: 6 };
                assert_eq!(keyspace.reap(key).await.expect("nothing fails"), goes, "{key:?}");
                assert!(!keyspace.reap(key).await.expect("nothing fails"), "{key:?} again");
                let there = client.read(key).await.expect("nothing fails").is_some();
                assert_eq!(there, !goes, "{key:?}");
            }
        });
    }

    #[test]
    fn a_fault_says_what_was_done_and_what_the_pool_says() {
        let lost = || Fault::from(ethermem_kv::Error::Pool(ethermem::Error::Lost));
        assert!(matches!(lost().of_pool(), Some(ethermem::Error::Lost)));
        assert!(matches!(lost().after(0), Fault::Store(_)));
        let partly = lost().after(3);
        assert!(matches!(partly.of_pool(), Some(ethermem::Error::Lost)));
        let expected =
            format!("UNCERTAIN keys changed before the command failed: 3; {}", lost().text());
        assert_eq!(partly.text(), expected);
        assert!(lost().text().starts_with("ERR "), "{}", lost().text());
        let uncertain = Fault::from(ethermem_kv::Error::Uncertain(ethermem::Error::Lost));
        assert!(matches!(uncertain.of_pool(), Some(ethermem::Error::Lost)));
        assert!(uncertain.text().starts_with("UNCERTAIN "), "{}", uncertain.text());
        let silent = || ethermem::Error::NoAnswer { node: "n:1".to_owned(), waited_ms: 9 };
        let text = Fault::from(ethermem_kv::Error::Pool(silent())).text();
        assert_eq!(text, "ERR n:1 did not answer within 9 ms: nothing was done");
        let text = Fault::from(ethermem_kv::Error::Uncertain(silent())).text();
        assert!(!text.contains("nothing was done"), "{text}");
        assert!(SYNTAX.of_pool().is_none());
        let full = ethermem_kv::Error::Pool(ethermem::Error::Full { bytes: 1, free: 0 });
        assert!(Fault::from(full).text().starts_with("OOM "));
    }
}
