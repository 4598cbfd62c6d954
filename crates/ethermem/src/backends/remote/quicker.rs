//! `node:`: UDP or raw Ethernet, whichever has the shorter round trips.
//!
//! The node is the one that responds by UDP. A node on raw Ethernet is identified as this one by
//! its life (start number). Then round trips are measured on both, alternately.

use std::time::{Duration, Instant};

use ethermem_pool::{Error, ProcessId};
use ethermem_udp::{RING_PORT, RingPlace, interface_of, nodes_at};
use ethermem_wire::clio::Request;

use super::{Remote, RemoteConfig, Way};
use crate::open_error::OpenError;

/// Round trips measured per transport, warm-up round trips before them, and the most time for each.
const ROUND_TRIPS: usize = 64;
const FIRST: usize = 8;
const MOST: Duration = Duration::from_millis(250);
/// The node has responded by UDP, so on raw Ethernet the pool waits no longer than this.
const FOUND_WITHIN: Duration = Duration::from_millis(100);
/// Longest round trip there; a node with another key is waited for this long, too.
const ANSWERED_WITHIN: Duration = Duration::from_millis(500);

impl Remote {
    pub(super) fn open_quicker(
        config: &RemoteConfig,
        host: &str,
        ring: Option<&RingPlace>,
    ) -> Result<Remote, OpenError> {
        let by = |way| RemoteConfig { way, ..config.clone() };
        let mut udp = Remote::open(&by(Way::Udp(host.to_owned())))?;
        let measured = udp.same_on_ring(config, ring).and_then(|(place, mut ring)| {
            let times = round_trips([&mut udp, &mut ring]);
            let times = times.map_err(|error| format!("ring://{place}, not measured: {error}"))?;
            Ok((place, times.map(|time| time.as_secs_f64() * 1e6)))
        });
        let why = match measured {
            Ok((place, [udp_us, ring_us])) if ring_us < udp_us => {
                match Remote::open(&by(Way::Ring(place.clone()))) {
                    Ok(mut ring) => {
                        let than = format!("by udp://{host} {udp_us:.1} us");
                        let time = format!("{ring_us:.1} us a round trip");
                        ring.choice = Some(format!("by ring://{place}, {time}, {than}"));
                        return Ok(ring);
                    }
                    Err(error) => format!("; {error}"),
                }
            }
            Ok((place, [udp_us, ring_us])) => {
                format!(", {udp_us:.1} us a round trip, by ring://{place} {ring_us:.1} us")
            }
            Err(problem) => format!("; {problem}"),
        };
        udp.choice = Some(format!("by udp://{host}{why}"));
        Ok(udp)
    }

    /// The same node on raw Ethernet, or the reason why there is none.
    fn same_on_ring(
        &self,
        config: &RemoteConfig,
        place: Option<&RingPlace>,
    ) -> Result<(RingPlace, Remote), String> {
        let place = place.cloned().map_or_else(|| self.everybody(), Ok)?;
        let found = nodes_at(&place, FOUND_WITHIN).map_err(|error| error.to_string())?;
        let mut others = 0;
        for place in found {
            let way = Way::Ring(place.clone());
            let give_up_after = config.give_up_after.min(ANSWERED_WITHIN);
            match Remote::open(&RemoteConfig { way, give_up_after, ..config.clone() }) {
                Ok(ring) if ring.epoch == self.epoch => return Ok((place, ring)),
                _ => others += 1,
            }
        }
        let others = if others > 0 { "other nodes answer, and not this one" } else { "no answer" };
        Err(format!("ring://{place}: {others}"))
    }

    /// A place that means all nodes of the interface by which this node is reached.
    fn everybody(&self) -> Result<RingPlace, String> {
        let from = self.driver.from().ok_or("its socket has no address")?;
        let found = interface_of(from.ip()).map_err(|error| error.to_string())?;
        let interface = found.ok_or_else(|| format!("no interface has {}", from.ip()))?;
        Ok(RingPlace { interface, port: RING_PORT, mac: None })
    }

    fn round_trip(&mut self) -> Result<Duration, Error> {
        let began = Instant::now();
        self.ask(ProcessId(0), Request::Hello)?;
        Ok(began.elapsed())
    }
}

/// The median round trip of each transport, measured alternately.
fn round_trips(mut ways: [&mut Remote; 2]) -> Result<[Duration; 2], Error> {
    let mut times = [(); 2].map(|()| Vec::with_capacity(FIRST + ROUND_TRIPS));
    let began = Instant::now();
    while times[0].len() < FIRST + ROUND_TRIPS && (times[0].is_empty() || began.elapsed() < MOST) {
        for (way, times) in ways.iter_mut().zip(&mut times) {
            times.push(way.round_trip()?);
        }
    }
    Ok(times.map(|mut times| {
        let first = FIRST.min(times.len() / 2);
        let counts = &mut times[first..];
        counts.sort_unstable();
        counts[counts.len() / 2]
    }))
}
