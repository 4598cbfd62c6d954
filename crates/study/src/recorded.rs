//! Machines of which pages, disks and network were traced: OSDI 2016, section 4.1.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use ethermem_trace::{DiskTrace, FlowKind, InputError, NetworkTrace};
use ethermem_units::{Bytes, Ns};
use serde::Serialize;

use crate::attribution::{LocalRead, MatchRule, Transfer, attribute};
use crate::machine::{Machine, Pages, Part, Sample, disk_block};
use crate::transfers::{Addresses, Transfers};

/// What was recorded of one machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// Its page trace.
    pub pages: Option<PathBuf>,
    /// Time at which the program of the page trace started, in ns since 1970; `None` if unknown.
    pub start: Option<Ns>,
    /// Files of blktrace.
    pub disks: Vec<PathBuf>,
    /// Captures of tcpdump, of this machine.
    pub network: Vec<PathBuf>,
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
}

/// All machines of a cluster, and how their records become flows.
#[derive(Clone, Debug, PartialEq)]
pub struct Recordings {
    /// The machines.
    pub machines: Vec<Recording>,
    /// Captures of all machines together.
    pub network: Vec<PathBuf>,
    /// When reads and a transfer match.
    pub rule: MatchRule,
    /// A longer pause ends a transfer.
    pub gap: Ns,
    /// True if a machine's disk is its own disk blade; otherwise it is spread over all of them.
    pub own_disks: bool,
}

/// What became of the records of all machines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Attribution {
    /// Reads of disks.
    pub disk_reads: u64,
    /// Those of them that are part of a remote read.
    pub disk_reads_remote: u64,
    /// Writes to disks.
    pub disk_writes: u64,
    /// Reads of pages that are part of a remote read.
    pub page_reads_remote: u64,
    /// Transfers from one machine to another.
    pub transfers: u64,
    /// Those of them that carried the data of remote reads.
    pub transfers_of_reads: u64,
    /// Bytes of data between a traced machine and another, or between others.
    pub outside_bytes: u64,
    /// Disk accesses and transfers outside the replayed part.
    pub left_out: u64,
}

/// The records of a machine on the clock of all machines.
struct Timed {
    disk: DiskTrace,
    /// Added to times of the disk trace.
    disk_clock_ns: i64,
    sent: Vec<Transfer>,
}

/// A part of the time of a machine.
struct Window {
    from: Ns,
    end: Ns,
    speed: f64,
}

impl Recordings {
    /// Reads everything, and attributes reads to the machines that they served.
    ///
    /// # Errors
    /// [`InputError`] for a file that cannot be used, and for records that cannot be brought onto
    /// one clock.
    pub fn load(
        &self,
        part: Part,
        block: Bytes,
    ) -> Result<(Vec<Machine>, Attribution), InputError> {
        let (sent, outside_bytes) = self.transfers()?;
        let mut attribution = Attribution { outside_bytes, ..Attribution::default() };
        let mut all = Vec::new();
        for (recording, sent) in self.machines.iter().zip(sent) {
            let disk = DiskTrace::open(&recording.disks)?;
            let disk_clock_ns = self.disk_clock_ns(recording, &disk)?;
            all.push(Timed { disk, disk_clock_ns, sent });
        }
        let earliest = all.iter().filter_map(Timed::earliest).min().unwrap_or(Ns::ZERO);
        let latest = all.iter().filter_map(Timed::latest).max().unwrap_or(Ns::ZERO);
        let mut machines = Vec::new();
        for (recording, timed) in self.machines.iter().zip(&all) {
            let zero = recording.start.unwrap_or(earliest);
            let span = Ns(latest.0.saturating_sub(zero.0).saturating_add(1));
            machines.push(self.machine(
                recording,
                timed,
                (zero, span),
                part,
                block,
                &mut attribution,
            )?);
        }
        if machines.iter().all(Machine::is_idle) {
            let problem = "nothing of any machine falls into the replayed part: must be a part \
                           with an access or a transfer";
            return Err(InputError::file(self.first_file(), problem));
        }
        Ok((machines, attribution))
    }

    /// The first file of all.
    fn first_file(&self) -> &Path {
        let own = self
            .machines
            .iter()
            .flat_map(|machine| machine.pages.iter().chain(&machine.disks).chain(&machine.network));
        own.chain(&self.network).next().map_or(Path::new("traces"), PathBuf::as_path)
    }

