/// em_tx_buffer never reorders, loses, duplicates or overflows, whatever the encoder answers and
/// the reader takes; and with an encoder of four slots it never runs dry in a frame.
module em_tx_buffer_proof
  import em_pkg::*;
  import em_link_pkg::*;
(
    input logic       clk_i,
    input logic       slot_i,
    input logic       valid_i,
    /// A frame's block, of which two bits say which; otherwise a gap.
    input logic       frame_i,
    input logic [1:0] data_i,
    input logic       take_i
);

  localparam int unsigned Depth = 4;

  logic rst_n = 1'b0;
  always_ff @(posedge clk_i) rst_n <= 1'b1;

  block_t block, head;
  logic ready, overrun, waits;
  assign block = frame_i ? '{header: SyncData, payload: 64'(data_i)} : Idle;

  em_tx_buffer u_dut (
      .clk_i,
      .rst_ni       (rst_n),
      .slot_i,
      .ready_o      (ready),
      .valid_i,
      .block_i      (block),
      .overrun_o    (overrun),
      .frame_waits_o(waits),
      .block_o      (head),
      .take_i
  );

  // A queue by its form, the newest at place 0; and what was asked for and not yet answered.
  logic [2:0] words_q[Depth];
  int unsigned count_q = 0;
  int unsigned asked_q = 0;
  logic accept, empty;
  logic [2:0] first;
  assign accept = slot_i && valid_i && asked_q > 0;
  assign empty  = count_q == 0 && !accept;
  assign first  = (count_q > 0) ? words_q[count_q-1] : {frame_i, data_i};

  // Each slot in which it is ready asks once; the answer comes in a later one.
  logic fresh_q = 1'b0;
  always_ff @(posedge clk_i) begin
    if (rst_n) begin
      if (accept) begin
        words_q[0] <= {frame_i, data_i};
        for (int unsigned i = 1; i < Depth; i++) words_q[i] <= words_q[i-1];
      end
      if (slot_i) begin
        count_q <= count_q + 32'(accept) - 32'(take_i && !empty);
        asked_q <= asked_q - 32'(accept) + 32'(count_q + asked_q - 32'(take_i && !empty) < Depth);
        fresh_q <= count_q + asked_q - 32'(take_i && !empty) < Depth;
      end
      assert (count_q <= Depth && count_q + asked_q <= Depth);
      assert (ready == fresh_q);
      assert (overrun == (slot_i && valid_i && !accept));
      if (slot_i) begin
        assert (waits == (!empty && first[2]));
        if (waits) assert (head == {64'(first[1:0]), SyncData});
      end
    end
  end

  // An encoder that always has a frame's block, and answers in the fourth slot after the question.
  localparam block_t Steady = '{header: SyncData, payload: '0};
  logic steady_ready, steady_waits, steady_overrun;
  block_t steady_block;
  logic [2:0] flying_q = '0;
  logic [2:0] started_q = '0;

  em_tx_buffer u_steady (
      .clk_i,
      .rst_ni       (rst_n),
      .slot_i,
      .ready_o      (steady_ready),
      .valid_i      (flying_q[2]),
      .block_i      (Steady),
      .overrun_o    (steady_overrun),
      .frame_waits_o(steady_waits),
      .block_o      (steady_block),
      .take_i
  );

  always_ff @(posedge clk_i) begin
    if (rst_n && slot_i) begin
      flying_q <= {flying_q[1:0], steady_ready};
      if (started_q != 3'd4) started_q <= started_q + 1'b1;
      assert (!steady_overrun);
      if (started_q == 3'd4) assert (steady_waits && steady_block == Steady);
    end
  end

endmodule
