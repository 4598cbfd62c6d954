/// em_fifo_ram is a queue: neither overflow, nor loss, nor duplicate, nor another order.
///
/// Beside it runs a shift register that is a queue by its form; both must show the same in every
/// cycle, whatever comes.
module em_fifo_ram_proof #(
    parameter int unsigned Width = 2,
    parameter int unsigned Depth = 2
) (
    input logic             clk_i,
    input logic             valid_i,
    input logic [Width-1:0] data_i,
    input logic             ready_i
);

  logic rst_n = 1'b0;
  always_ff @(posedge clk_i) rst_n <= 1'b1;

  logic ready_o, valid_o;
  logic [Width-1:0] data_o;
  logic [$clog2(Depth+1)-1:0] count_o;
  localparam int unsigned Ahead = 4;

  em_fifo_ram #(
      .Width(Width),
      .Depth(Depth)
  ) u_dut (
      .clk_i,
      .rst_ni (rst_n),
      .clear_i(1'b0),
      .valid_i,
      .ready_o,
      .data_i,
      .valid_o,
      .ready_i,
      .data_o,
      .count_o
  );

  // The newest word is at place 0.
  logic [Width-1:0] words_q[Depth+Ahead];
  int unsigned count_q = 0;
  logic push, pop;
  assign push = valid_i && ready_o;
  assign pop  = valid_o && ready_i;

  always_ff @(posedge clk_i) begin
    if (rst_n) begin
      if (push) begin
        words_q[0] <= data_i;
        for (int unsigned i = 1; i < Depth + Ahead; i++) words_q[i] <= words_q[i-1];
      end
      count_q <= count_q + 32'(push) - 32'(pop);
      // It is full with all its words, or with those in the RAM while one is on its way.
      assert (ready_o || count_q >= Depth && 32'(count_o) == Depth);
      assert (valid_o == (count_q > 0));
      assert (32'(count_o) <= count_q && count_q <= 32'(count_o) + Ahead);
      if (count_q > 0) assert (data_o == words_q[count_q-1]);
    end
  end

endmodule
