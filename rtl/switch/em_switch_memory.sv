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
  logic [Ports-1:0] joined[Ports], heard_valid;
  port_t heard_peer[Ports];
  logic [Ports-1:0] notice_valid, notice_ready, notice_joined;
  port_t notice_peer[Ports];
  logic [Ports-1:0] notify_valid, notify_response, notify_refused;
  port_t notify_peer[Ports];
  bytes_t notify_bytes[Ports];
  logic [IdBits-1:0] notify_id[Ports];
  charge_t uplink[Ports], downlink[Ports];
  held_t held[Ports];

  // Chunks and statuses, by source and by the port that they leave by.
  logic [Ports-1:0] chunk_valid, chunk_first, chunk_last, status_valid;
  port_t chunk_port[Ports], status_port[Ports];
  block_t [Ports-1:0] chunk_block, status_block;
  logic [Ports-1:0] chunk_refused[Ports], status_refused[Ports];

  // Grants by source, a cycle before they leave.
  logic [Ports-1:0] grant_valid, grant_response, grant_first;
  port_t grant_destination[Ports], asked_source[Ports];
  logic [IdBits-1:0] grant_id[Ports];
  bytes_t grant_bytes[Ports];
  left_t grant_delay[Ports];
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
        .port_up_i         (port_up),
        .joined_i          (joined[p]),
        .valid_i           (item_valid[p]),
        .item_i            (item[p]),
        .grant_valid_i     (grant_valid[p]),
        .grant_destination_i(grant_destination[p]),
        .grant_bytes_i     (grant_bytes[p][GrantBytesBits-1:0]),
        .circuit_room_o    (circuit_room[p]),
        .asked_source_i    (asked_source[p]),
        .held_o            (held[p]),
        .release_i         (released[p]),
        .chunk_valid_o     (chunk_valid[p]),
        .chunk_first_o     (chunk_first[p]),
        .chunk_last_o      (chunk_last[p]),
        .chunk_port_o      (chunk_port[p]),
        .chunk_block_o     (chunk_block[p]),
        .chunk_refused_i   (chunk_refused[chunk_port[p]][p]),
        .notify_valid_o    (notify_valid[p]),
        .notify_response_o (notify_response[p]),
        .notify_peer_o     (notify_peer[p]),
        .notify_bytes_o    (notify_bytes[p]),
        .notify_id_o       (notify_id[p]),
        .notify_refused_i  (notify_refused[p]),
        .frame_i           (frame_up_i[p]),
        .charge_o          (uplink[p]),
        .status_valid_o    (status_valid[p]),
        .status_port_o     (status_port[p]),
        .status_block_o    (status_block[p]),
        .status_refused_i  (status_refused[status_port[p]][p]),
        .heard_valid_o     (heard_valid[p]),
        .heard_peer_o      (heard_peer[p]),
        .events_o          (events_o[p])
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
        .up_i               (port_up[p]),
        .chunk_valid_i      (chunk_valid),
        .chunk_first_i      (chunk_first),
        .chunk_last_i       (chunk_last),
        .chunk_port_i       (chunk_port),
        .chunk_block_i      (chunk_block),
        .chunk_refused_o    (chunk_refused[p]),
        .status_valid_i     (status_valid),
        .status_port_i      (status_port),
        .status_block_i     (status_block),
        .status_refused_o   (status_refused[p]),
        .grant_valid_i      (grant_valid[p]),
        .grant_destination_i(grant_destination[p]),
        .grant_response_i   (grant_response[p]),
        .grant_first_i      (grant_first[p]),
        .grant_id_i         (grant_id[p]),
        .grant_bytes_i      (grant_bytes[p][GrantBytesBits-1:0]),
        .grant_delay_i      (grant_delay[p]),
        .held_i             (held[grant_destination[p]]),
        .grant_room_o       (emit_room[p]),
        .notice_valid_i     (notice_valid[p]),
        .notice_peer_i      (notice_peer[p]),
        .notice_joined_i    (notice_joined[p]),
        .notice_ready_o     (notice_ready[p]),
        .memory_o           (memory_o[p]),
        .memory_ready_i     (memory_ready_i[p]),
        .frame_i            (frame_down_i[p]),
        .charge_o           (downlink[p])
    );

    // The request of this compute node that is released now, by the memory node that is granted.
    always_comb begin
      released[p] = 1'b0;
      for (int unsigned s = 0; s < Ports; s++) begin
        released[p] |= grant_valid[s] && grant_response[s] && grant_first[s] &&
                       grant_destination[s] == port_t'(p);
      end
    end
  end

  assign port_up_o = port_up;

  em_switch_pairs #(
      .Ports(Ports)
  ) u_pairs (
      .clk_i,
      .rst_ni,
      .port_up_i      (port_up),
      .heard_valid_i  (heard_valid),
      .heard_peer_i   (heard_peer),
      .joined_o       (joined),
      .notice_valid_o (notice_valid),
      .notice_peer_o  (notice_peer),
      .notice_joined_o(notice_joined),
      .notice_ready_i (notice_ready)
  );

  logic [Ports-1:0] unused_last;

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
      .notify_valid_i     (notify_valid),
      .notify_response_i  (notify_response),
      .notify_peer_i      (notify_peer),
      .notify_bytes_i     (notify_bytes),
      .notify_tag_i       (notify_id),
      .notify_refused_o   (notify_refused),
      .uplink_blocks_i    (uplink),
      .downlink_blocks_i  (downlink),
      .asked_source_o     (asked_source),
      .grant_valid_o      (grant_valid),
      .grant_destination_o(grant_destination),
      .grant_response_o   (grant_response),
      .grant_tag_o        (grant_id),
      .grant_bytes_o      (grant_bytes),
      .grant_first_o      (grant_first),
      .grant_last_o       (unused_last),
      .grant_delay_o      (grant_delay)
  );

endmodule
