/// The two choices of an iteration, for few ports. Precedence between every two candidates of a
/// port is precomputed one cycle earlier and kept in one bit. A choice is then an OR, and the bits
/// grow with the cube of the ports. `em_size_class_choice` makes the same choices.
module em_precedence_choice
  import em_sched_pkg::*;
#(
    parameter int unsigned Ports = 8,
    localparam int unsigned PortWidth = $clog2(Ports)
) (
    input logic clk_i,

    /// By source and destination, in this cycle and in the next one.
    input size_class_t          class_i[Ports][Ports],
    input size_class_t          class_next_i[Ports][Ports],
    input logic [PortWidth-1:0] turn_i,
    input logic [PortWidth-1:0] turn_next_i,

    /// By destination and source: the candidates that may be asked for, but for the destination;
    /// and for which that is willing.
    input  logic [Ports-1:0] valid_i[Ports],
    input  logic [Ports-1:0] willing_i[Ports],
    /// By destination: the source that it asks.
    output logic [Ports-1:0] asks_o[Ports],

    // A cycle later.
    input  logic [Ports-1:0] asked_i[Ports],
    /// By source: the destination that it takes.
    output logic [Ports-1:0] granted_o[Ports]
);

  for (genvar p = 0; p < Ports; p++) begin : gen_ports
    // As a destination, for the request; as a source, for the grant that follows it.
    logic [Ports-1:0] request_order[Ports], request_order_q[Ports];
    logic [Ports-1:0] grant_order[Ports], grant_order_q[Ports];
    logic [Ports-1:0] eligible, asking;
    size_class_t column_next[Ports];

    for (genvar o = 0; o < Ports; o++) begin : gen_others
      // The candidates before it: by its own bits for lesser indices, by their bits for greater.
      logic [Ports-1:0] requests_before, grants_before;
      for (genvar i = 0; i < Ports; i++) begin : gen_before
        assign requests_before[i] = (i > o) ? !request_order_q[i][o] : request_order_q[o][i];
        assign grants_before[i]   = (i > o) ? !grant_order_q[i][o] : grant_order_q[o][i];
      end
      assign column_next[o]  = class_next_i[o][p];
      assign asking[o]       = asked_i[o][p];
      assign asks_o[p][o]    = eligible[o] && (eligible & requests_before) == '0;
      assign granted_o[p][o] = asking[o] && (asking & grants_before) == '0;
    end
    assign eligible = valid_i[p] & willing_i[p];

    em_size_class_precedence #(
        .Inputs(Ports)
    ) u_request (
        .class_i (column_next),
        .turn_i  (turn_next_i ^ PortWidth'(p)),
        .before_o(request_order)
    );

    em_size_class_precedence #(
        .Inputs(Ports)
    ) u_grant (
        .class_i (class_i[p]),
        .turn_i  (turn_i ^ PortWidth'(p)),
        .before_o(grant_order)
    );

    always_ff @(posedge clk_i) begin
      request_order_q <= request_order;
      grant_order_q   <= grant_order;
    end
  end

endmodule
