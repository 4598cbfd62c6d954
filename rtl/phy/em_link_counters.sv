/// The registers of a link: connects the register file of rtl/registers to the link's signals.
module em_link_counters
  import em_bus_pkg::*;
  import em_link_pkg::*;
#(
    localparam int unsigned RxEvents = $bits(rx_events_t) + 2
) (
    input logic clk_i,
    input logic rst_ni,

    input  request_t  bus_i,
    output response_t bus_o,

    output link_config_t config_o,
    /// Held, too many errors, lock, up.
    input  logic [3:0]   status_i,
    /// A slip of the gearbox, a memory block, and the events of the receiver.
    input  logic [RxEvents-1:0][3:0] counts_i,
    input  logic overrun_i,
    input  logic dry_i,
    input  logic sent_i
);

  typedef struct packed {
    logic [3:0] slip;
    logic [3:0] received;
    logic [3:0] corrupt;
    logic [3:0] remote_failed;
    logic [3:0] started;
    logic [3:0] message_aborted;
    logic [3:0] frame_aborted;
    logic [3:0] frame_too_long;
    logic [3:0] frame_corrupt;
    logic [3:0] corrupt_control;
    logic [3:0] corrupt_message;
    logic [3:0] corrupt_frame;
  } counts_t;

  counts_t counts;
  em_link_registers_pkg::em_link_registers__in_t said;
  em_link_registers_pkg::em_link_registers__out_t wanted;

  assign counts = counts_i;

  assign said.status.up.next     = status_i[0];
  assign said.status.lock.next   = status_i[1];
  assign said.status.hi_ber.next = status_i[2];
  assign said.status.held.next   = status_i[3];

  // Whatever came in a cycle, none or several.
  assign said.corrupt.count                = '{incr: 1'b1, incrvalue: counts.corrupt};
  assign said.corrupt_control.count        = '{incr: 1'b1, incrvalue: counts.corrupt_control};
  assign said.corrupt_message.count        = '{incr: 1'b1, incrvalue: counts.corrupt_message};
  assign said.corrupt_frame.count          = '{incr: 1'b1, incrvalue: counts.corrupt_frame};
  assign said.remote_failed.count          = '{incr: 1'b1, incrvalue: counts.remote_failed};
  assign said.started.count                = '{incr: 1'b1, incrvalue: counts.started};
  assign said.slips.count                  = '{incr: 1'b1, incrvalue: counts.slip};
  assign said.messages_aborted.count       = '{incr: 1'b1, incrvalue: counts.message_aborted};
  assign said.frames_aborted.count         = '{incr: 1'b1, incrvalue: counts.frame_aborted};
  assign said.frames_too_long.count        = '{incr: 1'b1, incrvalue: counts.frame_too_long};
  assign said.frames_corrupt.count         = '{incr: 1'b1, incrvalue: counts.frame_corrupt};
  assign said.encoder_overruns.count       = '{incr: overrun_i, incrvalue: 4'd1};
  assign said.memory_dry.count             = '{incr: dry_i, incrvalue: 4'd1};
  assign said.memory_blocks_sent.count     = '{incr: sent_i, incrvalue: 4'd1};
  assign said.memory_blocks_received.count = '{incr: 1'b1, incrvalue: counts.received};

  assign config_o.start  = wanted.control.start.value;
  assign config_o.hold   = wanted.control.hold.value;
  assign config_o.strict = wanted.control.strict.value;

  em_link_registers u_registers (
      .clk     (clk_i),
      .arst_n  (rst_ni),
      .bus_i,
      .bus_o,
      .hwif_in (said),
      .hwif_out(wanted)
  );

endmodule
