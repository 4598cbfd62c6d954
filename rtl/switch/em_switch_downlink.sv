/// Everything that the switch sends by a port: its grants, released requests and peer notices as
/// blocks, and the chunks and statuses of all sources that go there.
module em_switch_downlink
  import em_pkg::*;
  import em_link_pkg::*;
  import em_sched_pkg::left_t;
  import em_sched_pkg::charge_t;
  import em_sched_pkg::decision_t;
  import em_switch_pkg::*;
#(
    parameter int unsigned Ports = 8,
    parameter logic [$clog2(Ports)-1:0] Port = '0,
    parameter int unsigned Lanes = 7,
    parameter int unsigned LaneBlocks = 128,
    parameter int unsigned ChunkBlocks = 35,
    parameter int unsigned StatusLaneBlocks = 32,
    parameter int unsigned ElasticCycles = 0,
    parameter int unsigned EmitDepth = 32,
    localparam int unsigned PortWidth = $clog2(Ports)
) (
    input logic clk_i,
    input logic rst_ni,
    input logic up_i,

    // By source, for any port.
    input  routed_chunk_t              chunk_i[Ports],
    output logic           [Ports-1:0] chunk_refused_o,
    input  routed_status_t             status_i[Ports],
    output logic           [Ports-1:0] status_refused_o,

    /// What is granted to the node of this port.
    input  decision_t grant_i,
    /// The request that it is the first grant of, if it is one's.
    input  held_t     held_i,
    output logic      grant_room_o,

    input  notice_t notice_i,
    output logic    notice_ready_o,

    output tx_memory_t memory_o,
    input  logic       memory_ready_i,
    /// A block of an Ethernet frame passed.
    input  logic       frame_i,
    output charge_t    charge_o
);

  rreq_ms_t request;
  grant_t grant;
  status_t notice;
  logic releases, control;
  logic [7:0] sub_type, grant_crc, notice_crc;
  logic [ContentBits-1:0] content;
  word_t grant_word, notice_word;
  logic [Ports-1:0] chunk_here, chunk_first, chunk_last, status_here;
  block_t [Ports-1:0] chunk_block, status_block;

  // The node is at the same place in every request.
  assign releases = grant_i.response && grant_i.first;
  always_comb begin
    request       = held_i.ms;
    request.node  = node_t'(PortWidth'(grant_i.destination));
    grant         = '0;
    grant.response = grant_i.response;
    grant.node    = node_t'(PortWidth'(grant_i.destination));
    grant.id      = grant_i.tag[IdBits-1:0];
    grant.bytes   = grant_i.bytes;
    notice        = '0;
    notice.opcode = OpPeer;
    notice.node   = node_t'(PortWidth'(notice_i.peer));
    notice.code   = notice_i.joined ? StatusOk : StatusLinkDisabled;
  end
  assign sub_type = releases ? SubStart : SubGrant;
  assign content  = releases ? request : grant;

  em_crc8 u_grant_crc (
      .sub_type_i(sub_type),
      .content_i (content),
      .crc_o     (grant_crc)
  );

  em_crc8 u_notice_crc (
      .sub_type_i(SubSingle),
      .content_i (notice),
      .crc_o     (notice_crc)
  );

  assign grant_word  = '{
      request: releases,
      first: {grant_crc, content, sub_type, BlockEdm},
      held: held_i
  };
  assign notice_word = '{
      request: 1'b0,
      first: {notice_crc, notice, SubSingle, BlockEdm},
      held: '0
  };

  for (genvar s = 0; s < Ports; s++) begin : gen_sources
    assign chunk_here[s]   = chunk_i[s].valid && PortWidth'(chunk_i[s].port) == Port;
    assign chunk_first[s]  = chunk_i[s].first;
    assign chunk_last[s]   = chunk_i[s].last;
    assign chunk_block[s]  = chunk_i[s].block;
    assign status_here[s]  = status_i[s].valid && PortWidth'(status_i[s].port) == Port;
    assign status_block[s] = status_i[s].block;
  end

  em_switch_egress #(
      .Ports           (Ports),
      .Lanes           (Lanes),
      .LaneBlocks      (LaneBlocks),
      .ChunkBlocks     (ChunkBlocks),
      .StatusLaneBlocks(StatusLaneBlocks),
      .ElasticCycles   (ElasticCycles),
      .EmitDepth       (EmitDepth)
  ) u_egress (
      .clk_i,
      .rst_ni,
      .up_i,
      .chunk_valid_i   (chunk_here),
      .chunk_first_i   (chunk_first),
      .chunk_last_i    (chunk_last),
      .chunk_block_i   (chunk_block),
      .chunk_refused_o,
      .status_valid_i  (status_here),
      .status_block_i  (status_block),
      .status_refused_o,
      .grant_valid_i   (grant_i.valid),
      .grant_i         (grant_word),
      .grant_delay_i   (grant_i.delay),
      .grant_room_o,
      .notice_valid_i  (notice_i.valid),
      .notice_ready_o,
      .notice_i        (notice_word),
      .memory_o,
      .memory_ready_i,
      .charge_o        (control)
  );

  assign charge_o = charge_t'(control) + charge_t'(frame_i);

endmodule