    /// What is added to a machine's disk trace to get the wall clock.
    fn disk_clock_ns(&self, recording: &Recording, disk: &DiskTrace) -> Result<i64, InputError> {
        let needs_wall = self.has_network() || recording.start.is_some() || self.machines.len() > 1;
        match (disk.wall_less_trace_ns, disk.accesses.first()) {
            (Some(ns), _) => Ok(ns),
            (None, None) => Ok(0),
            (None, Some(_)) if !needs_wall => Ok(0),
            (None, Some(_)) => Err(InputError::file(
                &recording.disks[0],
                "no time stamp of the wall clock: must be with the file of the processor on which \
                 blktrace was started",
            )),
        }
    }

    fn has_network(&self) -> bool {
        !self.network.is_empty() || self.machines.iter().any(|machine| !machine.network.is_empty())
    }

    /// What each machine sent, in order of time, and the bytes from or to other addresses.
    fn transfers(&self) -> Result<(Vec<Vec<Transfer>>, u64), InputError> {
        let mut addresses = Addresses::new();
        for (index, machine) in (0..).zip(&self.machines) {
            addresses.extend(machine.addresses.iter().map(|&address| (address, index)));
        }
        let has_own: Vec<bool> =
            self.machines.iter().map(|machine| !machine.network.is_empty()).collect();
        let mut sent = vec![Vec::new(); self.machines.len()];
        let mut outside_bytes = 0;
        let mut read = |path: &PathBuf, is_asked: &dyn Fn(u8, u8) -> bool| {
            let mut transfers = Transfers::new(&addresses, self.gap);
            for segment in NetworkTrace::open(path)? {
                transfers.add(&segment?, is_asked);
            }
            let (ended, outside) = transfers.finish();
            outside_bytes += outside;
            for (from, transfer) in ended {
                sent[usize::from(from)].push(transfer);
            }
            Ok::<(), InputError>(())
        };
        for path in &self.network {
            read(path, &|_, _| true)?;
        }
        for (index, machine) in (0..).zip(&self.machines) {
            for path in &machine.network {
                // Each packet is in two captures, of its sender and of its receiver.
                read(path, &|from, to| {
                    from == index || (to == index && !has_own[usize::from(from)])
                })?;
            }
        }
        for transfers in &mut sent {
            transfers.sort_by_key(|transfer| (transfer.first, transfer.last, transfer.to));
        }
        Ok((sent, outside_bytes))
    }

    fn machine(
        &self,
        recording: &Recording,
        timed: &Timed,
        (zero, span): (Ns, Ns),
        part: Part,
        block: Bytes,
        attribution: &mut Attribution,
    ) -> Result<Machine, InputError> {
        let mut pages = match &recording.pages {
            Some(path) => Pages::load(path, part, block)?,
            None => Pages::none(self.first_file(), part, span)?,
        };
        let mut reads = timed.reads();
        reads.sort_by_key(|(_, read)| read.ready);
        let only: Vec<LocalRead> = reads.iter().map(|(_, read)| *read).collect();
        let by_disk = attribute(&only, &timed.sent, self.rule);
        let mut issuers = vec![None; timed.disk.accesses.len()];
        for ((index, _), served) in reads.iter().zip(&by_disk.served) {
            issuers[*index] = *served;
        }
        let mut is_carried = by_disk.is_matched;
        if recording.start.is_some() {
            let remote = self.attribute_pages(zero, &mut pages, &timed.sent, &mut is_carried);
            attribution.page_reads_remote += remote;
        }
        let window = Window {
            from: Ns(zero.0.saturating_add(part.from.0)),
            end: Ns(zero.0.saturating_add(pages.end.0)),
            speed: part.speed,
        };
        for (access, issuer) in timed.disk.accesses.iter().zip(issuers) {
            let kind = if access.is_write { FlowKind::DiskWrite } else { FlowKind::DiskRead };
            let count = match access.is_write {
                true => &mut attribution.disk_writes,
                false => &mut attribution.disk_reads,
            };
            *count += 1;
            attribution.disk_reads_remote += u64::from(issuer.is_some());
            let place = disk_block(access.device, access.sector, block);
            let sample = Sample { kind, issuer, ..Sample::of(place, access.bytes) };
            let at = timed.on_wall(access.issued_ns);
            attribution.left_out += u64::from(!window.push(&mut pages.samples, at, sample));
        }
        for (transfer, is_carried) in timed.sent.iter().zip(is_carried) {
            attribution.transfers += 1;
            attribution.transfers_of_reads += u64::from(is_carried);
            if !is_carried {
                let kind = FlowKind::Network;
                let sample =
                    Sample { kind, ..Sample::of(transfer.to.into(), transfer.bytes as u32) };
                attribution.left_out +=
                    u64::from(!window.push(&mut pages.samples, transfer.first, sample));
            }
        }
        Ok(pages.machine(self.own_disks))
    }

