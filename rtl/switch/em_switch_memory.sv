/// The memory side of the switch, from its uplinks to its downlinks.
///
/// Each port receives in a clock of its own; all ports transmit, and the scheduler works, in
/// `clk_i`. A chunk passes in four cycles, all of them the crossing; a notification or request is
/// answered in seven.
module em_switch_memory
  import em_pkg::*;
  import em_link_pkg::*;
  import em_sched_pkg::*;
  import em_switch_pkg::*;
#(
    parameter int unsigned Ports = 8,
    parameter int unsigned NotificationsMax = 3,
    /// A multiple of 8, to the longest chunk of the wire.
    parameter int unsigned ChunkBytes = 256,
    /// Cycles that are counted without a wrap: 93 years of 2.56 ns.
    parameter int unsigned TimeWidth = 60,
    /// Grants that a source can leave open.
    parameter int unsigned CircuitDepth = 64,
    parameter int unsigned EmitDepth = 32,
    /// Chunks that can come in for one port at the same time, and blocks stored in the place of
    /// each: four of the longest, nearly.
    parameter int unsigned Lanes = (Ports <= 16) ? Ports - 1 : 16,
    parameter int unsigned LaneBlocks = (ChunkBytes > 256) ? ChunkBytes / 2 : 128,
    parameter int unsigned StatusLaneBlocks = 32,
    /// One where the clocks of links differ: chunks then take five cycles.
    parameter int unsigned ElasticCycles = 0
) (
    input logic clk_i,
    input logic rst_ni,
    input logic [Ports-1:0] rx_clk_i,
    input logic [Ports-1:0] rx_rst_ni,

    // Set once, while nothing waits.
    input rank_config_t    rank_config_i,
    input control_config_t control_config_i,
    input left_t           window_cycles_i,
    input left_t           ahead_cycles_i,

    /// In the clocks of the receivers. A port that fails is down for eight cycles at least.
    input logic       [Ports-1:0] link_up_i,
    input rx_memory_t [Ports-1:0] memory_i,

    output tx_memory_t [Ports-1:0] memory_o,
    input  logic       [Ports-1:0] memory_ready_i,

    /// Blocks of Ethernet frames that passed an uplink, a downlink.
    input logic [Ports-1:0] frame_up_i,
    input logic [Ports-1:0] frame_down_i,

    output logic    [Ports-1:0] port_up_o,
    output events_t [Ports-1:0] events_o
);

  localparam int unsigned PortWidth = $clog2(Ports);
  localparam int unsigned ChunkOverheadBlocks = 3;
  localparam int unsigned ChunkBlocks = ChunkBytes / 8 + ChunkOverheadBlocks;
  typedef logic [PortWidth-1:0] port_t;

  if (ChunkBytes % 8 != 0 || ChunkBytes == 0 || ChunkBytes > ChunkBytesMax) begin : gen_bad_chunk
    $error("ChunkBytes must be a multiple of 8, 8 to 4096");
  end

  // By port.
  logic [Ports-1:0] port_up, item_valid, circuit_room, emit_room;
  item_t item[Ports];
  logic [Ports-1:0] joined[Ports], notice_ready;
  heard_t heard[Ports];
  notice_t notice[Ports];
  ask_t ask[Ports];
  logic [Ports-1:0] ask_refused;
  charge_t uplink[Ports], downlink[Ports];
  held_t held[Ports];

  // Chunks and statuses, by source and by the port that they leave by.
  routed_chunk_t chunk[Ports];
  routed_status_t status[Ports];
  logic [Ports-1:0] chunk_refused[Ports], status_refused[Ports];

  decision_t decision[Ports];
  port_t asked_source[Ports];
  logic [Ports-1:0] released;

  for (genvar p = 0; p < Ports; p++) begin : gen_ports
    em_switch_crossing u_crossing (
        .clk_i,
        .rst_ni,
        .rx_clk_i (rx_clk_i[p]),
        .rx_rst_ni(rx_rst_ni[p]),
        .link_up_i(link_up_i[p]),
        .memory_i (memory_i[p]),
        .up_o     (port_up[p]),
        .valid_o  (item_valid[p]),
        .item_o   (item[p])
    );

    em_switch_uplink #(
        .Ports           (Ports),
        .Port            (PortWidth'(p)),
        .CircuitDepth    (CircuitDepth),
        .NotificationsMax(NotificationsMax)
    ) u_uplink (
        .clk_i,
        .rst_ni,
        .port_up_i       (port_up),
        .joined_i        (joined[p]),
        .valid_i         (item_valid[p]),
        .item_i          (item[p]),
        .grant_i         (decision[p]),
        .circuit_room_o  (circuit_room[p]),
        .asked_source_i  (asked_source[p]),
        .held_o          (held[p]),
        .release_i       (released[p]),
        .chunk_o         (chunk[p]),
        .chunk_refused_i (chunk_refused[port_t'(chunk[p].port)][p]),
        .ask_o           (ask[p]),
        .ask_refused_i   (ask_refused[p]),
        .frame_i         (frame_up_i[p]),
        .charge_o        (uplink[p]),
        .status_o        (status[p]),
        .status_refused_i(status_refused[port_t'(status[p].port)][p]),
        .heard_o         (heard[p]),
        .events_o        (events_o[p])
    );

    em_switch_downlink #(
        .Ports           (Ports),
        .Port            (PortWidth'(p)),
        .Lanes           (Lanes),
        .LaneBlocks      (LaneBlocks),
        .ChunkBlocks     (ChunkBlocks),
        .StatusLaneBlocks(StatusLaneBlocks),
        .ElasticCycles   (ElasticCycles),
        .EmitDepth       (EmitDepth)
    ) u_downlink (
        .clk_i,
        .rst_ni,
        .up_i            (port_up[p]),
        .chunk_i         (chunk),
        .chunk_refused_o (chunk_refused[p]),
        .status_i        (status),
        .status_refused_o(status_refused[p]),
        .grant_i         (decision[p]),
        .held_i          (held[port_t'(decision[p].destination)]),
        .grant_room_o    (emit_room[p]),
        .notice_i        (notice[p]),
        .notice_ready_o  (notice_ready[p]),
        .memory_o        (memory_o[p]),
        .memory_ready_i  (memory_ready_i[p]),
        .frame_i         (frame_down_i[p]),
        .charge_o        (downlink[p])
    );

    // The request of this compute node that is released now, by the memory node that is granted.
    always_comb begin
      released[p] = 1'b0;
      for (int unsigned s = 0; s < Ports; s++) begin
        released[p] |= decision[s].valid && decision[s].response && decision[s].first &&
                       decision[s].destination == node_t'(p);
      end
    end
  end

  assign port_up_o = port_up;

  em_switch_pairs #(
      .Ports(Ports)
  ) u_pairs (
      .clk_i,
      .rst_ni,
      .port_up_i     (port_up),
      .heard_i       (heard),
      .joined_o      (joined),
      .notice_o      (notice),
      .notice_ready_i(notice_ready)
  );

  em_scheduler #(
      .Ports              (Ports),
      .NotificationsMax   (NotificationsMax),
      .TagWidth           (IdBits),
      .TimeWidth          (TimeWidth),
      .ChunkBytes         (ChunkBytes),
      .ChunkOverheadBlocks(ChunkOverheadBlocks),
      .RegisterGrants     (1'b0)
  ) u_scheduler (
      .clk_i,
      .rst_ni,
      .rank_config_i,
      .control_config_i,
      .window_cycles_i,
      .ahead_cycles_i,
      .port_up_i          (port_up),
      .source_room_i      (circuit_room & emit_room),
      .destination_room_i ('1),
      .ask_i              (ask),
      .ask_refused_o      (ask_refused),
      .uplink_blocks_i    (uplink),
      .downlink_blocks_i  (downlink),
      .asked_source_o     (asked_source),
      .decision_o         (decision)
  );

endmodule
