/// The data of responses between memory and their chunks: a buffer for each read that each peer can
/// have open. Data is read when the request comes and kept, because later writes may arrive before
/// its last chunk has left.
module em_host_responses
  import em_host_pkg::*;
#(
    parameter int unsigned Nodes        = 4,
    parameter int unsigned X            = 3,
    parameter int unsigned MessageBytes = 1024,
    localparam int unsigned Rows     = Nodes * X,
    localparam int unsigned RowsBits = $clog2(Rows),
    localparam int unsigned Words    = MessageBytes / 8
) (
    input logic clk_i,
    input logic rst_ni,

    /// Since the reset: nothing may come yet.
    output logic resetting_o,

    /// Taken in every cycle.
    input logic           valid_i,
    input response_word_t word_i,

    // How much of a response there is, one edge later.
    input  logic [RowsBits-1:0] ask_row_i,
    output arrived_t            arrived_o,
    // A word of it, one edge later.
    input  logic                read_i,
    input  logic [RowsBits-1:0] read_row_i,
    input  bytes_t              read_word_i,
    output logic [63:0]         read_data_o
);

  localparam int unsigned DataBits = $clog2(Rows * Words);

  logic [RowsBits-1:0] row, reset_row_q;
  logic resetting_q;
  arrived_t arrived;

  assign resetting_o = resetting_q;

  assign row     = RowsBits'(word_i.peer) * RowsBits'(X) + RowsBits'(word_i.row);
  assign arrived = '{
      phase: word_i.phase, words: word_i.word + 1'b1, done: word_i.last, code: word_i.code};

  em_host_ram #(
      .Width($bits(arrived_t)),
      .Depth(Rows)
  ) u_arrived (
      .clk_i,
      .write_i        (valid_i || resetting_q),
      .write_address_i(resetting_q ? reset_row_q : row),
      .write_data_i   (resetting_q ? '0 : arrived),
      .read_i         (1'b1),
      .read_address_i (ask_row_i),
      .read_data_o    (arrived_o)
  );

  em_host_ram #(
      .Width(64),
      .Depth(Rows * Words)
  ) u_words (
      .clk_i,
      .write_i        (valid_i),
      .write_address_i(DataBits'(row) * DataBits'(Words) + DataBits'(word_i.word)),
      .write_data_i   (word_i.data),
      .read_i,
      .read_address_i (DataBits'(read_row_i) * DataBits'(Words) + DataBits'(read_word_i)),
      .read_data_o
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      resetting_q <= 1'b1;
      reset_row_q <= '0;
    end else if (resetting_q) begin
      resetting_q <= reset_row_q != RowsBits'(Rows - 1);
      reset_row_q <= reset_row_q + 1'b1;
    end
  end

endmodule
