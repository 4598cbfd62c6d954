//! Judges reads by the journal. An acknowledged write is there while the node lives. An operation
//! in flight when its client was killed was done once or not at all.

use std::collections::{BTreeMap, HashSet};

use super::SLOTS;

/// Number of the writer, and of its value.
type Value = (u64, u64);

/// State of a client towards the lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Hold {
    #[default]
    Away,
    Asking,
    Holding,
    /// Both copies are becoming this value.
    Raising(u64),
    Leaving,
}

/// A word that only increases by one.
#[derive(Default)]
struct Counter {
    acknowledged: u64,
    /// Increments in flight when their client was killed.
    unsure: u64,
    /// Previous value of each acknowledged increment: no two are equal.
    before: HashSet<u64>,
}

impl Counter {
    fn ended(&mut self, begun: Option<u64>, old: u64) -> Result<(), String> {
        let least = begun.ok_or("nothing was begun")?;
        if old < least {
            return Err(format!("{old} is before {least}, which were acknowledged earlier"));
        }
        if !self.before.insert(old) {
            return Err(format!("{old} was found twice"));
        }
        self.acknowledged += 1;
        Ok(())
    }

    /// Resolves uncertain increments, when nothing is in flight.
    fn settle(&mut self, found: u64) -> Result<(), String> {
        let (least, most) = (self.acknowledged, self.acknowledged + self.unsure);
        if !(least..=most).contains(&found) {
            return Err(format!("{found} were counted, and not {least} to {most}"));
        }
        (self.acknowledged, self.unsure) = (found, 0);
        Ok(())
    }
}

#[derive(Clone, Copy, Default)]
struct Slot {
    acknowledged: Value,
    under_way: Option<Value>,
    /// The latest value that any client has read.
    found: Value,
}

/// One life of the node.
#[derive(Default)]
struct Life {
    over: bool,
    slots: [Slot; SLOTS as usize],
    /// Value of both copies while the lock is free.
    pair: u64,
    /// State in which a killed client left the lock.
    left: Option<Hold>,
    added: Counter,
    swapped: Counter,
}

#[derive(Default)]
struct Client {
    life: usize,
    dead: bool,
    hold: Hold,
    /// Increments acknowledged before it began.
    adding: Option<u64>,
    swapping: Option<u64>,
    /// For each slot, the smallest possible value, and whether its writer lived when the read
    /// began.
    looking: BTreeMap<u64, (Value, bool)>,
}

/// Numbers of events seen.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) acknowledged: u64,
    pub(super) inherited: u64,
    pub(super) lost: u64,
    pub(super) restarted: u64,
    pub(super) gone: u64,
}

#[derive(Default)]
pub(super) struct Judge {
    lives: Vec<Life>,
    clients: BTreeMap<String, Client>,
    pub(super) tally: Tally,
}

impl Judge {
    /// Processes a line of the journal.
    pub(super) fn hear(&mut self, line: &str) -> Result<(), String> {
        let Some((name, what)) = line.strip_prefix('@').and_then(|line| line.split_once(' '))
        else {
            // The line is the test runner's own.
            return Ok(());
        };
        let words: Vec<&str> = what.split(' ').collect();
        let numbers: Vec<u64> = words.iter().filter_map(|word| word.parse().ok()).collect();
        let heard = match name {
            "parent" => self.happened(&words),
            _ => self.said(name, words[0], &words, &numbers),
        };
        heard.map_err(|problem| format!("{line}: {problem}"))
    }

    fn happened(&mut self, words: &[&str]) -> Result<(), String> {
        match words {
            ["started", "node"] => self.lives.push(Life::default()),
            ["killed", "node"] => self.lives.last_mut().ok_or("there is none")?.over = true,
            ["killed", client] => {
                let client = self.clients.get_mut(*client).ok_or("there is none")?;
                client.dead = true;
                let life = &mut self.lives[client.life];
                if client.hold != Hold::Away {
                    life.left = Some(client.hold);
                }
                life.added.unsure += u64::from(client.adding.is_some());
                life.swapped.unsure += u64::from(client.swapping.is_some());
            }
            other => return Err(format!("{other:?}")),
        }
        Ok(())
    }

