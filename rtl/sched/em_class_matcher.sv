/// Priority PIM in three cycles an iteration, by size classes: every ready destination asks the
/// first of its least class, and every source takes the first of the least class that asks it.
///
/// A port declines what is above its least class while a candidate of it, that is also of the least
/// class of its other end, waits for that end to come free. It stays in the request cycle while
/// nobody asks: then no candidate that nobody declines joins two ready ports.
module em_class_matcher
  import em_sched_pkg::*;
#(
    parameter int unsigned Ports = 8,
    localparam int unsigned PortWidth = $clog2(Ports)
) (
    input logic clk_i,
    input logic rst_ni,

    /// By source and destination: the candidates, and which are of the least class of each end.
    input logic [Ports-1:0]     valid_i[Ports],
    input size_class_t          class_i[Ports][Ports],
    input logic [Ports-1:0]     response_i[Ports],
    input logic [Ports-1:0]     source_least_i[Ports],
    input logic [Ports-1:0]     destination_least_i[Ports],
    input logic [Ports-1:0]     source_ready_i,
    input logic [Ports-1:0]     destination_ready_i,
    /// Without room a port is not matched, and nobody holds for its room.
    input logic [Ports-1:0]     source_room_i,
    input logic [Ports-1:0]     destination_room_i,
    input logic [PortWidth-1:0] turn_i,

    output phase_e phase_o,
    output phase_e phase_next_o,

    /// In the grant cycle: by destination whom it asked; by source whom it takes.
    output logic [Ports-1:0] asked_o[Ports],
    output logic [Ports-1:0] granted_o[Ports],
    /// In the third cycle, by source.
    output logic [Ports-1:0] match_o[Ports],
    /// In the third cycle, by destination: it asked for a response.
    output logic [Ports-1:0] response_o
);

  phase_e phase_q, phase_d;
  logic any;
  // By destination: the source asked, and the request.
  logic [Ports-1:0] asked[Ports], asked_q[Ports], eligible[Ports], asks;
  logic [Ports-1:0] asked_response, asked_response_q, response_q[Ports];
  // What goes before what it asked for.
  class_set_t asked_before[Ports], asked_before_q[Ports], asked_class[Ports];
  logic [PortWidth-1:0] turn_q;
  // By source: the destination taken.
  logic [Ports-1:0] granted[Ports], match_q[Ports];
  class_set_t unused_before[Ports];
  logic [Ports-1:0] source_holds, destination_holds;
  logic [Ports-1:0] source_open, destination_open;

  assign source_open      = source_ready_i & source_room_i;
  assign destination_open = destination_ready_i & destination_room_i;

  for (genvar s = 0; s < Ports; s++) begin : gen_source_holds
    assign source_holds[s] =
        (source_least_i[s] & destination_least_i[s] & ~destination_ready_i) != '0;
  end

  for (genvar d = 0; d < Ports; d++) begin : gen_requests
    // What is valid but for the hold of the destination; and what that declines not.
    logic [Ports-1:0] valid, waits, allowed, column_response;
    class_set_t column_class[Ports], column_lesser[Ports];
    for (genvar s = 0; s < Ports; s++) begin : gen_column
      assign waits[s] = source_least_i[s][d] && destination_least_i[s][d] && !source_ready_i[s];
      assign valid[s] = valid_i[s][d] && source_open[s] &&
                        (source_least_i[s][d] || !source_holds[s]);
      // If anything of its least class is valid, that is the least; if not, it has nothing else to
      // ask for while it holds. So that it holds need not be known before the least class is.
      assign allowed[s] = destination_open[d] &&
                          (destination_least_i[s][d] || !destination_holds[d]);
      assign column_class[s] = only_class(class_i[s][d]);
      assign column_lesser[s] = lesser_classes(class_i[s][d]);
      assign column_response[s] = response_q[s][d];
    end
    assign destination_holds[d] = waits != '0;
    assign eligible[d]          = valid & allowed;

    em_class_first #(
        .Inputs(Ports)
    ) u_first (
        .valid_i  (valid),
        .allowed_i(allowed),
        .class_i  (column_class),
        .lesser_i (column_lesser),
        .turn_i   (turn_i ^ PortWidth'(d)),
        .first_o  (asked[d]),
        .before_o (asked_before[d])
    );

    assign asked_class[d] = class_after(asked_before_q[d]);

    assign asks[d]            = eligible[d] != '0;
    assign asked_response[d]  = (asked_q[d] & column_response) != '0;
  end

  for (genvar s = 0; s < Ports; s++) begin : gen_grants
    logic [Ports-1:0] row;
    for (genvar d = 0; d < Ports; d++) begin : gen_row
      assign row[d] = asked_q[d][s];
    end

    em_class_first #(
        .Inputs(Ports)
    ) u_first (
        .valid_i  (row),
        .allowed_i('1),
        .class_i  (asked_class),
        .lesser_i (asked_before_q),
        .turn_i   (turn_q ^ PortWidth'(s)),
        .first_o  (granted[s]),
        .before_o (unused_before[s])
    );
  end

  assign any = phase_q == PhaseRequest && asks != '0;

  always_comb begin
    unique case (phase_q)
      PhaseRequest: phase_d = any ? PhaseGrant : PhaseRequest;
      PhaseGrant: phase_d = PhaseMark;
      default: phase_d = PhaseRequest;
    endcase
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      phase_q <= PhaseRequest;
      asked_q <= '{default: '0};
      match_q <= '{default: '0};
    end else begin
      phase_q <= phase_d;
      if (phase_q == PhaseRequest) asked_q <= asked;
      match_q <= (phase_q == PhaseGrant) ? granted : '{default: '0};
    end
  end

  always_ff @(posedge clk_i) begin
    if (phase_q == PhaseRequest) begin
      asked_before_q <= asked_before;
      turn_q         <= turn_i;
      response_q     <= response_i;
    end
    asked_response_q <= asked_response;
  end

  assign phase_o          = phase_q;
  assign phase_next_o     = phase_d;
  assign asked_o          = asked_q;
  assign granted_o        = granted;
  assign match_o          = match_q;
  assign response_o       = asked_response_q;

endmodule
