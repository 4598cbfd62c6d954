//! One channel: its banks, its data bus, and the earliest time of each command.

use ethermem_units::Ps;

use super::mapping::{Geometry, Location};
use super::timing::Timing;
use super::{RowState, Scheduled};

#[derive(Clone, Copy, Debug, Default)]
struct Bank {
    row: Option<u64>,
    /// Earliest ACT.
    activate: Ps,
    /// Earliest READ or WRITE.
    column: Ps,
    /// Earliest PRE.
    precharge: Ps,
}

/// Last commands of a bank group, or of a channel.
#[derive(Clone, Copy, Debug, Default)]
struct Last {
    /// Earliest next ACT.
    activate: Ps,
    /// Earliest next READ after READs.
    read: Ps,
    /// Earliest next WRITE after WRITEs.
    write: Ps,
    /// Earliest next READ after written data.
    read_after_write: Ps,
}

#[derive(Clone, Debug)]
pub(super) struct Channel {
    banks: Box<[Bank]>,
    banks_a_group: u32,
    groups: Box<[Last]>,
    all: Last,
    /// The last four ACTs, oldest first; `None` before there were four.
    activates: [Option<Ps>; 4],
    /// When the data bus is free, and whether the last data was written.
    bus: Ps,
    wrote: bool,
    next_refresh: Ps,
    now: Ps,
}

impl Channel {
    pub(super) fn new(geometry: &Geometry, timing: &Timing) -> Channel {
        Channel {
            banks: vec![Bank::default(); (geometry.groups * geometry.banks) as usize].into(),
            banks_a_group: geometry.banks,
            groups: vec![Last::default(); geometry.groups as usize].into(),
            all: Last::default(),
            activates: [None; 4],
            bus: Ps::ZERO,
            wrote: false,
            next_refresh: timing.refi,
            now: Ps::ZERO,
        }
    }

    /// Makes up for the refreshes that were due until now: each closes all rows and takes the
    /// channel for tRFC. Returns how many there were.
    pub(super) fn refresh(&mut self, now: Ps, timing: &Timing) -> u64 {
        assert!(now >= self.now, "time ran backwards: {now} after {}", self.now);
        self.now = now;
        let mut refreshes = 0;
        while self.next_refresh <= now {
            // All banks are closed first: PRE as early as each allows it, then tRP.
            let idle = |bank: &Bank| match bank.row {
                Some(_) => bank.precharge.max(self.next_refresh) + timing.rp,
                None => bank.activate,
            };
            let begin = self.banks.iter().map(idle).fold(self.next_refresh, Ps::max);
            for bank in &mut self.banks {
                *bank = Bank { activate: begin + timing.rfc, ..Bank::default() };
            }
            self.next_refresh += timing.refi;
            refreshes += 1;
        }
        refreshes
    }

    pub(super) fn access(
        &mut self,
        now: Ps,
        location: Location,
        is_write: bool,
        timing: &Timing,
    ) -> Scheduled {
        let at = (location.group * self.banks_a_group + location.bank) as usize;
        let group = location.group as usize;
        let row = self.open(now, at, group, location.row, timing);
        let command = self.column_command(now, at, group, is_write, timing);
        let latency = if is_write { timing.cwl } else { timing.cl };
        let data_end = command + latency + timing.burst;
        self.bus = data_end;
        self.wrote = is_write;
        for (last, ccd, wtr) in [
            (&mut self.all, timing.ccd_s, timing.wtr_s),
            (&mut self.groups[group], timing.ccd_l, timing.wtr_l),
        ] {
            if is_write {
                last.write = command + ccd;
                last.read_after_write = data_end + wtr;
            } else {
                last.read = command + ccd;
            }
        }
        let bank = &mut self.banks[at];
        let closable = if is_write { data_end + timing.wr } else { command + timing.rtp };
        bank.precharge = bank.precharge.max(closable);
        Scheduled { data_end, row }
    }

    /// Opens a row: PRE and ACT where they are needed.
    fn open(&mut self, now: Ps, at: usize, group: usize, row: u64, timing: &Timing) -> RowState {
        let bank = self.banks[at];
        let (state, activate) = match bank.row {
            Some(open) if open == row => return RowState::Hit,
            Some(_) => (RowState::Conflict, bank.precharge.max(now) + timing.rp),
            None => (RowState::Empty, bank.activate.max(now)),
        };
        let four = self.activates[0].map_or(Ps::ZERO, |first| first + timing.faw);
        let command = activate
            .max(bank.activate)
            .max(self.all.activate)
            .max(self.groups[group].activate)
            .max(four);
        self.all.activate = command + timing.rrd_s;
        self.groups[group].activate = command + timing.rrd_l;
        self.activates.rotate_left(1);
        self.activates[3] = Some(command);
        self.banks[at] = Bank {
            row: Some(row),
            activate: command + timing.ras + timing.rp,
            column: command + timing.rcd,
            precharge: command + timing.ras,
        };
        state
    }

    /// The time of a READ or WRITE: when its bank, the distances between commands, and the data bus
    /// allow it.
    fn column_command(
        &self,
        now: Ps,
        at: usize,
        group: usize,
        is_write: bool,
        timing: &Timing,
    ) -> Ps {
        let (all, group) = (self.all, self.groups[group]);
        let latency = if is_write { timing.cwl } else { timing.cl };
        let turn = if is_write == self.wrote { Ps::ZERO } else { timing.turn };
        let bus = (self.bus + turn).saturating_sub(latency);
        let by_kind = if is_write {
            all.write.max(group.write)
        } else {
            let after_write = all.read_after_write.max(group.read_after_write);
            all.read.max(group.read).max(after_write)
        };
        now.max(self.banks[at].column).max(by_kind).max(bus)
    }
}
