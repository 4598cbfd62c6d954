/// A port's downlink: statuses first, then control of the switch, then chunks. Nothing comes
/// between the blocks of a unit.
module em_switch_egress
  import em_link_pkg::*;
  import em_sched_pkg::left_t;
  import em_switch_pkg::*;
#(
    parameter int unsigned Ports = 8,
    parameter int unsigned Lanes = 7,
    parameter int unsigned LaneBlocks = 128,
    parameter int unsigned ChunkBlocks = 35,
    parameter int unsigned StatusLaneBlocks = 32,
    parameter int unsigned ElasticCycles = 0,
    parameter int unsigned EmitDepth = 32
) (
    input logic clk_i,
    input logic rst_ni,
    input logic up_i,

    /// By source.
    input  logic   [Ports-1:0] chunk_valid_i,
    input  logic   [Ports-1:0] chunk_first_i,
    input  logic   [Ports-1:0] chunk_last_i,
    input  block_t [Ports-1:0] chunk_block_i,
    output logic   [Ports-1:0] chunk_refused_o,
    input  logic   [Ports-1:0] status_valid_i,
    input  block_t [Ports-1:0] status_block_i,
    output logic   [Ports-1:0] status_refused_o,

    input  logic  grant_valid_i,
    input  word_t grant_i,
    input  left_t grant_delay_i,
    output logic  grant_room_o,
    input  logic  notice_valid_i,
    output logic  notice_ready_o,
    input  word_t notice_i,

    output tx_memory_t memory_o,
    input  logic       memory_ready_i,
    /// A block that is of no chunk left: control, which the scheduler counts.
    output logic       charge_o
);

  /// Counts of chunks: further apart than lanes can hold.
  localparam int unsigned MarkWidth = $clog2(Lanes * LaneBlocks) + 2;

  typedef enum logic [1:0] {
    UnitNone,
    UnitEmit,
    UnitChunk
  } unit_e;

  unit_e unit_q;
  logic chunk_valid, chunk_last, chunk_ready, emit_valid, emit_framed, emit_last, emit_ready;
  logic status_valid, status_last, status_ready, taken;
  logic takes_status, takes_emit, takes_chunk;
  block_t chunk_block, emit_block, status_block;
  logic [MarkWidth-1:0] opened, left, unused_opened, unused_left;

  em_switch_lanes #(
      .Sources   (Ports),
      .Lanes     (Lanes),
      .LaneBlocks(LaneBlocks),
      .UnitBlocks(ChunkBlocks),
      .Units     (LaneBlocks / 2),
      .MarkWidth (MarkWidth),
      .ElasticCycles(ElasticCycles)
  ) u_chunks (
      .clk_i,
      .rst_ni,
      .clear_i  (!up_i),
      .valid_i  (chunk_valid_i),
      .first_i  (chunk_first_i),
      .last_i   (chunk_last_i),
      .block_i  (chunk_block_i),
      .refused_o(chunk_refused_o),
      .valid_o  (chunk_valid),
      .last_o   (chunk_last),
      .block_o  (chunk_block),
      .ready_i  (chunk_ready),
      .opened_o (opened),
      .left_o   (left)
  );

  em_switch_lanes #(
      .Sources   (Ports),
      .Lanes     (Lanes + 1),
      .LaneBlocks(StatusLaneBlocks),
      .UnitBlocks(1),
      .Units     (StatusLaneBlocks * 2),
      .MarkWidth (MarkWidth)
  ) u_statuses (
      .clk_i,
      .rst_ni,
      .clear_i  (!up_i),
      .valid_i  (status_valid_i),
      .first_i  (status_valid_i),
      .last_i   (status_valid_i),
      .block_i  (status_block_i),
      .refused_o(status_refused_o),
      .valid_o  (status_valid),
      .last_o   (status_last),
      .block_o  (status_block),
      .ready_i  (status_ready),
      .opened_o (unused_opened),
      .left_o   (unused_left)
  );

  em_switch_emit #(
      .Depth    (EmitDepth),
      .MarkWidth(MarkWidth)
  ) u_emit (
      .clk_i,
      .rst_ni,
      .clear_i(!up_i),
      .grant_valid_i,
      .grant_i,
      .grant_delay_i,
      .room_o (grant_room_o),
      .notice_valid_i,
      .notice_ready_o,
      .notice_i,
      .opened_i(opened),
      .left_i  (left),
      .valid_o (emit_valid),
      .framed_o(emit_framed),
      .last_o  (emit_last),
      .block_o (emit_block),
      .ready_i (emit_ready)
  );

  assign takes_status = unit_q == UnitNone && status_valid;
  assign takes_emit   = unit_q == UnitEmit || unit_q == UnitNone && !status_valid && emit_valid;
  assign takes_chunk  = unit_q == UnitChunk || unit_q == UnitNone && !status_valid && !emit_valid;
  assign status_ready = memory_ready_i && takes_status;
  assign emit_ready   = memory_ready_i && takes_emit;
  assign chunk_ready  = memory_ready_i && takes_chunk;

  always_comb begin
    memory_o = '{valid: chunk_valid, framed: 1'b1, last: chunk_last, block: chunk_block};
    if (takes_emit) begin
      memory_o = '{valid: emit_valid, framed: emit_framed, last: emit_last, block: emit_block};
    end
    if (takes_status) begin
      memory_o = '{valid: 1'b1, framed: 1'b0, last: status_last, block: status_block};
    end
  end

  assign taken    = memory_o.valid && memory_ready_i;
  // The end of a request is not charged, as the scheduler's model has it.
  assign charge_o = taken && (takes_status || takes_emit && !(emit_framed && emit_last));

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) unit_q <= UnitNone;
    else if (!up_i) unit_q <= UnitNone;
    else if (taken) begin
      if (memory_o.last) unit_q <= UnitNone;
      else unit_q <= takes_emit ? UnitEmit : UnitChunk;
    end
  end

endmodule
