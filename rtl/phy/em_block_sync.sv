/// Finds where blocks begin on the line: clause 49's lock (figure 49-14) and its monitor of wrong
/// sync headers (figure 49-15).
///
/// Sixty-four sound headers in a row lock; sixteen wrong ones of sixty-four lose the lock. Without
/// lock, each wrong header makes the gearbox slip by a bit, and the next `SlipBlocks` blocks are
/// ignored.
module em_block_sync #(
    parameter int unsigned SlipBlocks = 4,
    /// Too many errors: so many wrong headers in so many blocks. Of clause 107: 97 in 2 ms.
    parameter int unsigned BerHeaders = 97,
    parameter int unsigned BerBlocks = 781_250
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic       valid_i,
    input  logic [1:0] header_i,
    output logic       slip_o,
    output logic       lock_o,
    output logic       hi_ber_o
);

  localparam logic [6:0] Headers = 7'd64;
  localparam logic [4:0] WrongMax = 5'd16;
  localparam int unsigned SlipWidth = $clog2(SlipBlocks + 1);
  localparam int unsigned BerWidth = $clog2(BerHeaders + 1);
  localparam int unsigned WindowWidth = $clog2(BerBlocks);

  logic lock_q, hi_ber_q, wrong, slips;
  logic [6:0] count_q, count;
  logic [4:0] wrong_q, wrongs;
  logic [SlipWidth-1:0] slipping_q;
  logic [BerWidth-1:0] errors_q, errors;
  logic [WindowWidth-1:0] window_q;

  assign wrong  = header_i == 2'b00 || header_i == 2'b11;
  assign count  = count_q + 1'b1;
  assign wrongs = wrong_q + 5'(wrong);
  assign slips  = valid_i && slipping_q == '0 && wrong && (!lock_q || wrongs == WrongMax);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      lock_q     <= 1'b0;
      count_q    <= '0;
      wrong_q    <= '0;
      slipping_q <= '0;
    end else if (slips) begin
      lock_q     <= 1'b0;
      count_q    <= '0;
      wrong_q    <= '0;
      slipping_q <= SlipWidth'(SlipBlocks);
    end else if (valid_i && slipping_q != '0) begin
      slipping_q <= slipping_q - 1'b1;
    end else if (valid_i) begin
      count_q <= (count == Headers) ? '0 : count;
      wrong_q <= (count == Headers) ? '0 : wrongs;
      if (count == Headers && wrongs == '0) lock_q <= 1'b1;
    end
  end

  // Counted from the lock on; what was found stays until a whole window without it.
  assign errors = (errors_q == BerWidth'(BerHeaders)) ? errors_q : errors_q + BerWidth'(wrong);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      hi_ber_q <= 1'b0;
      errors_q <= '0;
      window_q <= '0;
    end else if (!lock_q) begin
      hi_ber_q <= 1'b0;
      errors_q <= '0;
      window_q <= '0;
    end else if (valid_i) begin
      if (errors == BerWidth'(BerHeaders)) hi_ber_q <= 1'b1;
      if (window_q == WindowWidth'(BerBlocks - 1)) begin
        hi_ber_q <= errors == BerWidth'(BerHeaders);
        errors_q <= '0;
        window_q <= '0;
      end else begin
        errors_q <= errors;
        window_q <= window_q + 1'b1;
      end
    end
  end

  assign slip_o   = slips;
  assign lock_o   = lock_q;
  assign hi_ber_o = hi_ber_q;

endmodule
