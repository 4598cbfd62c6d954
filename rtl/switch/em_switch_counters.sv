/// The registers of a port of the switch: connects the register file of rtl/registers to the port's
/// events.
module em_switch_counters
  import em_bus_pkg::*;
(
    input logic clk_i,
    input logic rst_ni,

    input  request_t  bus_i,
    output response_t bus_o,

    input em_switch_pkg::events_t events_i,
    input em_l2_pkg::l2_events_t  l2_events_i
);

  em_port_registers_pkg::em_port_registers__in_t said;

  assign said.failures.count            = '{incr: events_i.failed, incrvalue: 4'd1};
  assign said.chunks_astray.count       = '{incr: events_i.chunk_astray, incrvalue: 4'd1};
  assign said.chunks_aborted.count      = '{incr: events_i.chunk_aborted, incrvalue: 4'd1};
  assign said.chunk_overflows.count     = '{incr: events_i.chunk_overflow, incrvalue: 4'd1};
  assign said.demands_refused.count     = '{incr: events_i.demand_refused, incrvalue: 4'd1};
  assign said.messages_unexpected.count = '{incr: events_i.message_unexpected, incrvalue: 4'd1};
  assign said.statuses_dropped.count    = '{incr: events_i.status_dropped, incrvalue: 4'd1};
  assign said.frames_dropped.count      = '{incr: l2_events_i.frame_dropped, incrvalue: 4'd1};
  assign said.frames_filtered.count     = '{incr: l2_events_i.frame_filtered, incrvalue: 4'd1};
  assign said.frames_flooded.count      = '{incr: l2_events_i.frame_flooded, incrvalue: 4'd1};

  em_port_registers u_registers (
      .clk    (clk_i),
      .arst_n (rst_ni),
      .bus_i,
      .bus_o,
      .hwif_in(said)
  );

endmodule
