/// A link end with its registers: block lock, both edges, starts as software permits, counters.
///
/// It stands between a gearbox and a host, or a port of the switch. Registers are in the
/// transmitter's clock. A failed link is down for at least `DownCycles`, which a switch needs to
/// detect it.
module em_link
  import em_link_pkg::*;
#(
    parameter bit Scrambled = 1'b1,
    /// The shims have one register on either way instead of two.
    parameter bit FewStages = 1'b0,
    /// Blocks until the gearbox has slipped.
    parameter int unsigned SlipBlocks = 4,
    parameter int unsigned DownCycles = 8
) (
    input logic tx_clk_i,
    input logic tx_rst_ni,
    /// Goes on while the link is down. Both resets must be asserted together.
    input logic rx_clk_i,
    input logic rx_rst_ni,

    // The line, in the receiver's clock.
    input  line_slot_t  line_i,
    input  logic        line_signal_i,
    output logic        line_slip_o,
    // In the transmitter's clock.
    input  logic        line_tx_slot_i,
    output line_slot_t  line_o,

    // Receiver's clock. A link starts only while `settled_i` is high, and fails by `fail_i`.
    input  logic        settled_i,
    input  logic        fail_i,
    output logic        up_o,
    output rx_memory_t  memory_o,
    output line_slot_t  encoded_o,

    // Transmitter's clock.
    input  tx_memory_t  memory_i,
    output logic        memory_ready_o,
    output logic        encoder_ready_o,
    input  line_slot_t  encoded_i,

    input  em_bus_pkg::request_t  bus_i,
    output em_bus_pkg::response_t bus_o
);

  localparam int unsigned DownBits = $clog2(DownCycles + 1);
  localparam int unsigned RxEvents = $bits(rx_events_t) + 2;

  link_config_t config_q;
  logic lock, hi_ber, slip, start_rx, hold_rx, held_q, overrun, dry;
  logic [3:0] status;
  logic [DownBits-1:0] down_q;
  rx_events_t events;
  rx_memory_t memory;

  em_block_sync #(
      .SlipBlocks(SlipBlocks)
  ) u_sync (
      .clk_i   (rx_clk_i),
      .rst_ni  (rx_rst_ni),
      .valid_i (line_i.valid),
      .header_i(line_i.block.header),
      .slip_o  (slip),
      .lock_o  (lock),
      .hi_ber_o(hi_ber)
  );

  assign line_slip_o = slip;

  em_sync #(
      .Width(2)
  ) u_config (
      .clk_i (rx_clk_i),
      .rst_ni(rx_rst_ni),
      .data_i({config_q.start, config_q.hold}),
      .data_o({start_rx, hold_rx})
  );

  always_ff @(posedge rx_clk_i or negedge rx_rst_ni) begin
    if (!rx_rst_ni) begin
      held_q <= 1'b0;
      down_q <= '0;
    end else begin
      if (!start_rx) held_q <= 1'b0;
      else if (events.corrupt && hold_rx) held_q <= 1'b1;
      if (up_o) down_q <= '0;
      else if (down_q != DownBits'(DownCycles)) down_q <= down_q + 1'b1;
    end
  end

  logic allow;
  assign allow = start_rx && !held_q && settled_i && down_q == DownBits'(DownCycles);

  em_phy #(
      .Scrambled(Scrambled),
      .FewStages(FewStages)
  ) u_phy (
      .tx_clk_i,
      .tx_rst_ni,
      .rx_clk_i,
      .rx_rst_ni,
      .line_i,
      .signal_i         (line_signal_i && lock && !hi_ber),
      .fail_i           (!start_rx || fail_i),
      .allow_i          (allow),
      .up_o,
      .events_o         (events),
      .memory_o         (memory),
      .encoded_o,
      .slot_i           (line_tx_slot_i),
      .strict_i         (config_q.strict),
      .memory_i,
      .memory_ready_o,
      .encoder_ready_o,
      .encoded_i,
      .encoder_overrun_o(overrun),
      .memory_dry_o     (dry),
      .line_o
  );

  assign memory_o = memory;

  em_sync #(
      .Width(4)
  ) u_status (
      .clk_i (tx_clk_i),
      .rst_ni(tx_rst_ni),
      .data_i({held_q, hi_ber, lock, up_o}),
      .data_o(status)
  );

  logic [RxEvents-1:0][3:0] counts;

  em_event_cross #(
      .Events(RxEvents)
  ) u_events (
      .event_clk_i (rx_clk_i),
      .event_rst_ni(rx_rst_ni),
      .event_i     ({slip, memory.valid && memory.ending != EndAborted, events}),
      .clk_i       (tx_clk_i),
      .rst_ni      (tx_rst_ni),
      .count_o     (counts)
  );

  em_link_counters u_counters (
      .clk_i     (tx_clk_i),
      .rst_ni    (tx_rst_ni),
      .bus_i,
      .bus_o,
      .config_o  (config_q),
      .status_i  (status),
      .counts_i  (counts),
      .overrun_i (overrun),
      .dry_i     (dry),
      .sent_i    (memory_ready_o && memory_i.valid)
  );

endmodule
