/// em_cxl_cache_tags gives a set as it was written last, whenever that was, or empty.
///
/// The proof follows one bit of each set beside a table without a RAM: `present` of the first way.
/// All bits are alike, but for those of the line that the set says.
module em_cxl_cache_tags_proof
  import em_cxl_pkg::*;
#(
    parameter int unsigned Sets = 4,
    localparam int unsigned SetBits = $clog2(Sets)
) (
    input logic               clk_i,
    input logic               read_i,
    input logic [SetBits-1:0] read_index_i,
    input logic               write_i,
    input logic               write_bit_i
);

  logic rst_n = 1'b0;
  always_ff @(posedge clk_i) rst_n <= 1'b1;

  logic ready;
  set_t set, written;

  always_comb begin
    written            = '0;
    written[0].present = write_bit_i;
  end

  em_cxl_cache_tags #(
      .Sets(Sets)
  ) u_dut (
      .clk_i,
      .rst_ni      (rst_n),
      .ready_o     (ready),
      .read_i,
      .read_index_i,
      .set_o       (set),
      .write_i,
      .write_set_i (written)
  );

  logic [Sets-1:0] truth_q = '0;
  logic [SetBits-1:0] index_q = '0;
  logic known_q = 1'b0;

  always_ff @(posedge clk_i) begin
    if (rst_n) begin
      // Nothing is written before it was read, and nothing is read before all is ready.
      if (write_i) assume (known_q);
      if (read_i) assume (ready);
      if (write_i) truth_q[index_q] <= write_bit_i;
      if (read_i) begin
        index_q <= read_index_i;
        known_q <= 1'b1;
      end
      if (known_q) begin
        assert (set[0].present == truth_q[index_q]);
        assert (set[0].line[SetBits-1:0] == index_q);
      end
    end
  end

endmodule
