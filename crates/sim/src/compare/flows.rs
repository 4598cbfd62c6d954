//! The result of a run by the definitions of a published method.

use ethermem_units::{BLOCK_PAYLOAD_BYTES, Ps};

use super::method::{Denominator, FabricMethod, PublishedMethod, Reads, Stop};
use crate::Kind;
use crate::metrics::MessageWay;

/// The result of a run by a published method.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counted {
    /// Mean over the flows that ended in time; `None` when none did.
    pub slowdown_mean: Option<f64>,
    /// Mean time of these flows, in ns.
    pub latency_ns_mean: Option<f64>,
    /// Number of these flows.
    pub flows: u64,
    /// Number of messages that had not ended when the run was over; they are in no mean.
    pub unfinished: u64,
    /// Time at which the run was over, in ns.
    pub stopped_ns: f64,
}

/// One flow: a message, a request or a response.
#[derive(Clone, Copy)]
struct Flow {
    started: Ps,
    ended: Ps,
    /// The denominator of its time, in ns; `None` if it is not counted.
    alone_ns: Option<f64>,
}

/// Counts the flows of a run. `is_read` tells for each message, by its index, whether it is a read.
/// Where reads run as writes, the message's own kind does not tell it.
pub(super) fn count(
    ways: &[MessageWay],
    is_read: &[bool],
    method: &PublishedMethod,
    of: &FabricMethod,
    slot: Ps,
) -> Counted {
    let reads = |way: &MessageWay| is_read[way.message.index as usize];
    let flows: Vec<Flow> =
        ways.iter().flat_map(|way| flows_of(way, reads(way), method, of, slot)).flatten().collect();
    let over = over(ways, &flows, method, of);
    let mut counted = Counted { stopped_ns: over.as_ns_f64(), ..Counted::default() };
    let (mut sum, mut sum_ns) = (0.0, 0.0);
    for flow in flows.iter().filter(|flow| flow.ended <= over) {
        let Some(alone_ns) = flow.alone_ns else { continue };
        let took_ns = (flow.ended - flow.started).as_ns_f64();
        sum += (took_ns / alone_ns).max(method.slowdown_min);
        sum_ns += took_ns;
        counted.flows += 1;
    }
    let unfinished = |way: &&MessageWay| way.finished > over || never_ends(way, of);
    counted.unfinished = ways.iter().filter(unfinished).count() as u64;
    let mean = |sum: f64| (counted.flows > 0).then(|| sum / counted.flows as f64);
    (counted.slowdown_mean, counted.latency_ns_mean) = (mean(sum), mean(sum_ns));
    counted
}

/// True if the data of a message never ends by the definitions of the method.
fn never_ends(way: &MessageWay, of: &FabricMethod) -> bool {
    of.whole_blocks && !way.message.bytes.0.is_multiple_of(BLOCK_PAYLOAD_BYTES)
}

fn flows_of(
    way: &MessageWay,
    is_read: bool,
    method: &PublishedMethod,
    of: &FabricMethod,
    slot: Ps,
) -> [Option<Flow>; 2] {
    let (arrival, bytes) = (way.message.arrival, way.message.bytes);
    let ended = if never_ends(way, of) { Ps::MAX } else { way.finished };
    let whole = |alone_ns: f64| {
        let flow = Flow { started: arrival, ended, alone_ns: Some(alone_ns) };
        [Some(flow), None]
    };
    if method.denominator == Denominator::Alone {
        return whole(way.alone.as_ns_f64());
    }
    if !is_read {
        return whole(of.write.ns(bytes, slot));
    }
    let response = of.response.ns(bytes, slot);
    // A read that runs as a write has no request.
    if way.message.kind == Kind::Write {
        return whole(response);
    }
    let request = of.request.map(|request| request.ns(bytes, slot));
    // A bound sends no requests.
    let (Reads::TwoFlows, Some(at_memory)) = (method.reads, way.at_memory) else {
        return whole(request.unwrap_or(0.0) + response);
    };
    let request = Flow { started: arrival, ended: at_memory, alone_ns: request };
    let response = Flow { started: at_memory, ended, alone_ns: Some(response) };
    [Some(request), Some(response)]
}

