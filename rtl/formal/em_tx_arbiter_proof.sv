/// em_tx_arbiter never interrupts a unit, and is fair: whatever comes, with units of at most `Unit`
/// blocks, a single block that is not within a unit waits a slot at most, a unit of several waits
/// `Unit` slots at most beside single ones, and a frame's block waits `Unit` slots at most.
module em_tx_arbiter_proof #(
    parameter int unsigned Unit = 4
) (
    input logic clk_i,
    input logic slot_i,
    input logic frame_waits_i,
    input logic valid_i,
    input logic framed_i,
    input logic last_i
);

  logic rst_n = 1'b0;
  always_ff @(posedge clk_i) rst_n <= 1'b1;

  // Within a unit its next block is there; the last one comes in time.
  int unsigned block_q = 0;
  logic valid, framed, last, memory, sends;
  assign valid  = valid_i || block_q > 0;
  assign framed = framed_i || block_q > 0;
  assign last   = !framed || block_q + 1 == Unit || (block_q > 0 && last_i);
  assign sends  = slot_i && memory;

  em_tx_arbiter u_dut (
      .clk_i,
      .rst_ni         (rst_n),
      .slot_i,
      .strict_i       (1'b0),
      .down_i         (1'b0),
      .frame_waits_i,
      .memory_valid_i (valid),
      .memory_framed_i(framed),
      .memory_last_i  (last),
      .memory_o       (memory)
  );

  int unsigned single_waits_q = 0;
  int unsigned framed_waits_q = 0;
  int unsigned frame_waits_q = 0;

  always_ff @(posedge clk_i) begin
    if (rst_n && slot_i) begin
      block_q        <= (sends && !last) ? block_q + 1 : (sends ? 0 : block_q);
      single_waits_q <= (valid && !framed && !memory) ? single_waits_q + 1 : 0;
      framed_waits_q <= (valid && framed && !memory) ? framed_waits_q + 1 : 0;
      frame_waits_q  <= (frame_waits_i && memory) ? frame_waits_q + 1 : 0;

      if (!valid) assert (!memory);
      if (block_q > 0) assert (memory);
      if (valid && !frame_waits_i && !framed) assert (memory);
      assert (single_waits_q <= 1);
      assert (framed_waits_q <= Unit);
      assert (frame_waits_q <= Unit);
    end
  end

endmodule
