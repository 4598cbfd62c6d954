/// An AXI4 slave of 512 bits in front of the cache: each burst is one beat, a line or bytes of it.
///
/// Reads and writes take turns at the cache. Two accesses of one identifier and direction are never
/// under way together, so that the responses of an identifier keep their order. A response waits in
/// a FIFO which has a place for each access that was taken. Loads without their line, and stores
/// that were lost, are answered by SLVERR.
module em_cxl_axi_slave
  import em_cxl_pkg::*;
#(
    /// Reads, and writes, that are under way at once.
    parameter int unsigned InFlight = 16
) (
    input logic clk_i,
    input logic rst_ni,

    input  axi_request_t  axi_i,
    output axi_response_t axi_o,

    /// To the cache.
    output logic      access_valid_o,
    input  logic      access_ready_i,
    output cache_op_e access_op_o,
    output line_t     access_line_o,
    output id_t       access_id_o,
    output mask_t     access_mask_o,
    output data_t     access_data_o,

    /// Responses: of reads; of writes at once; and of writes whose victim was acknowledged.
    input logic  read_valid_i,
    input id_t   read_id_i,
    input logic  read_good_i,
    input data_t read_data_i,
    input logic  written_i,
    input id_t   written_id_i,
    input logic  acked_i,
    input id_t   acked_id_i,
    input logic  acked_good_i
);

  localparam int unsigned CountBits = $clog2(InFlight + 1);
  typedef logic [CountBits-1:0] count_t;

  logic [Ids-1:0] reading_q, writing_q, reading_d, writing_d;
  count_t reads_q, writes_q;
  logic read_waits, write_waits, read_turn_q, reads, take_read, take_write, r_taken, b_taken;
  logic written_valid, written_ready, acked_valid, acked_ready;
  id_t written_id, acked_id;
  logic acked_good;
  logic [2:0] unused_room;
  count_t unused_r, unused_w, unused_a;

  assign read_waits  = axi_i.ar_valid && !reading_q[axi_i.ar_id] && 32'(reads_q) < InFlight;
  assign write_waits = axi_i.aw_valid && axi_i.w_valid && !writing_q[axi_i.aw_id]
                       && 32'(writes_q) < InFlight;
  assign reads       = read_waits && (read_turn_q || !write_waits);

  assign access_valid_o = read_waits || write_waits;
  assign access_op_o    = reads ? OpRead : OpWrite;
  assign access_line_o  = reads ? axi_i.ar_line : axi_i.aw_line;
  assign access_id_o    = reads ? axi_i.ar_id : axi_i.aw_id;
  assign access_mask_o  = axi_i.w_strb;
  assign access_data_o  = axi_i.w_data;

  assign take_read  = access_ready_i && reads;
  assign take_write = access_ready_i && write_waits && !reads;
  assign r_taken    = axi_o.r_valid && axi_i.r_ready;
  assign b_taken    = axi_o.b_valid && axi_i.b_ready;

  assign axi_o.ar_ready = take_read;
  assign axi_o.aw_ready = take_write;
  assign axi_o.w_ready  = take_write;

  always_comb begin
    reading_d = reading_q;
    writing_d = writing_q;
    if (r_taken) reading_d[axi_o.r_id] = 1'b0;
    if (b_taken) writing_d[axi_o.b_id] = 1'b0;
    if (take_read) reading_d[axi_i.ar_id] = 1'b1;
    if (take_write) writing_d[axi_i.aw_id] = 1'b1;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {reading_q, writing_q, reads_q, writes_q, read_turn_q} <= '0;
    else begin
      reading_q <= reading_d;
      writing_q <= writing_d;
      reads_q   <= reads_q + count_t'(take_read) - count_t'(r_taken);
      writes_q  <= writes_q + count_t'(take_write) - count_t'(b_taken);
      if (take_read) read_turn_q <= 1'b0;
      else if (take_write) read_turn_q <= 1'b1;
    end
  end

  em_fifo_sync #(
      .Width($bits(data_t) + IdBits + 1),
      .Depth(InFlight)
  ) u_r (
      .clk_i,
      .rst_ni,
      .valid_i(read_valid_i),
      .ready_o(unused_room[0]),
      .data_i ({!read_good_i, read_id_i, read_data_i}),
      .valid_o(axi_o.r_valid),
      .ready_i(axi_i.r_ready),
      .data_o ({axi_o.r_error, axi_o.r_id, axi_o.r_data}),
      .count_o(unused_r)
  );

  em_fifo_sync #(
      .Width(IdBits),
      .Depth(InFlight)
  ) u_written (
      .clk_i,
      .rst_ni,
      .valid_i(written_i),
      .ready_o(unused_room[1]),
      .data_i (written_id_i),
      .valid_o(written_valid),
      .ready_i(written_ready),
      .data_o (written_id),
      .count_o(unused_w)
  );

  em_fifo_sync #(
      .Width(IdBits + 1),
      .Depth(InFlight)
  ) u_acked (
      .clk_i,
      .rst_ni,
      .valid_i(acked_i),
      .ready_o(unused_room[2]),
      .data_i ({acked_good_i, acked_id_i}),
      .valid_o(acked_valid),
      .ready_i(acked_ready),
      .data_o ({acked_good, acked_id}),
      .count_o(unused_a)
  );

  // What is offered on B stays: the choice is made once.
  logic b_busy_q, b_acked_q, b_acked;
  assign b_acked       = b_busy_q ? b_acked_q : acked_valid;
  assign axi_o.b_valid = acked_valid || written_valid;
  assign axi_o.b_id    = b_acked ? acked_id : written_id;
  assign axi_o.b_error = b_acked && !acked_good;
  assign acked_ready   = b_taken && b_acked;
  assign written_ready = b_taken && !b_acked;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {b_busy_q, b_acked_q} <= '0;
    else begin
      b_busy_q  <= axi_o.b_valid && !axi_i.b_ready;
      b_acked_q <= b_acked;
    end
  end

endmodule
