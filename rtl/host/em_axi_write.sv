/// Writes of any address and length over AXI4, in order: bursts of whole beats, which end at
/// multiples of BurstBytes. That keeps the 4 KiB rule and 256 beats.
module em_axi_write #(
    parameter int unsigned BytesBits  = 16,
    parameter int unsigned BurstBytes = 2048,
    parameter int unsigned TagBits    = 8,
    /// Jobs whose answers are awaited.
    parameter int unsigned Jobs       = 8
) (
    input logic clk_i,
    input logic rst_ni,

    /// AWVALID and WVALID follow one edge after a job was taken.
    input  logic                 job_valid_i,
    output logic                 job_ready_o,
    input  logic [63:0]          job_address_i,
    input  logic [BytesBits-1:0] job_bytes_i,
    input  logic [TagBits-1:0]   job_tag_i,
    /// Its data is dropped, and the answer is an error.
    input  logic                 job_refused_i,
    /// Takes the next 8 bytes of data, which are at `data_i` from the next edge on.
    output logic                 pop_o,
    input  logic [63:0]          data_i,

    output logic               done_valid_o,
    input  logic               done_ready_i,
    output logic [TagBits-1:0] done_tag_o,
    output logic               done_error_o,
    /// Nothing is under way.
    output logic               quiet_o,

    output em_axi_pkg::write_request_t  m_axi_o,
    input  em_axi_pkg::write_response_t m_axi_i
);

  localparam int unsigned BeatBits = $clog2(BurstBytes / 8);
  localparam int unsigned CountBits = BytesBits - 2;
  typedef logic [CountBits-1:0] count_t;

  logic [60:0] beat_q, first_q;
  count_t words_left_q, beats_left_q, aw_left_q, words, beats, room, burst;
  logic [2:0] lane_q, lane;
  logic [7:0] first_strobe_q, last_strobe_q;
  logic [63:0] before_q;
  logic active_q, refused_q, start_q, aw_valid_q, take, advance, ends, w_done;
  // The longest job's bytes and both ends do not fit into the bits of its length.
  logic [BytesBits:0] span;
  logic [127:0] pair;
  count_t bursts, seen_q, awaited;
  logic pending_ready, pending_valid, pending_refused, pending_error_q, b_taken, is_last_b;
  logic [$clog2(Jobs+1)-1:0] pending_count;

  assign lane  = job_address_i[2:0];
  assign words = count_t'(({1'b0, job_bytes_i} + (BytesBits + 1)'(7)) >> 3);
  assign span  = {1'b0, job_bytes_i} + (BytesBits + 1)'(lane) + (BytesBits + 1)'(7);
  assign beats = count_t'(span >> 3);
  // Bursts that the job touches.
  assign bursts = count_t'((count_t'(job_address_i[3+:BeatBits]) + beats
                            + count_t'((1 << BeatBits) - 1)) >> BeatBits);

  assign job_ready_o = !active_q && !aw_valid_q && pending_ready;
  assign take        = job_valid_i && job_ready_o;
  assign quiet_o     = !active_q && !aw_valid_q && pending_count == '0;

  // ---- data ----

  assign ends    = beats_left_q == count_t'(1);
  assign advance = active_q && (refused_q || m_axi_i.w_ready);
  assign w_done  = advance && ends;
  assign pop_o   = take || (advance && words_left_q != '0);

  assign pair            = {data_i, before_q};
  assign m_axi_o.w.data  = 64'(pair >> (7'd64 - {1'b0, lane_q, 3'b0}));
  assign m_axi_o.w_valid = active_q && !refused_q;
  assign m_axi_o.w.strb  = (start_q ? first_strobe_q : '1) & (ends ? last_strobe_q : '1);
  assign m_axi_o.w.last  = ends || beat_q[BeatBits-1:0] == '1;

  // ---- addresses ----

  assign room             = count_t'(1 << BeatBits) - count_t'(first_q[BeatBits-1:0]);
  assign burst            = (aw_left_q < room) ? aw_left_q : room;
  assign m_axi_o.aw_valid = aw_valid_q;
  assign m_axi_o.aw.addr  = {first_q, 3'b0};
  assign m_axi_o.aw.len   = 8'(burst - 1'b1);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      active_q   <= 1'b0;
      aw_valid_q <= 1'b0;
    end else begin
      if (take) active_q <= 1'b1;
      else if (w_done) active_q <= 1'b0;
      if (take) aw_valid_q <= !job_refused_i;
      else if (m_axi_i.aw_ready) aw_valid_q <= aw_valid_q && aw_left_q != burst;
    end
  end

  always_ff @(posedge clk_i) begin
    if (take) begin
      beat_q         <= job_address_i[63:3];
      first_q        <= job_address_i[63:3];
      words_left_q   <= words - 1'b1;
      beats_left_q   <= job_refused_i ? words : beats;
      aw_left_q      <= beats;
      lane_q         <= lane;
      first_strobe_q <= 8'hff << lane;
      last_strobe_q  <= 8'hff >> (3'd7 - span[2:0]);
      refused_q      <= job_refused_i;
      start_q        <= 1'b1;
      before_q       <= '0;
    end else begin
      if (advance) begin
        beat_q       <= beat_q + 1'b1;
        beats_left_q <= beats_left_q - 1'b1;
        words_left_q <= words_left_q - count_t'(words_left_q != '0);
        start_q      <= 1'b0;
        before_q     <= data_i;
      end
      if (aw_valid_q && m_axi_i.aw_ready) begin
        first_q   <= first_q + 61'(burst);
        aw_left_q <= aw_left_q - burst;
      end
    end
  end

  // ---- answers ----

  em_fifo_sync #(
      .Width(TagBits + CountBits + 1),
      .Depth(Jobs)
  ) u_pending (
      .clk_i,
      .rst_ni,
      .valid_i(take),
      .ready_o(pending_ready),
      .data_i ({job_tag_i, bursts, job_refused_i}),
      .valid_o(pending_valid),
      .ready_i(done_valid_o && done_ready_i),
      .data_o ({done_tag_o, awaited, pending_refused}),
      .count_o(pending_count)
  );

  assign is_last_b       = seen_q + 1'b1 == awaited;
  assign m_axi_o.b_ready = pending_valid && !pending_refused && (!is_last_b || done_ready_i);
  assign b_taken         = m_axi_i.b_valid && m_axi_o.b_ready;
  // Refused data is gone before the next job is taken.
  assign done_valid_o    = pending_valid && (pending_refused || (m_axi_i.b_valid && is_last_b));
  assign done_error_o    = pending_refused || pending_error_q || m_axi_i.b_resp != '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      seen_q          <= '0;
      pending_error_q <= 1'b0;
    end else if (done_valid_o && done_ready_i) begin
      seen_q          <= '0;
      pending_error_q <= 1'b0;
    end else if (b_taken) begin
      seen_q          <= seen_q + 1'b1;
      pending_error_q <= pending_error_q || m_axi_i.b_resp != '0;
    end
  end

endmodule