    fn said(&mut self, name: &str, verb: &str, all: &[&str], n: &[u64]) -> Result<(), String> {
        if verb == "ready" {
            let life = self.lives.len().checked_sub(1).ok_or("there is no node")?;
            self.clients.insert(name.to_owned(), Client { life, ..Client::default() });
            return Ok(());
        }
        let tally = &mut self.tally;
        if verb == "error" && !self.clients.contains_key(name) {
            // The client had no process yet.
            return if all[1] == "lost" { Ok(()) } else { Err("an error of another kind".into()) };
        }
        let Some(client) = self.clients.get_mut(name) else { return Err("it is unknown".into()) };
        let life = &mut self.lives[client.life];
        match (verb, n) {
            ("add", []) => client.adding = Some(life.added.acknowledged),
            ("added", &[old]) => life.added.ended(client.adding.take(), old)?,
            ("swap", []) => client.swapping = Some(life.swapped.acknowledged),
            ("swapped", &[old]) => life.swapped.ended(client.swapping.take(), old)?,
            ("unswapped", []) => client.swapping = None,
            ("state", &[added, swapped]) => {
                life.added.settle(added)?;
                life.swapped.settle(swapped)?;
                life.left = None;
            }
            ("error", []) if !life.over => return Err("the node lives".into()),
            ("error", []) if all[1] == "lost" => tally.lost += 1,
            ("error", []) if all[1] == "restarted" => tally.restarted += 1,
            ("gone", []) => tally.gone += 1,
            ("locking" | "locked" | "raising" | "unlocking" | "unlocked", _) => {
                return self.lock(name, verb, all, n);
            }
            ("write" | "wrote" | "look" | "found", _) => return self.slot(name, verb, n),
            ("working" | "shared", []) => {}
            _ => return Err("not allowed".into()),
        }
        self.tally.acknowledged += u64::from(matches!(verb, "added" | "swapped"));
        Ok(())
    }

    fn lock(&mut self, name: &str, verb: &str, all: &[&str], n: &[u64]) -> Result<(), String> {
        let at = self.clients[name].life;
        let others = self
            .clients
            .iter()
            .filter(|(other, client)| other.as_str() != name && client.life == at && !client.dead);
        let held = others
            .filter(|(_, client)| matches!(client.hold, Hold::Holding | Hold::Raising(_)))
            .map(|(other, _)| other.clone())
            .next();
        let life = &mut self.lives[at];
        let client = self.clients.get_mut(name).ok_or("it is unknown")?;
        client.hold = match (verb, n) {
            ("locking", []) => Hold::Asking,
            ("locked", &[one, other]) => {
                if let Some(holder) = held {
                    return Err(format!("{holder} holds the lock"));
                }
                let died = all[1] == "true";
                life.taken(died, one, other)?;
                self.tally.inherited += u64::from(died);
                Hold::Holding
            }
            ("raising", &[next]) if next == life.pair + 1 => Hold::Raising(next),
            ("unlocking", &[next]) if client.hold == Hold::Raising(next) => {
                life.pair = next;
                self.tally.acknowledged += 1;
                Hold::Leaving
            }
            ("unlocked", []) => Hold::Away,
            _ => return Err(format!("the copies are {}", life.pair)),
        };
        Ok(())
    }

    fn slot(&mut self, name: &str, verb: &str, n: &[u64]) -> Result<(), String> {
        let writer = name.strip_prefix("worker").and_then(|number| number.parse().ok());
        let at = self.clients[name].life;
        let written = self.clients.iter().any(|(other, client)| {
            other.starts_with("worker") && client.life == at && !client.dead
        });
        let client = self.clients.get_mut(name).ok_or("it is unknown")?;
        let which = *n.first().ok_or("no slot")?;
        let slot = self.lives[at].slots.get_mut(which as usize).ok_or("no slot")?;
        match (verb, &n[1..]) {
            ("write", &[sequence]) => slot.under_way = Some((writer.ok_or("no writer")?, sequence)),
            ("wrote", &[sequence]) => {
                let value = (writer.ok_or("no writer")?, sequence);
                if slot.under_way.take() != Some(value) {
                    return Err("it was not under way".into());
                }
                slot.acknowledged = value;
                self.tally.acknowledged += 1;
            }
            ("look", []) => {
                client.looking.insert(which, (slot.acknowledged.max(slot.found), written));
            }
            ("found", &[writer, sequence]) => {
                let (least, was_written) = client.looking.remove(&which).ok_or("nobody looked")?;
                let most = slot.under_way.map_or(slot.acknowledged, |v| v.max(slot.acknowledged));
                let value = (writer, sequence);
                if !(least..=most).contains(&value) {
                    return Err(format!("neither {least:?} nor {most:?}, nor between"));
                }
                slot.found = slot.found.max(value);
                // A read that began while writers lived may precede the last of their writes.
                if !written && !was_written {
                    (slot.acknowledged, slot.under_way) = (value, None);
                }
            }
            _ => return Err("not allowed".into()),
        }
        Ok(())
    }
}

