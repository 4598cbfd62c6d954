/// The two choices of an iteration, for many ports: each finds the least class that is there, and
/// of what is of it the first in turn. `em_precedence_choice` chooses the same.
module em_size_class_choice
  import em_sched_pkg::*;
#(
    parameter int unsigned Ports = 8,
    localparam int unsigned PortWidth = $clog2(Ports)
) (
    input logic clk_i,

    /// By source and destination.
    input size_class_t          class_i[Ports][Ports],
    input logic [PortWidth-1:0] turn_i,

    /// By destination and source: the candidates that may be asked for, but for the destination;
    /// and for which that is willing: if for one, then for all of its class and of lesser ones.
    input  logic [Ports-1:0] valid_i[Ports],
    input  logic [Ports-1:0] willing_i[Ports],
    /// By destination: the source that it asks.
    output logic [Ports-1:0] asks_o[Ports],

    // A cycle later.
    input  logic [Ports-1:0] asked_i[Ports],
    /// By source: the destination that it takes.
    output logic [Ports-1:0] granted_o[Ports]
);

  logic [PortWidth-1:0] turn_q;
  // By destination: what goes before what it asked for, and what that is.
  class_set_t asked_before[Ports], asked_before_q[Ports], asked_class[Ports];

  always_ff @(posedge clk_i) begin
    asked_before_q <= asked_before;
    turn_q         <= turn_i;
  end

  for (genvar d = 0; d < Ports; d++) begin : gen_requests
    class_set_t column_class[Ports], column_lesser[Ports];
    for (genvar s = 0; s < Ports; s++) begin : gen_column
      assign column_class[s]  = only_class(class_i[s][d]);
      assign column_lesser[s] = lesser_classes(class_i[s][d]);
    end

    // If it is willing for anything of the least class, that is the least; if not, it has nothing
    // else to ask for. So whether it is need not be known before the least class is.
    em_size_class_first #(
        .Inputs(Ports)
    ) u_first (
        .valid_i  (valid_i[d]),
        .allowed_i(willing_i[d]),
        .class_i  (column_class),
        .lesser_i (column_lesser),
        .turn_i   (turn_i ^ PortWidth'(d)),
        .first_o  (asks_o[d]),
        .before_o (asked_before[d])
    );

    assign asked_class[d] = class_after(asked_before_q[d]);
  end

  for (genvar s = 0; s < Ports; s++) begin : gen_grants
    logic [Ports-1:0] asking;
    class_set_t unused_before;
    for (genvar d = 0; d < Ports; d++) begin : gen_row
      assign asking[d] = asked_i[d][s];
    end

    em_size_class_first #(
        .Inputs(Ports)
    ) u_first (
        .valid_i  (asking),
        .allowed_i('1),
        .class_i  (asked_class),
        .lesser_i (asked_before_q),
        .turn_i   (turn_q ^ PortWidth'(s)),
        .first_o  (granted_o[s]),
        .before_o (unused_before)
    );
  end

endmodule
