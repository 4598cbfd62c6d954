/// Reads of any address and length over AXI4, in order, like em_axi_write. It gives the bytes from
/// bit 0 of a word on; the last word of a job says whether any answer was an error.
module em_axi_read #(
    parameter int unsigned BytesBits  = 16,
    parameter int unsigned BurstBytes = 2048,
    parameter int unsigned TagBits    = 8,
    parameter int unsigned Jobs       = 8
) (
    input logic clk_i,
    input logic rst_ni,

    /// ARVALID follows one edge after a job was taken.
    input  logic                 job_valid_i,
    output logic                 job_ready_o,
    input  logic [63:0]          job_address_i,
    input  logic [BytesBits-1:0] job_bytes_i,
    input  logic [TagBits-1:0]   job_tag_i,
    /// The answer is one word, the last, with an error.
    input  logic                 job_refused_i,

    output logic                 word_valid_o,
    input  logic                 word_ready_i,
    output logic [63:0]          word_o,
    /// Its number in the job.
    output logic [BytesBits-1:0] word_number_o,
    output logic                 word_last_o,
    output logic                 word_error_o,
    output logic [TagBits-1:0]   word_tag_o,
    output logic                 quiet_o,

    output em_axi_pkg::read_request_t  m_axi_o,
    input  em_axi_pkg::read_response_t m_axi_i
);

  localparam int unsigned BeatBits = $clog2(BurstBytes / 8);
  localparam int unsigned CountBits = BytesBits - 2;
  typedef logic [CountBits-1:0] count_t;

  logic [60:0] first_q;
  count_t ar_left_q, beats, words, room, burst, job_beats, job_words;
  logic ar_valid_q, take, pending_ready, pending_valid, refused;
  logic [2:0] lane;
  count_t beat_q, word_q;
  logic [63:0] before_q;
  logic [127:0] pair;
  logic error_q, beats_done, swallow, emits, beat_taken, word_taken, r_error;
  logic [$clog2(Jobs+1)-1:0] pending_count;

  // Wide enough for the longest job: its bytes and both ends do not fit into its length.
  assign beats = count_t'(({1'b0, job_bytes_i} + (BytesBits + 1)'(job_address_i[2:0])
                           + (BytesBits + 1)'(7)) >> 3);
  assign words = count_t'(({1'b0, job_bytes_i} + (BytesBits + 1)'(7)) >> 3);

  assign job_ready_o = !ar_valid_q && pending_ready;
  assign take        = job_valid_i && job_ready_o;
  assign quiet_o     = !ar_valid_q && pending_count == '0;

  assign room             = count_t'(1 << BeatBits) - count_t'(first_q[BeatBits-1:0]);
  assign burst            = (ar_left_q < room) ? ar_left_q : room;
  assign m_axi_o.ar_valid = ar_valid_q;
  assign m_axi_o.ar.addr  = {first_q, 3'b0};
  assign m_axi_o.ar.len   = 8'(burst - 1'b1);

  em_fifo_sync #(
      .Width(TagBits + 2 * CountBits + 4),
      .Depth(Jobs)
  ) u_pending (
      .clk_i,
      .rst_ni,
      .valid_i(take),
      .ready_o(pending_ready),
      .data_i ({job_tag_i, beats, words, job_address_i[2:0], job_refused_i}),
      .valid_o(pending_valid),
      .ready_i(word_taken && word_last_o),
      .data_o ({word_tag_o, job_beats, job_words, lane, refused}),
      .count_o(pending_count)
  );

  // A beat gives a word with the one before it; the first of an unaligned job gives none, and what
  // is left of the last may be a word of its own.
  assign beats_done      = beat_q == job_beats;
  assign swallow         = lane != '0 && beat_q == '0 && job_beats != count_t'(1);
  assign emits           = pending_valid
      && (refused || beats_done || (m_axi_i.r_valid && !swallow));
  assign pair            = (lane == '0) ? {64'h0, m_axi_i.r.data}
                         : (beats_done || job_beats == count_t'(1))
                           ? {64'h0, beats_done ? before_q : m_axi_i.r.data}
                           : {m_axi_i.r.data, before_q};
  assign word_valid_o    = emits;
  assign word_o          = 64'(pair >> {lane, 3'b0});
  assign word_number_o   = BytesBits'(word_q);
  assign word_last_o     = refused || word_q + 1'b1 == job_words;
  assign r_error         = !beats_done && m_axi_i.r_valid && m_axi_i.r.resp != '0;
  assign word_error_o    = refused || error_q || r_error;
  assign word_taken      = emits && word_ready_i;
  assign m_axi_o.r_ready = pending_valid && !refused && !beats_done && (swallow || word_ready_i);
  assign beat_taken      = m_axi_i.r_valid && m_axi_o.r_ready;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      ar_valid_q <= 1'b0;
      beat_q     <= '0;
      word_q     <= '0;
      error_q    <= 1'b0;
    end else begin
      if (take) ar_valid_q <= !job_refused_i;
      else if (m_axi_i.ar_ready) ar_valid_q <= ar_valid_q && ar_left_q != burst;
      if (word_taken && word_last_o) begin
        beat_q  <= '0;
        word_q  <= '0;
        error_q <= 1'b0;
      end else begin
        beat_q  <= beat_q + count_t'(beat_taken);
        word_q  <= word_q + count_t'(word_taken);
        error_q <= error_q || (beat_taken && r_error);
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (beat_taken) before_q <= m_axi_i.r.data;
    if (take) begin
      first_q   <= job_address_i[63:3];
      ar_left_q <= beats;
    end else if (ar_valid_q && m_axi_i.ar_ready) begin
      first_q   <= first_q + 61'(burst);
      ar_left_q <= ar_left_q - burst;
    end
  end

endmodule