impl Life {
    /// A client acquired the lock and found these copies.
    fn taken(&mut self, died: bool, one: u64, other: u64) -> Result<(), String> {
        let pair = self.pair;
        let whole = (one, other) == (pair, pair);
        if !died {
            if let Some(Hold::Holding | Hold::Raising(_)) = self.left {
                return Err("its holder was killed, and nobody was told".into());
            }
            return if whole { Ok(()) } else { Err(format!("both copies were {pair}")) };
        }
        let fits = match self.left.take().ok_or("nobody who held it was killed")? {
            Hold::Raising(next) => {
                [(pair, pair), (next, pair), (next, next)].contains(&(one, other))
            }
            _ => whole,
        };
        self.pair = one.max(other);
        if fits { Ok(()) } else { Err(format!("both copies were {pair}")) }
    }
}

/// The tally of a journal, or its impossible line.
#[cfg(test)]
fn verdict(journal: &str) -> Result<Tally, String> {
    let mut judge = Judge::default();
    let start = "@parent started node\n@keeper ready 1 4096\n@worker1 ready 2 0\n";
    start.lines().chain(journal.lines()).try_for_each(|line| judge.hear(line))?;
    Ok(judge.tally)
}

#[test]
fn a_journal_is_judged_by_what_was_acknowledged() {
    for good in [
        "@worker1 write 3 1\n@worker1 wrote 3 1\n@keeper look 3\n@keeper found 3 1 1",
        // The write was in flight: done or not, and then consistently.
        "@worker1 write 3 1\n@keeper look 3\n@keeper found 3 0 0\n@keeper look 3\n\
         @keeper found 3 1 1",
        "@worker1 write 3 1\n@parent killed worker1\n@keeper look 3\n@keeper found 3 0 0",
        // The value was read before it was written, and reported after the writer's end.
        "@keeper look 3\n@worker1 write 3 1\n@worker1 wrote 3 1\n@parent killed worker1\n\
         @keeper found 3 0 0\n@keeper look 3\n@keeper found 3 1 1",
        "@worker1 add\n@worker1 added 0\n@keeper add\n@keeper added 1\n@keeper state 2 0",
        "@worker1 add\n@parent killed worker1\n@keeper state 1 0",
        "@worker1 add\n@parent killed worker1\n@keeper state 0 0",
        "@worker1 locking\n@worker1 locked false 0 0\n@worker1 raising 1\n@parent killed worker1\n\
         @keeper locking\n@keeper locked true 1 0\n@keeper raising 2",
        "@parent killed node\n@keeper error lost\n@keeper gone\n@worker1 error restarted",
    ] {
        assert!(verdict(good).is_ok(), "{good}: {:?}", verdict(good));
    }
}

#[test]
fn a_journal_of_what_cannot_be_is_refused() {
    let kills = "@parent killed worker1\n";
    let holds = "@worker1 locking\n@worker1 locked false 0 0\n@worker1 raising 1\n";
    let raised = "@worker1 unlocking 1\n@worker1 unlocked\n@keeper locking\n";
    for (bad, says) in [
        ("@worker1 write 3 1\n@worker1 wrote 3 1\n@keeper look 3\n@keeper found 3 0 0", "neither"),
        ("@keeper look 3\n@keeper found 3 1 1", "neither"),
        (
            "@worker1 write 3 1\n@keeper look 3\n@keeper found 3 1 1\n@keeper look 3\n\
             @keeper found 3 0 0",
            "neither",
        ),
        (
            "@worker1 write 3 1\n@parent killed worker1\n@keeper look 3\n@keeper found 3 0 0\n\
             @keeper look 3\n@keeper found 3 1 1",
            "neither",
        ),
        ("@worker1 add\n@worker1 added 0\n@keeper add\n@keeper added 0", "before 1"),
        ("@worker1 add\n@keeper add\n@keeper added 0\n@worker1 added 0", "twice"),
        ("@worker1 add\n@worker1 added 0\n@keeper state 0 0", "not 1 to 1"),
        ("@worker1 swap\n@worker1 unswapped\n@keeper state 0 1", "not 0 to 0"),
        (&format!("{holds}@keeper locking\n@keeper locked false 0 0"), "worker1 holds"),
        (&format!("{holds}{kills}@keeper locking\n@keeper locked false 1 1"), "nobody was told"),
        (&format!("{holds}{kills}@keeper locking\n@keeper locked true 0 1"), "both copies"),
        (&format!("{holds}{raised}@keeper locked false 0 0"), "both copies were 1"),
        (&format!("{holds}{raised}@keeper locked true 1 1"), "nobody who held it"),
        ("@keeper error lost", "lives"),
        ("@keeper error other: Unmapped", "lives"),
        ("@parent killed node\n@keeper error other: Unmapped", "not allowed"),
        ("@keeper wrong bytes", "not allowed"),
    ] {
        let refused = verdict(bad).expect_err(bad);
        assert!(refused.contains(says), "{bad}: {refused}");
    }
}
