/// The flush of a compute node: a walk over all places of the cache, then the wait until every
/// line that was written back is acknowledged.
module em_cxl_clean #(
    parameter int unsigned PlaceBits = 9,
    localparam int unsigned CountBits = 32
) (
    input logic clk_i,
    input logic rst_ni,

    /// Begins a flush, which with `drop` empties the cache; done in the cycle of `cleaned_o`.
    input  logic clean_i,
    input  logic clean_drop_i,
    output logic cleaned_o,

    /// The place to look at, until the cache has taken it.
    output logic                 walks_o,
    output logic [PlaceBits-1:0] place_o,
    output logic                 drop_o,
    input  logic                 taken_i,
    /// The cache has looked at a place.
    input  logic                 looked_i,
    /// A line is to be written back; a line is acknowledged.
    input  logic                 sent_i,
    input  logic                 acked_i
);

  typedef enum logic [1:0] {
    CleanIdle = 2'd0,
    CleanWalk = 2'd1,
    CleanLast = 2'd2,  // the last step is under way
    CleanWait = 2'd3
  } clean_e;
  clean_e clean_q;
  logic drop_q, last_done;
  logic [PlaceBits-1:0] place_q;
  logic [2:0] settle_q;
  logic [CountBits-1:0] sent_q, acked_q, until_q;

  assign walks_o = clean_q == CleanWalk;
  assign place_o = place_q;
  assign drop_o  = drop_q;
  // The last place was looked at, and not as an access that stalls and comes again.
  assign last_done = clean_q == CleanLast && looked_i && settle_q == '0;
  assign cleaned_o = clean_q == CleanWait && acked_q == until_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      clean_q  <= CleanIdle;
      drop_q   <= 1'b0;
      place_q  <= '0;
      settle_q <= '0;
      {until_q, sent_q, acked_q} <= '0;
    end else begin
      // Counted from the step on, so that none is forgotten on its way.
      if (sent_i) sent_q <= sent_q + 1'b1;
      if (acked_i) acked_q <= acked_q + 1'b1;
      case (clean_q)
        CleanIdle: begin
          place_q <= '0;
          if (clean_i) begin
            drop_q  <= clean_drop_i;
            clean_q <= CleanWalk;
          end
        end
        CleanWalk: if (taken_i) begin
          place_q <= place_q + 1'b1;
          if (&place_q) begin
            clean_q  <= CleanLast;
            settle_q <= 3'd1;
          end
        end
        // The step of the place before comes a cycle earlier.
        CleanLast: begin
          if (settle_q != '0) settle_q <= settle_q - 1'b1;
          if (last_done) begin
            until_q <= sent_q + CountBits'(sent_i);
            clean_q <= CleanWait;
          end
        end
        default: if (cleaned_o) clean_q <= CleanIdle;
      endcase
    end
  end

endmodule