    /// Attributes reads of pages to what no read of a disk explains, and returns their number.
    fn attribute_pages(
        &self,
        zero: Ns,
        pages: &mut Pages,
        sent: &[Transfer],
        is_carried: &mut [bool],
    ) -> u64 {
        let is_read = |&index: &usize| pages.samples[index].kind == FlowKind::Read;
        let indices: Vec<usize> = (0..pages.samples.len()).filter(is_read).collect();
        let read = |&index: &usize| LocalRead {
            ready: Ns(zero.0.saturating_add(pages.times[index].0)),
            bytes: pages.samples[index].bytes.into(),
        };
        let reads: Vec<LocalRead> = indices.iter().map(read).collect();
        let open = (0..sent.len()).filter(|&at| !is_carried[at]).collect::<Vec<_>>();
        let rest: Vec<Transfer> = open.iter().map(|&at| sent[at]).collect();
        let matches = attribute(&reads, &rest, self.rule);
        for (index, served) in indices.into_iter().zip(&matches.served) {
            pages.samples[index].issuer = *served;
        }
        for (at, is_matched) in open.into_iter().zip(matches.is_matched) {
            is_carried[at] = is_matched;
        }
        matches.served.iter().flatten().count() as u64
    }
}

impl Timed {
    fn on_wall(&self, ns: u64) -> Ns {
        Ns(ns.saturating_add_signed(self.disk_clock_ns))
    }

    /// Reads of the disk, each with the index of its access.
    fn reads(&self) -> Vec<(usize, LocalRead)> {
        let reads = self.disk.accesses.iter().enumerate().filter(|(_, access)| !access.is_write);
        reads
            .map(|(index, access)| {
                let ready = self.on_wall(access.completed_ns.unwrap_or(access.issued_ns));
                (index, LocalRead { ready, bytes: access.bytes.into() })
            })
            .collect()
    }

    fn earliest(&self) -> Option<Ns> {
        let disk = self.disk.accesses.first().map(|access| self.on_wall(access.issued_ns));
        disk.into_iter().chain(self.sent.first().map(|sent| sent.first)).min()
    }

    fn latest(&self) -> Option<Ns> {
        let disk = self.disk.accesses.last().map(|access| self.on_wall(access.issued_ns));
        disk.into_iter().chain(self.sent.iter().map(|sent| sent.last)).max()
    }
}

impl Window {
    /// Adds a sample if `at` is within the window.
    fn push(&self, samples: &mut Vec<Sample>, at: Ns, sample: Sample) -> bool {
        let is_in = (self.from..self.end).contains(&at);
        if is_in {
            let at = crate::machine::scaled(at.0 - self.from.0, self.speed);
            samples.push(Sample { at, ..sample });
        }
        is_in
    }
}

impl Attribution {
    /// What readers of results should know of it.
    #[must_use]
    pub fn notices(&self) -> Vec<String> {
        let Attribution { disk_reads, disk_reads_remote, transfers, transfers_of_reads, .. } = self;
        let mut notices = vec![format!(
            "of {disk_reads} disk reads in the traces, {disk_reads_remote} go to the machine to \
             which their data was sent; of {transfers} transfers, {transfers_of_reads} carried \
             data that was just read, and are not replayed by themselves"
        )];
        if self.page_reads_remote > 0 {
            let count = self.page_reads_remote;
            notices.push(format!("{count} reads of pages go to the machine that they served"));
        }
        if self.outside_bytes > 0 {
            let bytes = self.outside_bytes;
            notices.push(format!(
                "{bytes} bytes from or to addresses of no traced machine are not replayed"
            ));
        }
        if self.left_out > 0 {
            let count = self.left_out;
            notices
                .push(format!("{count} disk accesses and transfers are outside the replayed part"));
        }
        notices
    }
}
