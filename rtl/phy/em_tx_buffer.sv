/// The buffer at the encoder's output and its back-pressure: four blocks (section 3.2.3).
/// `EncoderBuffer` of crates/edm is the model.
///
/// The encoder is asked for a block only while fewer than four are stored or requested. It answers
/// each request once, in order: with a frame's block or, between frames, with an idle, which takes
/// its place like any other. So the buffer cannot overflow. After a hold it does not underrun
/// within a frame if the encoder answers in four slots.
module em_tx_buffer
  import em_link_pkg::*;
#(
    localparam int unsigned Depth = 4
) (
    input logic clk_i,
    input logic rst_ni,

    input logic slot_i,

    /// Asks for a block.
    output logic   ready_o,
    input  logic   valid_i,
    input  block_t block_i,
    /// A block that was not asked for, and is dropped.
    output logic   overrun_o,

    /// What is next, the block of this slot included: a frame's, or a gap that anyone may use.
    output logic   frame_waits_o,
    output block_t block_o,
    input  logic   take_i
);

  localparam int unsigned CountWidth = $clog2(Depth + 1);
  typedef logic [CountWidth-1:0] count_t;

  typedef struct packed {
    logic   frame;  // it is no gap
    block_t block;
  } entry_t;

  entry_t entries_q[Depth];
  entry_t arrived, head;
  count_t count_q, count, left;
  /// Asked for, and not yet answered.
  count_t asked_q, asked;
  logic accept, pop, ready_q;

  assign accept    = slot_i && valid_i && asked_q != '0;
  assign overrun_o = slot_i && valid_i && asked_q == '0;
  assign arrived   = '{frame: block_i != Idle, block: block_i};
  assign asked     = asked_q - count_t'(accept);
  assign count     = count_q + count_t'(accept);
  assign head      = (count_q == '0) ? arrived : entries_q[0];

  assign frame_waits_o = count != '0 && head.frame;
  assign block_o       = head.block;
  assign pop           = take_i && count != '0;
  assign left          = count - count_t'(pop);
  assign ready_o       = ready_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      count_q <= '0;
      asked_q <= '0;
      ready_q <= 1'b0;
    end else if (slot_i) begin
      count_q <= left;
      ready_q <= left + asked < count_t'(Depth);
      asked_q <= asked + count_t'(left + asked < count_t'(Depth));
    end
  end

  always_ff @(posedge clk_i) begin
    if (slot_i) begin
      for (int unsigned i = 0; i < Depth; i++) begin
        if (pop && i + 1 < Depth) entries_q[i] <= entries_q[i+1<Depth?i+1 : i];
        if (accept && count_t'(i) == count_q - count_t'(pop)) entries_q[i] <= arrived;
      end
    end
  end

endmodule
