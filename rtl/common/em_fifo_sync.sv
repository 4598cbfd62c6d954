/// A FIFO of one clock. A word is visible in the cycle after it was written.
///
/// `ready_o` does not depend on `ready_i`, so a full FIFO accepts nothing in the cycle in which it
/// gives: no path runs from one side to the other.
module em_fifo_sync #(
    parameter int unsigned Width = 66,
    /// In words; any number from 1.
    parameter int unsigned Depth = 4,
    localparam int unsigned CountWidth = $clog2(Depth + 1)
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic             valid_i,
    output logic             ready_o,
    input  logic [Width-1:0] data_i,

    output logic             valid_o,
    input  logic             ready_i,
    output logic [Width-1:0] data_o,

    /// Words stored.
    output logic [CountWidth-1:0] count_o
);

  localparam int unsigned IndexWidth = (Depth > 1) ? $clog2(Depth) : 1;
  localparam logic [IndexWidth-1:0] IndexLast = IndexWidth'(Depth - 1);

  logic [Width-1:0] words_q[Depth];
  logic [IndexWidth-1:0] write_q, read_q;
  logic [CountWidth-1:0] count_q;
  logic push, pop;

  assign ready_o = count_q != CountWidth'(Depth);
  assign valid_o = count_q != '0;
  assign data_o  = words_q[read_q];
  assign count_o = count_q;
  assign push    = valid_i && ready_o;
  assign pop     = valid_o && ready_i;

  function automatic logic [IndexWidth-1:0] next(logic [IndexWidth-1:0] index);
    return (index == IndexLast) ? '0 : index + 1'b1;
  endfunction

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      write_q <= '0;
      read_q  <= '0;
      count_q <= '0;
    end else begin
      if (push) write_q <= next(write_q);
      if (pop) read_q <= next(read_q);
      count_q <= count_q + CountWidth'(push) - CountWidth'(pop);
    end
  end

  always_ff @(posedge clk_i) begin
    if (push) words_q[write_q] <= data_i;
  end

endmodule
