/// A switch of EDM: memory and Ethernet on the same ports. It stands between `em_phy_rx` and
/// `em_phy_tx` of each port.
module em_switch
  import em_link_pkg::*;
  import em_sched_pkg::*;
  import em_switch_pkg::*;
  import em_l2_pkg::*;
#(
    parameter int unsigned Ports = 8,
    parameter int unsigned NotificationsMax = 3,
    parameter int unsigned ChunkBytes = 256,
    parameter int unsigned ElasticCycles = 0,
    parameter int unsigned FrameBlocks = 2048,
    parameter int unsigned Entries = 1024
) (
    /// Of all transmitters.
    input logic clk_i,
    input logic rst_ni,
    /// Of each receiver.
    input logic [Ports-1:0] rx_clk_i,
    input logic [Ports-1:0] rx_rst_ni,

    // Set once, while nothing waits.
    input rank_config_t    rank_config_i,
    input control_config_t control_config_i,
    input left_t           window_cycles_i,
    input left_t           ahead_cycles_i,

    // From the receivers, in their clocks.
    input logic       [Ports-1:0] link_up_i,
    input rx_memory_t [Ports-1:0] memory_i,
    input logic       [Ports-1:0] encoded_rx_valid_i,
    input block_t     [Ports-1:0] encoded_rx_i,

    // To the transmitters.
    output tx_memory_t [Ports-1:0] memory_o,
    input  logic       [Ports-1:0] memory_ready_i,
    input  logic       [Ports-1:0] encoder_ready_i,
    output logic       [Ports-1:0] encoded_tx_valid_o,
    output block_t     [Ports-1:0] encoded_tx_o,

    output logic       [Ports-1:0] port_up_o,
    output events_t    [Ports-1:0] events_o,
    output l2_events_t [Ports-1:0] l2_events_o
);

  logic [Ports-1:0] frame_up, frame_down;

  em_switch_memory #(
      .Ports           (Ports),
      .NotificationsMax(NotificationsMax),
      .ChunkBytes      (ChunkBytes),
      .ElasticCycles   (ElasticCycles)
  ) u_memory (
      .clk_i,
      .rst_ni,
      .rx_clk_i,
      .rx_rst_ni,
      .rank_config_i,
      .control_config_i,
      .window_cycles_i,
      .ahead_cycles_i,
      .link_up_i,
      .memory_i,
      .memory_o,
      .memory_ready_i,
      .frame_up_i  (frame_up),
      .frame_down_i(frame_down),
      .port_up_o,
      .events_o
  );

  em_l2_switch #(
      .Ports      (Ports),
      .FrameBlocks(FrameBlocks),
      .Entries    (Entries)
  ) u_ethernet (
      .clk_i,
      .rst_ni,
      .rx_clk_i,
      .rx_rst_ni,
      .port_up_i   (port_up_o),
      .encoded_rx_valid_i,
      .encoded_rx_i,
      .encoder_ready_i,
      .encoded_tx_valid_o,
      .encoded_tx_o,
      .frame_up_o  (frame_up),
      .frame_down_o(frame_down),
      .events_o    (l2_events_o)
  );

endmodule
