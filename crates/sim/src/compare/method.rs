//! The definitions of published numbers, as far as a simulator other than ours can share them.

use std::collections::BTreeMap;

use ethermem_units::{Bytes, Ps};
use toml::de::{DeTable, DeValue};

use super::ByMethod;
use crate::keys::{Table, as_number, as_text};
use crate::registry::{self, FABRIC_NAMES, FabricEntry};
use crate::scenario::Setting;
use crate::workload::InputError;

/// How `compare.published` says that numbers were made.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedMethod {
    /// Messages of a run.
    pub messages: u64,
    /// Runs, each with another seed, that a number is the mean of.
    pub seeds: u64,
    /// When a run is over.
    pub stop: Stop,
    /// What a time is divided by.
    pub denominator: Denominator,
    /// Whether a read is one message or two.
    pub reads: Reads,
    /// Slowdowns under this count as this.
    pub slowdown_min: f64,
    /// Those that the method says something of.
    pub(super) fabrics: BTreeMap<&'static str, FabricMethod>,
}

/// When a run is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// With the last first byte of a message; what has not ended is not counted.
    LastStart,
    /// With the last message's end.
    End,
}

/// What a time is divided by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denominator {
    /// A number of slots for each fabric and kind.
    Published,
    /// The time of the message alone in the same fabric; a read is then one message.
    Alone,
}

/// Whether a read is one message or two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// Its request and its response, with a time each and the same weight as a write.
    TwoFlows,
    /// One.
    Whole,
}

/// What the method says of one fabric.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct FabricMethod {
    /// The fabric that is run in its place.
    pub(super) runs: Option<&'static str>,
    /// Keys of the scenario.
    pub(super) settings: Vec<Setting>,
    pub(super) write: Slots,
    /// `None` where requests are not counted.
    pub(super) request: Option<Slots>,
    pub(super) response: Slots,
    /// Data of a read leaves the node that asks, as a write's does, and nothing is asked.
    pub(super) reads_as_writes: bool,
    /// Data that does not fill its last block never ends.
    pub(super) whole_blocks: bool,
    /// When its runs are over, where that is another time than the others'.
    pub(super) stop: Option<Stop>,
    /// Flows that have to end before a run is over.
    pub(super) finished_min: u64,
    /// Flows after whose end a run is over as well.
    pub(super) stop_finished: Option<u64>,
    /// Why its numbers are not the published ones, where they are not.
    pub(super) why: String,
}

/// A time in slots of a link: so many, and so many for each block of data.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Slots {
    fixed: f64,
    per_block: f64,
}

impl Slots {
    #[cfg(test)]
    pub(super) fn by_hand(fixed: f64, per_block: f64) -> Slots {
        Slots { fixed, per_block }
    }

    pub(super) fn ns(self, bytes: Bytes, slot: Ps) -> f64 {
        (self.fixed + self.per_block * bytes.to_blocks().0 as f64) * slot.as_ns_f64()
    }
}

const STOPS: [(&str, Stop); 2] = [("last-start", Stop::LastStart), ("end", Stop::End)];

/// Most slots of a denominator, of either kind.
const SLOTS_MAX: f64 = 1e6;

impl PublishedMethod {
    /// Why the numbers of a fabric are not the published ones, where they are not.
    #[must_use]
    pub fn why(&self, fabric: &FabricEntry) -> &str {
        self.fabrics.get(fabric.name).map_or("", |of| &of.why)
    }

    /// Why its numbers differ when it is run by its own rules.
    #[must_use]
    pub fn why_in_a_steady_state(&self, fabric: &FabricEntry) -> String {
        let runs = self.fabrics.get(fabric.name).and_then(|of| of.runs);
        let rules = runs.map(|runs| format!("published by the rules of {runs}"));
        rules.unwrap_or_else(|| self.why(fabric).to_owned())
    }

