/// The grant of one source: from the memory of its own writes, or from that of its destination's
/// requests.
module em_size_class_grant
  import em_pkg::*;
  import em_sched_pkg::*;
#(
    parameter int unsigned Ports = 8,
    parameter int unsigned TagWidth = 16,
    parameter bit Register = 1'b1,
    localparam int unsigned PortWidth = $clog2(Ports),
    localparam int unsigned OfferWidth = TagWidth + BytesBits + 2
) (
    input logic clk_i,
    input logic rst_ni,

    /// A bit for the destination.
    input  logic [Ports-1:0]      match_i,
    /// By destination: it asked for a response.
    input  logic [Ports-1:0]      response_i,
    input  logic [OfferWidth-1:0] own_i,
    input  logic [OfferWidth-1:0] others_i[Ports],
    input  left_t                 start_i,

    output decision_t decision_o
);

  logic [TagWidth-1:0] tag;
  logic [PortWidth-1:0] destination;
  bytes_t bytes;
  logic first, last;

  always_comb begin
    {tag, bytes, first, last} = own_i & {OfferWidth{(match_i & ~response_i) != '0}};
    destination = '0;
    for (int unsigned d = 0; d < Ports; d++) begin
      {tag, bytes, first, last} |= others_i[d] & {OfferWidth{match_i[d] && response_i[d]}};
      destination |= PortWidth'(d) & {PortWidth{match_i[d]}};
    end
  end

  decision_t chosen, shown;
  logic shows;

  always_comb begin
    chosen             = '0;
    chosen.response    = (match_i & response_i) != '0;
    chosen.first       = first;
    chosen.last        = last;
    chosen.destination = node_t'(destination);
    chosen.tag         = tag_t'(tag);
    chosen.bytes       = bytes[GrantBytesBits-1:0];
    chosen.delay       = start_i;
  end

  em_stage #(
      .Width   ($bits(decision_t)),
      .Register(Register)
  ) u_grant (
      .clk_i,
      .rst_ni,
      .valid_i(match_i != '0),
      .data_i (chosen),
      .valid_o(shows),
      .data_o (shown)
  );

  always_comb begin
    decision_o       = shown;
    decision_o.valid = shows;
  end

endmodule
