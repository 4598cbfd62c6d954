/// Counts pulses of one clock in another: each cycle it gives the number of new pulses of each
/// kind.
///
/// A counter of few bits crosses as Gray code. No pulse is lost while fewer than 2^CountBits come
/// between two edges of the reading clock. Both resets must be asserted together.
module em_event_cross #(
    parameter int unsigned Events = 1,
    parameter int unsigned CountBits = 4
) (
    input logic              event_clk_i,
    input logic              event_rst_ni,
    input logic [Events-1:0] event_i,

    input  logic                             clk_i,
    input  logic                             rst_ni,
    output logic [Events-1:0][CountBits-1:0] count_o
);

  typedef logic [CountBits-1:0] count_t;

  for (genvar e = 0; e < Events; e++) begin : gen_events
    count_t here_q, here_d, gray_q, gray_seen, seen, seen_q;

    assign here_d = here_q + count_t'(event_i[e]);

    always_ff @(posedge event_clk_i or negedge event_rst_ni) begin
      if (!event_rst_ni) begin
        here_q <= '0;
        gray_q <= '0;
      end else begin
        here_q <= here_d;
        gray_q <= here_d ^ (here_d >> 1);
      end
    end

    em_sync #(
        .Width(CountBits)
    ) u_sync (
        .clk_i,
        .rst_ni,
        .data_i(gray_q),
        .data_o(gray_seen)
    );

    for (genvar b = 0; b < CountBits; b++) begin : gen_bits
      assign seen[b] = ^(gray_seen >> b);
    end

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) seen_q <= '0;
      else seen_q <= seen;
    end

    assign count_o[e] = seen - seen_q;
  end

endmodule
