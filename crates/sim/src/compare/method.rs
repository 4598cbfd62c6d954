//! The definitions behind published numbers, as far as another simulator can share them.

use std::collections::BTreeMap;

use ethermem_units::{Bytes, Ps};
use toml::de::{DeTable, DeValue};

use super::ByMethod;
use crate::keys::{Table, as_number, as_text};
use crate::registry::{self, FABRIC_NAMES, FabricEntry};
use crate::scenario::Setting;
use crate::workload::InputError;

/// The definitions in `compare.published`, which tell how the numbers were made.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedMethod {
    /// Number of messages of a run.
    pub messages: u64,
    /// Number of runs with different seeds over which a number is averaged.
    pub seeds: u64,
    /// The end of a run.
    pub stop: Stop,
    /// The denominator of a slowdown.
    pub denominator: Denominator,
    /// The number of flows that a read counts as.
    pub reads: Reads,
    /// Minimum slowdown: lower ones count as this.
    pub slowdown_min: f64,
    /// The definitions of each fabric that the method mentions.
    pub(super) fabrics: BTreeMap<&'static str, FabricMethod>,
}

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The run ends with the last first byte of a message; messages that have not ended are not
    /// counted.
    LastStart,
    /// The run ends with the last message.
    End,
}

/// The denominator of a slowdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denominator {
    /// A number of slots for each fabric and kind.
    Published,
    /// The time of the message alone in the fabric; a read is then one flow.
    Alone,
}

/// The number of flows that a read counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// Two flows, its request and its response, each with a time and the weight of a write.
    TwoFlows,
    /// One flow.
    Whole,
}

/// The definitions of the method for one fabric.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct FabricMethod {
    /// The fabric that is run in its place, if any.
    pub(super) runs: Option<&'static str>,
    /// Keys of the scenario.
    pub(super) settings: Vec<Setting>,
    pub(super) write: Slots,
    /// The slots of a request; `None` if requests are not counted.
    pub(super) request: Option<Slots>,
    pub(super) response: Slots,
    /// True if data of a read leaves the requesting node, as a write's does, without a request.
    pub(super) reads_as_writes: bool,
    /// True if data that does not fill its last block never ends.
    pub(super) whole_blocks: bool,
    /// The end of its runs, if it differs from the other fabrics'.
    pub(super) stop: Option<Stop>,
    /// Minimum number of flows that must end before a run is over.
    pub(super) finished_min: u64,
    /// Number of flows whose end also ends a run.
    pub(super) stop_finished: Option<u64>,
    /// Why its numbers differ from the published ones, if they do.
    pub(super) why: String,
}

/// A time in slots of a link: a fixed number, and a number for each block of data.
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

/// Maximum of either number of slots.
const SLOTS_MAX: f64 = 1e6;

impl PublishedMethod {
    /// Why the numbers of a fabric differ from the published ones, if they do.
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

    /// The fabric that is run for the numbers of `fabric`; another one if the method says so.
    #[must_use]
    pub fn runs(&self, fabric: &'static FabricEntry) -> &'static FabricEntry {
        let runs = self.fabrics.get(fabric.name).and_then(|of| of.runs);
        runs.and_then(registry::find).unwrap_or(fabric)
    }

    /// A line for each fabric among `rows` that is replaced by another one.
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