/// The time at which a run is over.
fn over(ways: &[MessageWay], flows: &[Flow], method: &PublishedMethod, of: &FabricMethod) -> Ps {
    let over = match of.stop.unwrap_or(method.stop) {
        Stop::End => ways.iter().map(|way| way.finished).max().unwrap_or(Ps::ZERO),
        Stop::LastStart => last_start(ways),
    };
    let mut ends: Vec<Ps> = flows.iter().map(|flow| flow.ended).collect();
    ends.sort_unstable();
    // Without flows there is no last one.
    let after = |flows: u64| ends.get((flows as usize).wrapping_sub(1)).copied();
    let over = over.max(after(of.finished_min).unwrap_or(Ps::ZERO));
    over.min(of.stop_finished.and_then(after).unwrap_or(Ps::MAX))
}

/// The time at which the last message starts.
fn last_start(ways: &[MessageWay]) -> Ps {
    // Requests start when they arrive; other flows when their first byte leaves.
    let asked = |way: &MessageWay| way.message.kind != Kind::Write;
    let start = |way: &MessageWay| if asked(way) { way.message.arrival } else { way.leaves };
    let mut over = ways.iter().map(start).max().unwrap_or(Ps::ZERO);
    // A response that was requested by then, and has not started, delays the end as well.
    let mut responses: Vec<(Ps, Ps)> = ways
        .iter()
        .filter(|way| asked(way))
        .filter_map(|way| Some((way.at_memory?, way.leaves)))
        .collect();
    responses.sort_unstable();
    for (at_memory, leaves) in responses {
        if at_memory > over {
            break;
        }
        over = over.max(leaves);
    }
    over
}

#[cfg(test)]
mod tests {
    use ethermem_units::Bytes;

    use super::*;
    use crate::Message;
    use crate::compare::method::{FabricMethod, Slots};

    fn way(index: u64, kind: Kind, [arrival, at_memory, leaves, finished]: [u64; 4]) -> MessageWay {
        let bytes = Bytes(64);
        let arrival = Ps::from_ns(arrival);
        MessageWay {
            message: Message { index, arrival, kind, compute: 0, memory: 1, bytes },
            at_memory: (kind != Kind::Write).then(|| Ps::from_ns(at_memory)),
            leaves: Ps::from_ns(leaves),
            finished: Ps::from_ns(finished),
            alone: Ps::from_ns(50),
        }
    }

    /// Slots of 1 ns: writes take 20 and two for each of eight blocks, requests 10, responses 40.
    fn definitions() -> (PublishedMethod, FabricMethod) {
        let slots = |fixed, per_block| Slots::by_hand(fixed, per_block);
        let of = FabricMethod {
            write: slots(4.0, 2.0),
            request: Some(slots(10.0, 0.0)),
            response: slots(40.0, 0.0),
            ..FabricMethod::default()
        };
        let method = PublishedMethod {
            messages: 3,
            seeds: 1,
            stop: Stop::LastStart,
            denominator: Denominator::Published,
            reads: Reads::TwoFlows,
            slowdown_min: 1.0,
            fabrics: [("edm", of.clone())].into(),
        };
        (method, of)
    }

    const READS: [bool; 3] = [false, true, false];

    fn ways() -> [MessageWay; 3] {
        [
            way(0, Kind::Write, [0, 0, 5, 40]),
            // 30 ns to the memory node, 50 back; its response leaves after the last write does.
            way(1, Kind::Read, [10, 40, 70, 90]),
            way(2, Kind::Write, [20, 0, 60, 100]),
        ]
    }

    fn counted(change: impl FnOnce(&mut PublishedMethod, &mut FabricMethod)) -> Counted {
        let (mut method, mut of) = definitions();
        change(&mut method, &mut of);
        count(&ways(), &READS, &method, &of, Ps::from_ns(1))
    }

