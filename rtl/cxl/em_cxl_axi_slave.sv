/// An AXI4 slave of 512 bits in front of the cache: each beat of a burst is a line or bytes of it.
///
/// Reads and writes take turns at the cache. Two accesses of one identifier and direction are never
/// under way together, so that the responses of an identifier keep their order: a beat of a burst
/// waits for the response to the beat before it. One burst of more than one beat is under way in
/// each direction, and the address behind it waits. A response waits in a FIFO which has a place
/// for each access that was taken. Loads without their line, and stores that were lost, are
/// answered by SLVERR.
module em_cxl_axi_slave
  import em_cxl_axi_pkg::*;
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

  // By identifier: an access is under way; it is the last of its burst; a beat before it was lost.
  logic [Ids-1:0] reading_q, writing_q, read_last_q, write_last_q, lost_q;
  logic [Ids-1:0] reading_d, writing_d, read_last_d, write_last_d, lost_d;
  burst_state_t read_burst_q, write_burst_q, next_read, next_write;
  count_t reads_q, writes_q;
  logic read_waits, write_waits, read_turn_q, reads, take_read, take_write, r_taken, b_taken;
  logic written_valid, written_ready, acked_valid, acked_ready, written_last, acked_last;
  id_t written_id, acked_id;
  logic acked_good;
  logic [2:0] unused_room;
  count_t unused_r, unused_w, unused_a;

  // The next beat of either direction: of the burst under way, or the first of a new one.
  always_comb begin
    next_read        = read_burst_q;
    next_read.active = read_burst_q.active || axi_i.ar_valid;
    if (!read_burst_q.active) begin
      next_read.id   = axi_i.ar_id;
      next_read.line = axi_i.ar_line;
      next_read.left = axi_i.ar_len;
    end
    next_write        = write_burst_q;
    next_write.active = write_burst_q.active || axi_i.aw_valid;
    if (!write_burst_q.active) begin
      next_write.id   = axi_i.aw_id;
      next_write.line = axi_i.aw_line;
      next_write.left = axi_i.aw_len;
    end
  end

  assign read_waits  = next_read.active && !reading_q[next_read.id] && 32'(reads_q) < InFlight;
  assign write_waits = next_write.active && axi_i.w_valid && !writing_q[next_write.id]
                       && 32'(writes_q) < InFlight;
  assign reads       = read_waits && (read_turn_q || !write_waits);

  assign access_valid_o = read_waits || write_waits;
  assign access_op_o    = reads ? OpRead : OpWrite;
  assign access_line_o  = reads ? next_read.line : next_write.line;
  assign access_id_o    = reads ? next_read.id : next_write.id;
  assign access_mask_o  = axi_i.w_strb;
  assign access_data_o  = axi_i.w_data;

  assign take_read  = access_ready_i && reads;
  assign take_write = access_ready_i && write_waits && !reads;
  assign r_taken    = axi_o.r_valid && axi_i.r_ready;
  assign b_taken    = axi_o.b_valid && axi_i.b_ready;

  assign axi_o.ar_ready = take_read && !read_burst_q.active;
  assign axi_o.aw_ready = take_write && !write_burst_q.active;
  assign axi_o.w_ready  = take_write;

  // Beats before the last one have no response of their own.
  assign written_last = write_last_q[written_id_i];
  assign acked_last   = write_last_q[acked_id_i];

  always_comb begin
    {reading_d, writing_d}       = {reading_q, writing_q};
    {read_last_d, write_last_d}  = {read_last_q, write_last_q};
    lost_d                       = lost_q;
    if (r_taken) reading_d[axi_o.r_id] = 1'b0;
    if (b_taken) writing_d[axi_o.b_id] = 1'b0;
    if (written_i && !written_last) writing_d[written_id_i] = 1'b0;
    if (acked_i && !acked_last) begin
      writing_d[acked_id_i] = 1'b0;
      if (!acked_good_i) lost_d[acked_id_i] = 1'b1;
    end
    if (take_read) begin
      reading_d[next_read.id]   = 1'b1;
      read_last_d[next_read.id] = next_read.left == '0;
    end
    if (take_write) begin
      writing_d[next_write.id]    = 1'b1;
      write_last_d[next_write.id] = next_write.left == '0;
      if (!write_burst_q.active) lost_d[next_write.id] = 1'b0;
    end
  end

  function automatic burst_state_t behind(burst_state_t beat);
    behind        = beat;
    behind.active = beat.left != '0;
    behind.line   = beat.line + 1'b1;
    behind.left   = beat.left - 1'b1;
  endfunction

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {reading_q, writing_q, read_last_q, write_last_q, lost_q} <= '0;
      {reads_q, writes_q, read_turn_q} <= '0;
      {read_burst_q, write_burst_q} <= '0;
    end else begin
      reading_q    <= reading_d;
      writing_q    <= writing_d;
      read_last_q  <= read_last_d;
      write_last_q <= write_last_d;
      lost_q       <= lost_d;
      reads_q      <= reads_q + count_t'(take_read) - count_t'(r_taken);
      writes_q     <= writes_q + count_t'(take_write) - count_t'(b_taken)
                      - count_t'(written_i && !written_last) - count_t'(acked_i && !acked_last);
      if (take_read) read_turn_q <= 1'b0;
      else if (take_write) read_turn_q <= 1'b1;
      if (take_read) read_burst_q <= behind(next_read);
      if (take_write) write_burst_q <= behind(next_write);
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
      .valid_i(written_i && written_last),
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
      .valid_i(acked_i && acked_last),
      .ready_o(unused_room[2]),
      .data_i ({acked_good_i, acked_id_i}),
      .valid_o(acked_valid),
      .ready_i(acked_ready),
      .data_o ({acked_good, acked_id}),
      .count_o(unused_a)
  );

  assign axi_o.r_last = read_last_q[axi_o.r_id];

  // What is offered on B stays: the choice is made once.
  logic b_busy_q, b_acked_q, b_acked;
  assign b_acked       = b_busy_q ? b_acked_q : acked_valid;
  assign axi_o.b_valid = acked_valid || written_valid;
  assign axi_o.b_id    = b_acked ? acked_id : written_id;
  assign axi_o.b_error = lost_q[axi_o.b_id] || (b_acked && !acked_good);
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
