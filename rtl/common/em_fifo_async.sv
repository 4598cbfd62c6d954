/// A FIFO between two clocks: the grant queue's crossing of section 3.2.2, which costs four cycles.
/// One writes the word, two synchronise the pointer, one registers the output. Without the output
/// register, which the reader then provides, it costs three.
///
/// Each side's pointer has one bit more than an index and crosses as Gray code, so the other side
/// sees at worst an old value. A side may see the FIFO fuller or emptier than it is, but only in
/// the safe direction. Both resets must be asserted together.
module em_fifo_async #(
    parameter int unsigned Width = 66,
    /// In words: a power of two, 4 at least. 8 keep full rate when both clocks are alike.
    parameter int unsigned Depth = 8,
    parameter bit OutputRegister = 1'b1
) (
    input  logic             write_clk_i,
    input  logic             write_rst_ni,
    input  logic             write_valid_i,
    output logic             write_ready_o,
    input  logic [Width-1:0] write_data_i,

    input  logic             read_clk_i,
    input  logic             read_rst_ni,
    output logic             read_valid_o,
    input  logic             read_ready_i,
    output logic [Width-1:0] read_data_o
);

  localparam int unsigned IndexWidth = $clog2(Depth);
  typedef logic [IndexWidth:0] pointer_t;

  if (Depth != 1 << IndexWidth || Depth < 4) begin : gen_check
    $error("Depth must be a power of two, 4 at least");
  end

  function automatic pointer_t gray(pointer_t binary);
    return binary ^ (binary >> 1);
  endfunction

  logic [Width-1:0] words_q[Depth];
  pointer_t write_q, write_d, write_gray_q, write_gray_seen;
  pointer_t read_q, read_d, read_gray_q, read_gray_seen;
  logic push, pop, empty;

  // Full: the pointers differ in their two highest bits and in no other.
  assign write_ready_o = write_gray_q != {~read_gray_seen[IndexWidth-:2],
                                          read_gray_seen[IndexWidth-2:0]};
  assign push          = write_valid_i && write_ready_o;
  assign write_d       = write_q + pointer_t'(push);

  always_ff @(posedge write_clk_i or negedge write_rst_ni) begin
    if (!write_rst_ni) begin
      write_q      <= '0;
      write_gray_q <= '0;
    end else begin
      write_q      <= write_d;
      write_gray_q <= gray(write_d);
    end
  end

  always_ff @(posedge write_clk_i) begin
    if (push) words_q[write_q[IndexWidth-1:0]] <= write_data_i;
  end

  em_sync #(
      .Width(IndexWidth + 1)
  ) u_to_read (
      .clk_i (read_clk_i),
      .rst_ni(read_rst_ni),
      .data_i(write_gray_q),
      .data_o(write_gray_seen)
  );

  em_sync #(
      .Width(IndexWidth + 1)
  ) u_to_write (
      .clk_i (write_clk_i),
      .rst_ni(write_rst_ni),
      .data_i(read_gray_q),
      .data_o(read_gray_seen)
  );

  assign empty        = read_gray_q == write_gray_seen;
  assign read_d = read_q + pointer_t'(pop);

  always_ff @(posedge read_clk_i or negedge read_rst_ni) begin
    if (!read_rst_ni) begin
      read_q      <= '0;
      read_gray_q <= '0;
    end else begin
      read_q      <= read_d;
      read_gray_q <= gray(read_d);
    end
  end

  // The word was written two synchroniser stages ago at least, so it does not change now.
  if (OutputRegister) begin : gen_register
    logic taken_q;
    logic [Width-1:0] data_q;
    assign pop          = !empty && (!taken_q || read_ready_i);
    assign read_valid_o = taken_q;
    assign read_data_o  = data_q;

    always_ff @(posedge read_clk_i or negedge read_rst_ni) begin
      if (!read_rst_ni) taken_q <= 1'b0;
      else if (pop || read_ready_i) taken_q <= pop;
    end
    always_ff @(posedge read_clk_i) begin
      if (pop) data_q <= words_q[read_q[IndexWidth-1:0]];
    end
  end else begin : gen_wires
    assign pop          = !empty && read_ready_i;
    assign read_valid_o = !empty;
    assign read_data_o  = words_q[read_q[IndexWidth-1:0]];
  end

endmodule
