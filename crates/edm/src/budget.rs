//! Cycles of EDM's pipeline stages, as built on the 25 GbE testbed (Figure 5, sections 3.2.1 and
//! 3.2.2). No other list exists: the simulator's delays and the latency table are sums of these.

use ethermem_units::Cycles;

/// One pass through a PCS, transmit or receive.
pub const PCS: Cycles = Cycles(2);

/// Host: reads the message queue, creates an /N/ or the /M*/ blocks of a request.
pub const GENERATE_REQUEST: Cycles = Cycles(2);
/// Host: parses a /G/ and puts it into the grant queue.
pub const RECEIVE_GRANT: Cycles = Cycles(2);
/// Host: the grant queue, from the receive to the transmit clock.
pub const GRANT_QUEUE: Cycles = Cycles(4);
/// Host: reads message state and data buffer, creates the first block of a chunk.
pub const GENERATE_DATA: Cycles = Cycles(3);
/// Memory node: parses a request, queues its implicit grant, sends it to the memory controller.
pub const RECEIVE_REQUEST: Cycles = Cycles(3);
/// Host: parses a data block, extracts the address, hands the data on.
pub const RECEIVE_DATA: Cycles = Cycles(3);

/// Switch: tells /N/, /G/ and /M*/ by the block type.
pub const IDENTIFY: Cycles = Cycles(1);
/// Switch: inserts into the notification queue.
pub const INSERT: Cycles = Cycles(2);
/// Switch: one matching iteration, at the scheduler's clock.
pub const MATCH: Cycles = Cycles(crate::sched::CYCLES_PER_ITERATION);
/// Switch: creates a /G/, or rewrites the header of a released request.
pub const GENERATE_GRANT: Cycles = Cycles(1);
/// Switch: a granted block from the receive to the transmit clock; its identification is hidden in
/// the first of these cycles.
pub const FORWARD: Cycles = Cycles(4);
