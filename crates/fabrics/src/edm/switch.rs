//! Items at the switch: notifications and requests to the scheduler, grants from it, chunks along
//! their circuits, and the downlinks.

use ethermem_edm::{Action, Emission, NodeId, StatusCode};
use ethermem_engine::engine::Sim;
use ethermem_units::{Bytes, Ps};
use ethermem_workload::NodeIndex;

use super::flight::{Flights, Item, Payload};
use super::{Edm, Event};

impl Edm {
    pub(super) fn at_switch(&mut self, sim: &mut Sim<Event>, flight: u32) {
        let item = self.flights.get(flight);
        let (now, from) = (sim.now(), NodeId::at(item.from));
        if item.due > now {
            let due = item.due;
            sim.at(due, Event::AtSwitch(flight));
            return;
        }
        let queued = match item.payload {
            Payload::Request(request) => {
                self.switch.on_request(now, from, request.into(), item.blocks.into())
            }
            Payload::Notify(notification) => self.switch.on_notification(now, from, notification),
            Payload::Status(_) => {
                sim.at(now + self.delays.forward, Event::AtEgress(flight));
                return;
            }
            Payload::Chunk(..) | Payload::Grant(_) => {
                unreachable!("chunks go to their egress, grants come from the switch")
            }
        };
        let item = self.flights.take(flight);
        if let Err(error) = queued {
            let what = format!("the switch refused {item:?}: {error:?}");
            self.break_off(what);
        }
        self.schedule_step(sim);
    }

    pub(super) fn schedule_step(&mut self, sim: &mut Sim<Event>) {
        if let Some(wake) = self.switch.next_wake() {
            let at = wake.max(sim.now());
            if at < self.step_at {
                self.step_at = at;
                sim.at(at, Event::Step);
            }
        }
    }

    pub(super) fn step(&mut self, sim: &mut Sim<Event>) {
        if sim.now() != self.step_at {
            return;
        }
        self.step_at = Ps::MAX;
        let Edm { switch, flights, delays, granted, chunk, tracks, .. } = self;
        switch.step(sim.now(), |at, emission| {
            let item = match emission {
                Emission::Grant { to, grant } => {
                    *granted += grant.bytes;
                    Item::grant(to, grant)
                }
                Emission::Release { to, request } => {
                    *granted += Bytes(request.bytes.0.min(chunk.0));
                    Item::release(to, request)
                }
            };
            if let Some(tracks) = tracks {
                tracks.granted(sim.timeline(), &item, at);
            }
            sim.at(at + delays.generate_grant, Event::AtEgress(flights.insert(item)));
        });
        if let Some(tracks) = &self.tracks {
            let now = sim.now();
            tracks.waiting(sim.timeline(), now, self.switch.scheduler().waiting());
        }
        while let Some(port) = self.switch.poll_full() {
            self.on_departures(sim, port.number());
        }
        self.schedule_step(sim);
    }

    pub(super) fn at_egress(&mut self, sim: &mut Sim<Event>, flight: u32) {
        let now = sim.now();
        let item = self.flights.get(flight);
        if item.data > 0 && item.due > now {
            let due = item.due;
            sim.at(due, Event::AtEgress(flight));
            return;
        }
        if let Payload::Chunk(chunk, _) = &item.payload {
            let (from, to, last, bytes) = (item.from, item.to, chunk.last, chunk.bytes);
            self.forward_check(now, flight, from, to, bytes);
            let arriving = &mut self.nodes[usize::from(to)].arriving;
            if !last && !arriving.contains(&from) {
                self.pass_on(sim, flight);
                self.after_chunk(sim, to);
                return;
            }
            arriving.push(from);
            self.send_down(sim, flight);
            self.after_chunk(sim, to);
        } else {
            self.switch.on_emitted(now, NodeId::at(item.to), item.blocks.into());
            self.send_down(sim, flight);
        }
    }

