/// The Ethernet side of the switch: a learning bridge that stores whole frames and forwards them,
/// in the order of their ports, to the port of their station or to all others.
module em_l2_switch
  import em_link_pkg::*;
  import em_l2_pkg::*;
#(
    parameter int unsigned Ports = 8,
    parameter int unsigned FrameBlocks = 2048,
    parameter int unsigned Frames = 64,
    parameter int unsigned Entries = 1024,
    parameter logic [39:0] EpochCycles = 40'd58_593_750_000
) (
    input logic clk_i,
    input logic rst_ni,
    input logic [Ports-1:0] rx_clk_i,
    input logic [Ports-1:0] rx_rst_ni,
    input logic [Ports-1:0] port_up_i,

    // In the clocks of the receivers: what is for a decoder.
    input logic   [Ports-1:0] encoded_rx_valid_i,
    input block_t [Ports-1:0] encoded_rx_i,

    // In place of an encoder.
    input  logic   [Ports-1:0] encoder_ready_i,
    output logic   [Ports-1:0] encoded_tx_valid_o,
    output block_t [Ports-1:0] encoded_tx_o,

    /// A block of a frame came, left.
    output logic       [Ports-1:0] frame_up_o,
    output logic       [Ports-1:0] frame_down_o,
    output l2_events_t [Ports-1:0] events_o
);

  localparam int unsigned PortWidth = $clog2(Ports);

  logic [Ports-1:0] ask, taken, valid, last, ready;
  mac_t destination[Ports], source[Ports];
  logic known;
  logic [PortWidth-1:0] known_port;
  block_t [Ports-1:0] block;
  // By ingress port, and by egress port.
  logic [Ports-1:0] wants[Ports], accepted[Ports], offered[Ports];
  logic [Ports-1:0] wanted[Ports], offers[Ports], chosen[Ports], takes[Ports];

  em_l2_table #(
      .Ports      (Ports),
      .Entries    (Entries),
      .EpochCycles(EpochCycles)
  ) u_table (
      .clk_i,
      .rst_ni,
      .ask_i        (ask),
      .destination_i(destination),
      .source_i     (source),
      .taken_o      (taken),
      .known_o      (known),
      .port_o       (known_port)
  );

  for (genvar p = 0; p < Ports; p++) begin : gen_ports
    block_t arrived;
    logic [Ports-1:0] pulls;

    em_l2_crossing u_crossing (
        .clk_i,
        .rst_ni,
        .rx_clk_i       (rx_clk_i[p]),
        .rx_rst_ni      (rx_rst_ni[p]),
        .encoded_valid_i(encoded_rx_valid_i[p]),
        .encoded_i      (encoded_rx_i[p]),
        .valid_o        (frame_up_o[p]),
        .block_o        (arrived)
    );

    em_l2_ingress #(
        .Ports      (Ports),
        .Port       (PortWidth'(p)),
        .FrameBlocks(FrameBlocks),
        .Frames     (Frames)
    ) u_ingress (
        .clk_i,
        .rst_ni,
        .port_up_i,
        .valid_i      (frame_up_o[p]),
        .block_i      (arrived),
        .ask_o        (ask[p]),
        .destination_o(destination[p]),
        .source_o     (source[p]),
        .taken_i      (taken[p]),
        .known_i      (known),
        .known_port_i (known_port),
        .wants_o      (wants[p]),
        .accepted_i   (accepted[p]),
        .valid_o      (valid[p]),
        .last_o       (last[p]),
        .block_o      (block[p]),
        .ready_i      (ready[p]),
        .events_o     (events_o[p])
    );

    // Of several ports that offer their turn, the lowest.
    em_arb_prio #(
        .Requests(Ports)
    ) u_choice (
        .request_i(offered[p]),
        .grant_o  (accepted[p])
    );

    for (genvar o = 0; o < Ports; o++) begin : gen_others
      assign wanted[p][o]  = wants[o][p];
      assign offered[p][o] = offers[o][p];
      assign chosen[p][o]  = accepted[o][p];
      assign pulls[o]      = takes[o][p];
    end
    assign ready[p] = pulls != '0;

    em_l2_egress #(
        .Ports(Ports)
    ) u_egress (
        .clk_i,
        .rst_ni,
        .wants_i        (wanted[p]),
        .offers_o       (offers[p]),
        .accepted_i     (chosen[p]),
        .valid_i        (valid),
        .last_i         (last),
        .block_i        (block),
        .ready_o        (takes[p]),
        .encoder_ready_i(encoder_ready_i[p]),
        .encoded_valid_o(encoded_tx_valid_o[p]),
        .encoded_o      (encoded_tx_o[p]),
        .frame_o        (frame_down_o[p])
    );
  end

endmodule