    #[test]
    fn a_run_is_over_with_the_last_start() {
        // The run is over at 70: the first write took 40 for 20, the request 30 for 10.
        let found = counted(|_, _| {});
        assert_eq!((found.flows, found.unfinished, found.stopped_ns), (2, 2, 70.0));
        assert_eq!(found.slowdown_mean, Some(2.5));
        assert_eq!(found.latency_ns_mean, Some(35.0));
        let all = counted(|method, _| method.stop = Stop::End);
        assert_eq!((all.flows, all.unfinished, all.stopped_ns), (4, 0, 100.0));
        assert_eq!(all.slowdown_mean, Some((2.0 + 3.0 + 1.25 + 4.0) / 4.0));
        let enough = counted(|_, of| of.stop_finished = Some(1));
        assert_eq!((enough.flows, enough.unfinished, enough.stopped_ns), (2, 2, 40.0));
        let needed = counted(|_, of| of.finished_min = 3);
        assert_eq!((needed.flows, needed.unfinished, needed.stopped_ns), (3, 1, 90.0));
        let own = counted(|_, of| of.stop = Some(Stop::End));
        assert_eq!(own, all, "what is said of the fabric goes first");
    }

    #[test]
    fn each_definition_changes_the_mean_by_itself() {
        let end = |method: &mut PublishedMethod| method.stop = Stop::End;
        let whole = counted(|method, _| {
            end(method);
            method.reads = Reads::Whole;
        });
        assert_eq!(whole.slowdown_mean, Some((2.0 + 80.0 / 50.0 + 4.0) / 3.0));
        let alone = counted(|method, _| {
            end(method);
            method.denominator = Denominator::Alone;
            method.slowdown_min = 0.0;
        });
        assert_eq!(alone.slowdown_mean, Some((0.8 + 1.6 + 1.6) / 3.0));
        let responses = counted(|method, of| {
            end(method);
            of.request = None;
        });
        assert_eq!(responses.flows, 3);
        let least = counted(|method, of| {
            end(method);
            of.response = Slots::by_hand(100.0, 0.0);
        });
        assert_eq!(least.slowdown_mean, Some((2.0 + 3.0 + 1.0 + 4.0) / 4.0), "no less than 1");
    }

    #[test]
    fn a_read_that_runs_as_a_write_has_its_own_denominator() {
        let (mut method, of) = definitions();
        method.stop = Stop::End;
        let ways = [way(0, Kind::Write, [0, 0, 5, 80])];
        let found = count(&ways, &[true], &method, &of, Ps::from_ns(1));
        assert_eq!((found.flows, found.slowdown_mean), (1, Some(2.0)));
    }

    #[test]
    fn data_that_does_not_fill_its_last_block_never_ends_where_the_method_says_so() {
        let (method, of) = definitions();
        let mut ways = ways();
        ways[0].message.bytes = Bytes(60);
        ways[1].message.bytes = Bytes(60);
        let of = FabricMethod { whole_blocks: true, stop: Some(Stop::End), ..of };
        let found = count(&ways, &READS, &method, &of, Ps::from_ns(1));
        // The second write took 80 for 20, and the request 30 for 10.
        assert_eq!((found.flows, found.unfinished), (2, 2));
        assert_eq!(found.slowdown_mean, Some((3.0 + 4.0) / 2.0));
    }

    #[test]
    fn a_read_without_a_request_is_one_flow() {
        let (method, of) = definitions();
        let mut ways = ways();
        ways[1].at_memory = None;
        let of = FabricMethod { stop: Some(Stop::End), ..of };
        let found = count(&ways, &READS, &method, &of, Ps::from_ns(1));
        // It took 80 for 50 from its arrival to its end.
        assert_eq!((found.flows, found.slowdown_mean), (3, Some((2.0 + 1.6 + 4.0) / 3.0)));
    }
}