    /// Reports departures from a downlink to a switch that waits for them, and schedules the next
    /// check.
    #[cold]
    pub(super) fn on_departures(&mut self, sim: &mut Sim<Event>, to: NodeIndex) {
        let Edm { links, switch, nodes, .. } = self;
        let link = links.down(to);
        let departed = link.take_started_data(sim.now());
        switch.on_departed(NodeId::at(to), departed.0 as u32);
        let set = &mut nodes[usize::from(to)].departure_set;
        if switch.is_full(NodeId::at(to))
            && !*set
            && let Some(at) = link.next_start()
        {
            *set = true;
            sim.at(at, Event::Departure(to));
        }
    }

    /// Handles a chunk that was handed to a downlink. Its departures matter only if the port is
    /// full.
    #[inline]
    fn after_chunk(&mut self, sim: &mut Sim<Event>, to: NodeIndex) {
        let departed = self.links.down(to).take_started_data(sim.now());
        self.switch.on_departed(NodeId::at(to), departed.0 as u32);
        if self.switch.is_full(NodeId::at(to)) {
            self.on_departures(sim, to);
        }
        self.schedule_step(sim);
    }

    /// Gives an item its slots on its downlink, and schedules its processing at the host.
    #[inline]
    fn send_down(&mut self, sim: &mut Sim<Event>, flight: u32) {
        let now = sim.now();
        let Edm { links, flights, delays, nodes, tracks, .. } = self;
        let item = flights.get(flight);
        let (to, size) = (item.to, item.size());
        let link = links.down(to);
        let name = (flight, item.stream(item.from));
        let start = link.send_in(now, size, name, |name, by| flights.put_off(name, by));
        let tail = link.tail(size.0);
        let item = flights.get_mut(flight);
        if let Some(tracks) = tracks {
            tracks.down(sim.timeline(), item, start, start + tail);
        }
        let whole = start + tail + delays.hop;
        let queue = &mut nodes[usize::from(to)].grants_until;
        let mut granted = |processed: Ps| {
            *queue = processed.max(*queue);
            *queue
        };
        item.due = match item.payload {
            Payload::Grant(_) => granted(whole + delays.grant_to_data),
            Payload::Request(_) => granted(whole + delays.request_to_data),
            Payload::Chunk(..) | Payload::Notify(_) | Payload::Status(_) => {
                whole + delays.receive_data
            }
        };
        sim.at(item.due, Event::AtHost(flight));
    }

    /// Checks that the circuit of the oldest grant leads to the chunk's destination.
    #[inline]
    fn forward_check(&mut self, now: Ps, flight: u32, from: u16, to: u16, bytes: Bytes) {
        let port = self.switch.on_chunk(now, NodeId::at(from), bytes);
        if port != Some(NodeId::at(to)) {
            let item = self.flights.get(flight);
            self.break_off(format!("the circuit of {from} leads to {port:?}: {item:?}"));
        }
    }

    /// Gives slots to a chunk that is not the last of its message; its receiver counts it now. Only
    /// the arrival time of the last chunk matters, so this chunk needs no event of its own. It must
    /// not overtake a chunk that has an event: an earlier message may have used its id.
    #[inline]
    fn pass_on(&mut self, sim: &mut Sim<Event>, flight: u32) {
        let now = sim.now();
        let item = self.flights.take(flight);
        let Payload::Chunk(chunk, _) = &item.payload else {
            unreachable!("only data is passed on")
        };
        let link = self.links.down(item.to);
        let name = (Flights::PASSED_ON, item.stream(item.from));
        let start = link.send_in(now, item.size(), name, |_, _| unreachable!("data moves nobody"));
        if let Some(tracks) = &self.tracks {
            tracks.down(sim.timeline(), item, start, start + link.tail(item.size().0));
        }
        self.delivered += chunk.bytes;
        let host = &mut self.hosts[usize::from(item.to)];
        if let Some(Action::Store(stored)) = host.on_chunk(now, *chunk) {
            host.on_written(now, &stored, StatusCode::Ok);
        }
    }
}