    /// What is run for the numbers of a fabric: another one, where the method says so.
    #[must_use]
    pub fn runs(&self, fabric: &'static FabricEntry) -> &'static FabricEntry {
        let runs = self.fabrics.get(fabric.name).and_then(|of| of.runs);
        runs.and_then(registry::find).unwrap_or(fabric)
    }

    /// A line for each fabric among `rows` in whose place another one is run.
    #[must_use]
    pub fn runs_notes(&self, rows: &[ByMethod]) -> Vec<String> {
        let shown = |name: &str| rows.iter().any(|row| row.place.fabric == name);
        let runs = self.fabrics.iter().filter(|(name, _)| shown(name));
        runs.filter_map(|(name, of)| Some((name, of.runs?)))
            .map(|(name, runs)| format!("{name}: {runs} is run, by whose rules it was published"))
            .collect()
    }

    pub(super) fn read(table: &Table<'_>) -> Result<PublishedMethod, InputError> {
        let method = PublishedMethod {
            messages: table.integer("messages", 2_000, 1..=1_000_000)?,
            seeds: table.integer("seeds", 1, 1..=1_000)?,
            stop: table.choice("stop", &STOPS)?,
            denominator: table.choice(
                "denominator",
                &[("published", Denominator::Published), ("alone", Denominator::Alone)],
            )?,
            reads: table
                .choice("reads", &[("two-flows", Reads::TwoFlows), ("whole", Reads::Whole)])?,
            slowdown_min: table.number("slowdown_min", 1.0, 0.0..=1.0)?,
            fabrics: fabrics_of(&table.table("fabrics")?)?,
        };
        table.check_known()?;
        Ok(method)
    }
}

fn fabrics_of(table: &Table<'_>) -> Result<BTreeMap<&'static str, FabricMethod>, InputError> {
    let mut methods = BTreeMap::new();
    for name in table.values().into_iter().flat_map(DeTable::keys) {
        let name = name.get_ref().as_ref();
        let Some(fabric) = registry::find(name) else {
            let allowed = format!("no fabric: must be one of {}", FABRIC_NAMES.join(", "));
            return Err(table.error(name, allowed));
        };
        methods.insert(fabric.name, FabricMethod::read(&table.table(name)?)?);
    }
    Ok(methods)
}

impl FabricMethod {
    fn read(table: &Table<'_>) -> Result<FabricMethod, InputError> {
        let settings = table.read("set", "nothing", "a list of KEY=VALUE", settings)?;
        let allowed = format!("[slots, slots per block of data], each 0 to {SLOTS_MAX}");
        let slots = |key: &str| table.read(key, "none", &allowed, slots);
        let needed =
            |key: &str| slots(key)?.ok_or_else(|| table.error(key, format!("must be {allowed}")));
        let runs = table.read("runs", "itself", &FABRIC_NAMES.join(", "), |name| {
            registry::find(as_text(name)?).map(|fabric| fabric.name)
        })?;
        let method = FabricMethod {
            runs,
            settings: settings.unwrap_or_default(),
            write: needed("write_slots")?,
            request: slots("request_slots")?,
            response: needed("response_slots")?,
            reads_as_writes: table.flag("reads_as_writes", false)?,
            whole_blocks: table.flag("whole_blocks", false)?,
            stop: table.choice_or("stop", "that of all fabrics", &STOPS)?,
            finished_min: table.integer("finished_min", 0, 0..=1_000_000)?,
            stop_finished: Some(table.integer("stop_finished", 0, 0..=1_000_000)?)
                .filter(|flows| *flows > 0),
            why: table
                .read("why", "nothing", "a reason", |why| as_text(why).map(str::to_owned))?
                .unwrap_or_default(),
        };
        table.check_known()?;
        Ok(method)
    }
}

fn settings(value: &DeValue<'_>) -> Option<Vec<Setting>> {
    let DeValue::Array(list) = value else { return None };
    list.iter().map(|setting| as_text(setting.get_ref())?.parse().ok()).collect()
}

fn slots(value: &DeValue<'_>) -> Option<Slots> {
    let DeValue::Array(list) = value else { return None };
    let numbers: Vec<f64> =
        list.iter().map(|number| as_number(number.get_ref())).collect::<Option<_>>()?;
    let [fixed, per_block] = numbers[..] else { return None };
    let within = |slots: f64| (0.0..=SLOTS_MAX).contains(&slots);
    (within(fixed) && within(per_block) && fixed + per_block > 0.0)
        .then_some(Slots { fixed, per_block })
}
