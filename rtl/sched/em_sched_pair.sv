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

    input  insert_t response_i,
    output logic    response_refused_o,
    input  insert_t write_i,
    output logic    write_refused_o,

    /// These inputs belong to the flow that was chosen when the destination asked: `head_o` shows
    /// its head.
    input  logic  take_response_i,
    output head_t head_o,
    input  take_t take_i,
    input  logic  seen_i,
    input  logic  mark_i,

    /// The candidate: rank, then arrival.
    output logic                valid_o,
    output logic [KeyWidth-1:0] key_o,
    output logic                response_o,

    /// The first request of this pair that was not released yet, for the writes of the other way.
    output logic                 unreleased_valid_o,
    output logic [TimeWidth-1:0] unreleased_time_o,
    input  logic                 reverse_valid_i,
    input  logic [TimeWidth-1:0] reverse_time_i
);

  head_t response, write;
  take_t take_response, take_write;
  logic [TimeWidth-1:0] response_time, write_time, unused_time;
  logic write_valid, unused_valid;
  logic [KeyWidth-1:0] response_key, write_key;

  assign take_response = '{valid: take_i.valid && take_response_i, left_log: take_i.left_log};
  assign take_write    = '{valid: take_i.valid && !take_response_i, left_log: take_i.left_log};

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
      .insert_i         (response_i),
      .refused_o        (response_refused_o),
      .take_i           (take_response),
      .seen_i,
      .mark_i,
      .head_o           (response),
      .time_o           (response_time),
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
      .insert_i         (write_i),
      .refused_o        (write_refused_o),
      .take_i           (take_write),
      .seen_i,
      .mark_i,
      .head_o           (write),
      .time_o           (write_time),
      .unstarted_valid_o(unused_valid),
      .unstarted_time_o (unused_time)
  );

  // A write waits for the earlier requests of its compute-memory pair. Both were asked for by the
  // same port, so that they cannot have arrived in the same cycle.
  assign write_valid  = write.valid && !(reverse_valid_i && reverse_time_i < write_time);
  assign response_key = {response.rank, response_time, Destination};
  assign write_key    = {write.rank, write_time, Source};
  assign response_o   = response.valid && (!write_valid || response_key < write_key);
  assign valid_o      = response.valid || write_valid;
  assign key_o        = response_o ? response_key : write_key;
  assign head_o       = take_response_i ? response : write;

  // Writes in the other direction look at requests only.
  logic unused;
  assign unused = ^{unused_valid, unused_time};

endmodule
