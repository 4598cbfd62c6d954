/// Lines that are being fetched, and for each the reads that wait for it, first in, first out.
///
/// A read waits under its AXI identifier, which no other read in flight has: so the lists are links
/// from identifier to identifier, and there is always room for one more.
module em_cxl_cache_fetches
  import em_cxl_pkg::*;
#(
    /// 1 to 64 at once.
    parameter int unsigned Fetches = 64,
    parameter int unsigned PlaceBits = 9
) (
    input logic clk_i,
    input logic rst_ni,

    /// No more fetches can begin; else `free_o` is the number that the next one gets.
    output logic   full_o,
    output fetch_t free_o,

    /// A read begins the fetch `free_o` of a place, or waits for one that is under way.
    input logic                 begin_i,
    input logic [PlaceBits-1:0] begin_place_i,
    input logic                 join_i,
    input fetch_t               join_fetch_i,
    input id_t                  id_i,

    /// For which place a fetch is.
    input  fetch_t               find_fetch_i,
    output logic [PlaceBits-1:0] find_place_o,

    /// The first read that waits for a fetch, and whether it is the last one. `tell_i` takes it
    /// from the list; the fetch has ended with the last one.
    input  fetch_t tell_fetch_i,
    input  logic   tell_i,
    output id_t    tell_id_o,
    output logic   tell_last_o
);

  typedef logic [Fetches-1:0] fetches_t;

  fetches_t busy_q, lowest, told;
  logic [PlaceBits-1:0] places_q[1<<FetchBits];
  id_t firsts_q[1<<FetchBits], lasts_q[1<<FetchBits], next_q[Ids];
  id_t first, last;

  em_arb_prio #(
      .Requests(Fetches)
  ) u_lowest (
      .request_i(~busy_q),
      .grant_o  (lowest)
  );

  always_comb begin
    free_o = '0;
    for (int unsigned i = 0; i < Fetches; i++) begin
      if (lowest[i]) free_o |= fetch_t'(i);
      told[i] = tell_i && tell_last_o && tell_fetch_i == fetch_t'(i);
    end
  end

  assign full_o       = &busy_q;
  assign find_place_o = places_q[find_fetch_i];
  assign first        = firsts_q[tell_fetch_i];
  assign last         = lasts_q[tell_fetch_i];
  assign tell_id_o    = first;
  assign tell_last_o  = first == last;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) busy_q <= '0;
    else busy_q <= (busy_q | (begin_i ? lowest : '0)) & ~told;
  end

  // One operation a cycle begins, joins or tells.
  always_ff @(posedge clk_i) begin
    if (begin_i) places_q[free_o] <= begin_place_i;
    if (begin_i || tell_i) begin
      firsts_q[begin_i ? free_o : tell_fetch_i] <= begin_i ? id_i : next_q[first];
    end
    if (begin_i || join_i) lasts_q[begin_i ? free_o : join_fetch_i] <= id_i;
    if (join_i) next_q[lasts_q[join_fetch_i]] <= id_i;
  end

endmodule
