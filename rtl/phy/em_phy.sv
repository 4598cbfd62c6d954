/// Both edges of a link, and their connection: em_phy_tx, em_phy_rx, and the state of the link from
/// the receiver's clock into the transmitter's.
module em_phy
  import em_link_pkg::*;
#(
    parameter bit Scrambled = 1'b1,
    /// One register on either way instead of two.
    parameter bit FewStages = 1'b0
) (
    input logic tx_clk_i,
    input logic tx_rst_ni,
    /// Both resets must be asserted together.
    input logic rx_clk_i,
    input logic rx_rst_ni,

    // In the receiver's clock.
    input  line_slot_t  line_i,
    input  logic        signal_i,
    input  logic        fail_i,
    input  logic        allow_i,
    output logic        up_o,
    output rx_events_t  events_o,
    output rx_memory_t  memory_o,
    output line_slot_t  encoded_o,

    // In the transmitter's clock.
    input  logic        slot_i,
    input  logic        strict_i,
    input  tx_memory_t  memory_i,
    output logic        memory_ready_o,
    output logic        encoder_ready_o,
    input  line_slot_t  encoded_i,
    output logic        encoder_overrun_o,
    output logic        memory_dry_o,
    output line_slot_t  line_o
);

  /// As after the reset of either side.
  localparam link_state_t Start = '{up: 1'b1, default: '0};

  link_state_t rx_state, told_q, tx_state_q, crossed;
  logic tells, crosses;

  em_phy_rx #(
      .Scrambled(Scrambled),
      .FewStages(FewStages)
  ) u_rx (
      .clk_i  (rx_clk_i),
      .rst_ni (rx_rst_ni),
      .line_i,
      .signal_i,
      .fail_i,
      .allow_i,
      .state_o(rx_state),
      .events_o,
      .memory_o,
      .encoded_o
  );

  assign up_o = rx_state.up;

  // Each state crosses whole and in order; what changes while the way is full crosses as one.
  em_fifo_async #(
      .Width($bits(link_state_t)),
      .Depth(4)
  ) u_state (
      .write_clk_i  (rx_clk_i),
      .write_rst_ni (rx_rst_ni),
      .write_valid_i(rx_state != told_q),
      .write_ready_o(tells),
      .write_data_i (rx_state),
      .read_clk_i   (tx_clk_i),
      .read_rst_ni  (tx_rst_ni),
      .read_valid_o (crosses),
      .read_ready_i (1'b1),
      .read_data_o  (crossed)
  );

  always_ff @(posedge rx_clk_i or negedge rx_rst_ni) begin
    if (!rx_rst_ni) told_q <= Start;
    else if (tells) told_q <= rx_state;
  end

  always_ff @(posedge tx_clk_i or negedge tx_rst_ni) begin
    if (!tx_rst_ni) tx_state_q <= Start;
    else if (crosses) tx_state_q <= crossed;
  end

  em_phy_tx #(
      .Scrambled(Scrambled),
      .FewStages(FewStages)
  ) u_tx (
      .clk_i  (tx_clk_i),
      .rst_ni (tx_rst_ni),
      .slot_i,
      .strict_i,
      .state_i(tx_state_q),
      .memory_i,
      .memory_ready_o,
      .encoder_ready_o,
      .encoded_i,
      .encoder_overrun_o,
      .memory_dry_o,
      .line_o
  );

endmodule
