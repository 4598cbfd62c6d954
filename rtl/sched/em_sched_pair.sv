/// All messages from one source to one destination: responses to the destination's reads, and the
/// source's own writes. Shows the better of the two heads that the order of the pair lets go.
module em_sched_pair
  import em_sched_pkg::*;
#(
    parameter int unsigned Depth = 3,
    parameter int unsigned TagWidth = 16,
    parameter int unsigned TimeWidth = 42,
    parameter int unsigned SlotCycles = 1,
    parameter int unsigned ChunkBytes = 256,
    /// Of a port's number, and the two that ask: for a response the destination, for a write the
    /// source. Arrivals of one cycle are ordered by the port that asked.
    parameter int unsigned PortWidth = 1,
    parameter logic [PortWidth-1:0] Source = '0,
    parameter logic [PortWidth-1:0] Destination = '0,
    localparam int unsigned KeyWidth = BytesBits + TimeWidth + PortWidth
) (
    input logic clk_i,
    input logic rst_ni,
    input rank_config_t config_i,
    input logic [TimeWidth-1:0] now_i,
    /// An end has failed: all that wait are forgotten.
    input logic clear_i,

    input  logic                insert_response_i,
    input  bytes_t              response_bytes_i,
    input  log_t                response_log_i,
    input  logic [TagWidth-1:0] response_tag_i,
    output logic                response_refused_o,
    input  logic                insert_write_i,
    input  bytes_t              write_bytes_i,
    input  log_t                write_log_i,
    input  logic [TagWidth-1:0] write_tag_i,
    output logic                write_refused_o,

    /// These inputs belong to the flow that was chosen when the destination asked.
    input logic take_i,
    input logic take_response_i,
    input log_t take_log_i,
    input logic seen_i,
    input logic mark_i,

    /// The candidate: rank, then arrival.
    output logic                valid_o,
    output logic [KeyWidth-1:0] key_o,
    output logic                response_o,
    /// The head of the flow that `take_response_i` names.
    output logic [TagWidth-1:0] tag_o,
    output bytes_t              remaining_o,
    output logic                started_o,

    /// The first request of this pair that was not released yet, for the writes of the other way.
    output logic                 unreleased_valid_o,
    output logic [TimeWidth-1:0] unreleased_time_o,
    input  logic                 reverse_valid_i,
    input  logic [TimeWidth-1:0] reverse_time_i
);

  typedef struct packed {
    logic                 valid;
    rank_t                rank;
    logic [TimeWidth-1:0] arrival;
    logic [TagWidth-1:0]  tag;
    bytes_t               remaining;
    logic                 started;
  } head_t;

  head_t response, write;
  logic write_valid;
  logic [KeyWidth-1:0] response_key, write_key;
  logic unused_valid;
  logic [TimeWidth-1:0] unused_time;

  em_sched_flow #(
      .Depth     (Depth),
      .TagWidth  (TagWidth),
      .TimeWidth (TimeWidth),
      .SlotCycles(SlotCycles),
      .ChunkBytes(ChunkBytes)
  ) u_responses (
      .clk_i,
      .rst_ni,
      .config_i,
      .now_i,
      .clear_i,
      .insert_i         (insert_response_i),
      .insert_bytes_i   (response_bytes_i),
      .insert_log_i     (response_log_i),
      .insert_tag_i     (response_tag_i),
      .refused_o        (response_refused_o),
      .take_i           (take_i && take_response_i),
      .take_log_i,
      .seen_i,
      .mark_i,
      .valid_o          (response.valid),
      .rank_o           (response.rank),
      .time_o           (response.arrival),
      .tag_o            (response.tag),
      .remaining_o      (response.remaining),
      .started_o        (response.started),
      .unstarted_valid_o(unreleased_valid_o),
      .unstarted_time_o (unreleased_time_o)
  );

  em_sched_flow #(
      .Depth     (Depth),
      .TagWidth  (TagWidth),
      .TimeWidth (TimeWidth),
      .SlotCycles(SlotCycles),
      .ChunkBytes(ChunkBytes)
  ) u_writes (
      .clk_i,
      .rst_ni,
      .config_i,
      .now_i,
      .clear_i,
      .insert_i         (insert_write_i),
      .insert_bytes_i   (write_bytes_i),
      .insert_log_i     (write_log_i),
      .insert_tag_i     (write_tag_i),
      .refused_o        (write_refused_o),
      .take_i           (take_i && !take_response_i),
      .take_log_i,
      .seen_i,
      .mark_i,
      .valid_o          (write.valid),
      .rank_o           (write.rank),
      .time_o           (write.arrival),
      .tag_o            (write.tag),
      .remaining_o      (write.remaining),
      .started_o        (write.started),
      .unstarted_valid_o(unused_valid),
      .unstarted_time_o (unused_time)
  );

  // A write waits for the earlier requests of its compute-memory pair. Both were asked for by the
  // same port, so that they cannot have arrived in the same cycle.
  assign write_valid  = write.valid && !(reverse_valid_i && reverse_time_i < write.arrival);
  assign response_key = {response.rank, response.arrival, Destination};
  assign write_key    = {write.rank, write.arrival, Source};
  assign response_o   = response.valid && (!write_valid || response_key < write_key);
  assign valid_o      = response.valid || write_valid;
  assign key_o        = response_o ? response_key : write_key;

  assign tag_o        = take_response_i ? response.tag : write.tag;
  assign remaining_o  = take_response_i ? response.remaining : write.remaining;
  assign started_o    = take_response_i ? response.started : write.started;

  // Writes in the other direction look at requests only.
  logic unused;
  assign unused = ^{unused_valid, unused_time};

endmodule
