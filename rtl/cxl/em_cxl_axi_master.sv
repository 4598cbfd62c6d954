/// Executes requests in memory by AXI4: reads and writes of a line each, several under way.
///
/// AXI has an order neither between reads and writes nor between identifiers. A request therefore
/// waits while another one of its line is under way, unless both are reads. The identifier of an
/// access is its slot. Data and responses are always taken: each slot has a place for its end.
module em_cxl_axi_master
  import em_cxl_axi_pkg::*;
  import em_cxl_pkg::*;
#(
    /// Accesses under way: 2 to 256.
    parameter int unsigned Slots = 8,
    parameter int unsigned PlaceBits = 9
) (
    input logic clk_i,
    input logic rst_ni,

    /// The next request in order, with the line of the memory, and the place that it completes.
    input  logic                 valid_i,
    output logic                 ready_o,
    input  logic [PlaceBits-1:0] place_i,
    input  request_t             request_i,

    output axi_request_t  axi_o,
    input  axi_response_t axi_i,

    output logic                 complete_o,
    output logic [PlaceBits-1:0] complete_place_o,
    output response_t            complete_response_o
);

  localparam int unsigned SlotBits = $clog2(Slots);
  typedef logic [SlotBits-1:0] slot_t;

  typedef struct packed {
    logic                 writes;
    line_t                line;
    id_t                  id;
    logic [PlaceBits-1:0] place;
  } access_t;

  logic [Slots-1:0] busy_q, busy_d, conflict;
  access_t accesses_q[Slots];
  access_t ended;
  logic ar_valid_q, aw_valid_q, w_valid_q, channels_free, writes, take;
  request_t request_q;
  slot_t slot_q, free, read_slot, wrote_slot, end_slot;
  logic wrote_valid, wrote_ready, wrote_error, failed, unused_room;
  logic [$clog2(Slots+1)-1:0] unused_count;

  assign writes = request_i.ask != AskRead;

  always_comb begin
    free = '0;
    for (int unsigned s = Slots; s > 0; s--) begin
      if (!busy_q[s-1]) free = slot_t'(s - 1);
      conflict[s-1] = busy_q[s-1] && accesses_q[s-1].line == request_i.line
                      && (writes || accesses_q[s-1].writes);
    end
  end

  // What was offered last is taken.
  assign channels_free = (!ar_valid_q || axi_i.ar_ready) && (!aw_valid_q || axi_i.aw_ready)
                         && (!w_valid_q || axi_i.w_ready);
  assign ready_o       = channels_free && conflict == '0 && !(&busy_q);
  assign take          = valid_i && ready_o;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {ar_valid_q, aw_valid_q, w_valid_q} <= '0;
    else begin
      if (axi_i.ar_ready) ar_valid_q <= 1'b0;
      if (axi_i.aw_ready) aw_valid_q <= 1'b0;
      if (axi_i.w_ready) w_valid_q <= 1'b0;
      if (take) {ar_valid_q, aw_valid_q, w_valid_q} <= {!writes, writes, writes};
    end
  end

  always_ff @(posedge clk_i) begin
    if (take) begin
      request_q <= request_i;
      slot_q    <= free;
      accesses_q[free] <= '{
          writes: writes,
          line: request_i.line,
          id: request_i.id,
          place: place_i
      };
    end
  end

  assign axi_o = '{
      ar_valid: ar_valid_q,
      ar_id: id_t'(slot_q),
      ar_line: request_q.line,
      ar_len: '0,
      r_ready: 1'b1,
      aw_valid: aw_valid_q,
      aw_id: id_t'(slot_q),
      aw_line: request_q.line,
      aw_len: '0,
      w_valid: w_valid_q,
      w_data: request_q.data,
      w_strb: (request_q.ask == AskWrite) ? '1 : request_q.mask,
      w_last: 1'b1,
      b_ready: 1'b1
  };

  // A read ends when its data comes; a write then waits a cycle.
  em_fifo_sync #(
      .Width(SlotBits + 1),
      .Depth(Slots)
  ) u_wrote (
      .clk_i,
      .rst_ni,
      .valid_i(axi_i.b_valid),
      .ready_o(unused_room),
      .data_i ({axi_i.b_error, axi_i.b_id[SlotBits-1:0]}),
      .valid_o(wrote_valid),
      .ready_i(wrote_ready),
      .data_o ({wrote_error, wrote_slot}),
      .count_o(unused_count)
  );

  assign read_slot   = axi_i.r_id[SlotBits-1:0];
  assign wrote_ready = !axi_i.r_valid;
  assign end_slot    = axi_i.r_valid ? read_slot : wrote_slot;
  assign ended       = accesses_q[end_slot];
  assign failed      = axi_i.r_valid ? axi_i.r_error : wrote_error;

  // Data is that of a read that is done, and don't-care otherwise.
  assign complete_o          = axi_i.r_valid || wrote_valid;
  assign complete_place_o    = ended.place;
  assign complete_response_o = '{
      is_read: !ended.writes,
      id: ended.id,
      status: failed ? StatusPoison : StatusDone,
      data: axi_i.r_data
  };

  always_comb begin
    busy_d = busy_q;
    if (complete_o) busy_d[end_slot] = 1'b0;
    if (take) busy_d[free] = 1'b1;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) busy_q <= '0;
    else busy_q <= busy_d;
  end

endmodule
