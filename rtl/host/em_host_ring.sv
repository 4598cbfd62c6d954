/// A queue of words that are discarded unless confirmed: the data of chunks, which ends with its
/// check.
module em_host_ring #(
    parameter int unsigned Width = 64,
    /// In words: a power of two.
    parameter int unsigned Depth = 128
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic             push_i,
    input  logic [Width-1:0] data_i,
    /// What was pushed before this cycle stays, or is taken back.
    input  logic             commit_i,
    input  logic             rewind_i,
    /// All that was pushed since found room.
    output logic             fits_o,

    /// The next word is at `data_o` from the next edge on. There must be one.
    input  logic             pop_i,
    /// In place of `pop_i`: the next word is dropped, and `data_o` stays.
    input  logic             skip_i,
    output logic [Width-1:0] data_o
);

  localparam int unsigned IndexBits = $clog2(Depth);
  typedef logic [IndexBits:0] pointer_t;

  if (Depth != 1 << IndexBits) begin : gen_check
    $error("Depth must be a power of two");
  end

  pointer_t write_q, kept_q, read_q;
  logic over_q, full, push;

  assign full   = write_q - read_q == pointer_t'(Depth);
  assign push   = push_i && !full && !over_q;
  assign fits_o = !over_q;

  em_host_ram #(
      .Width(Width),
      .Depth(Depth)
  ) u_words (
      .clk_i,
      .write_i        (push),
      .write_address_i(write_q[IndexBits-1:0]),
      .write_data_i   (data_i),
      .read_i         (pop_i),
      .read_address_i (read_q[IndexBits-1:0]),
      .read_data_o    (data_o)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      write_q <= '0;
      kept_q  <= '0;
      read_q  <= '0;
      over_q  <= 1'b0;
    end else begin
      read_q <= read_q + pointer_t'(pop_i || skip_i);
      if (commit_i) kept_q <= write_q;
      // A message has two blocks at least between its last word and the first of the next.
      if (rewind_i) begin
        write_q <= kept_q;
      end else begin
        write_q <= write_q + pointer_t'(push);
      end
      if (commit_i || rewind_i) over_q <= 1'b0;
      else if (push_i && full) over_q <= 1'b1;
    end
  end

endmodule
