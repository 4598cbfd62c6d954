//! What may be read, told from the journal: what was acknowledged is there while the node lives,
//! what was under way when somebody was killed was done once or not at all, and nothing else.

use std::collections::{BTreeMap, HashSet};

use super::SLOTS;

/// A writer's number and which of its values.
type Value = (u64, u64);

/// Where a client is with the lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Hold {
    #[default]
    Away,
    Asking,
    Holding,
    /// Both copies are becoming this.
    Raising(u64),
    Leaving,
}

/// A word that only goes up by one.
#[derive(Default)]
struct Counter {
    acknowledged: u64,
    /// Under way when their client was killed.
    unsure: u64,
    /// What it was before each that was acknowledged: no two are the same.
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

    /// Nothing is under way.
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
    /// The latest that anybody found.
    found: Value,
}

/// One life of the node.
#[derive(Default)]
struct Life {
    over: bool,
    slots: [Slot; SLOTS as usize],
    /// What both copies are while nobody holds the lock.
    pair: u64,
    /// How a client that was killed left the lock.
    left: Option<Hold>,
    added: Counter,
    swapped: Counter,
}

#[derive(Default)]
struct Client {
    life: usize,
    dead: bool,
    hold: Hold,
    /// Acknowledged before it began.
    adding: Option<u64>,
    swapping: Option<u64>,
    /// By slot, the least that it may find, and whether a writer lived when it began to look.
    looking: BTreeMap<u64, (Value, bool)>,
}

/// How much was seen.
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
    /// Takes a line of the journal.
    pub(super) fn hear(&mut self, line: &str) -> Result<(), String> {
        let Some((name, what)) = line.strip_prefix('@').and_then(|line| line.split_once(' '))
        else {
            // The test runner's own.
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
            // It had no process yet.
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
                // A look of a time with writers may have read before the last of them wrote.
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
    /// The lock was taken, and the copies were found so.
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

/// What a journal comes to: the line that cannot be, if there is one.
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
        // Under way: done or not, and then for good.
        "@worker1 write 3 1\n@keeper look 3\n@keeper found 3 0 0\n@keeper look 3\n\
         @keeper found 3 1 1",
        "@worker1 write 3 1\n@parent killed worker1\n@keeper look 3\n@keeper found 3 0 0",
        // Read before it was written, told of after the writer's end.
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
