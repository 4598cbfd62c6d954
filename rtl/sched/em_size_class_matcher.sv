/// Priority PIM in three cycles an iteration, by size classes: every ready destination asks the
/// first of its least class, and every source takes the first of the least class that asks it.
///
/// A port declines classes above its least while one of its candidates, which is also of the least
/// class of its other end, waits for that end to come free. The matcher stays in the request cycle
/// while no destination asks: then every candidate between two ready ports is declined.
module em_size_class_matcher
  import em_sched_pkg::*;
#(
    parameter int unsigned Ports = 8,
    /// The choices are made by precomputed precedence (`em_precedence_choice`), not by classes:
    /// faster, and smaller with few ports.
    parameter bit ByOrder = (Ports <= 8),
    localparam int unsigned PortWidth = $clog2(Ports)
) (
    input logic clk_i,
    input logic rst_ni,

    /// By source and destination: the candidates, and which are of the least class of each end.
    input logic [Ports-1:0]     valid_i[Ports],
    input size_class_t          class_i[Ports][Ports],
    /// What that is in the next cycle.
    input size_class_t          class_next_i[Ports][Ports],
    input logic [Ports-1:0]     response_i[Ports],
    input logic [Ports-1:0]     source_least_i[Ports],
    input logic [Ports-1:0]     destination_least_i[Ports],
    input logic [Ports-1:0]     source_ready_i,
    input logic [Ports-1:0]     destination_ready_i,
    /// A port without room is not matched, and no other port holds until it has room.
    input logic [Ports-1:0]     source_room_i,
    input logic [Ports-1:0]     destination_room_i,
    input logic [PortWidth-1:0] turn_i,
    input logic [PortWidth-1:0] turn_next_i,

    output phase_e phase_o,

    /// In the grant cycle: by destination whom it asked; by source whom it takes.
    output logic [Ports-1:0] asked_o[Ports],
    output logic [Ports-1:0] granted_o[Ports],
    /// In the third cycle, by source.
    output logic [Ports-1:0] match_o[Ports],
    /// In the third cycle, by destination: it asked for a response.
    output logic [Ports-1:0] response_o
);

  // By destination and source.
  logic [Ports-1:0] valid[Ports], willing[Ports], asks[Ports], asked_q[Ports];
  logic [Ports-1:0] any, any_q, asked_response, asked_response_q, response_q[Ports];
  // By source: the destination taken.
  logic [Ports-1:0] granted[Ports], match_q[Ports];
  logic [Ports-1:0] source_holds, destination_holds;
  logic [Ports-1:0] source_open, destination_open;

  assign source_open      = source_ready_i & source_room_i;
  assign destination_open = destination_ready_i & destination_room_i;

  for (genvar s = 0; s < Ports; s++) begin : gen_source_holds
    assign source_holds[s] =
        (source_least_i[s] & destination_least_i[s] & ~destination_ready_i) != '0;
  end

  for (genvar d = 0; d < Ports; d++) begin : gen_requests
    logic [Ports-1:0] waits, column_response;
    for (genvar s = 0; s < Ports; s++) begin : gen_column
      assign waits[s] = source_least_i[s][d] && destination_least_i[s][d] && !source_ready_i[s];
      assign valid[d][s] = valid_i[s][d] && source_open[s] &&
                           (source_least_i[s][d] || !source_holds[s]);
      assign willing[d][s] = destination_open[d] &&
                             (destination_least_i[s][d] || !destination_holds[d]);
      assign column_response[s] = response_q[s][d];
    end
    assign destination_holds[d] = waits != '0;
    assign any[d]               = (valid[d] & willing[d]) != '0;
    assign asked_response[d]    = (asked_q[d] & column_response) != '0;
  end

  if (ByOrder) begin : gen_by_order
    em_precedence_choice #(
        .Ports(Ports)
    ) u_choice (
        .clk_i,
        .class_i,
        .class_next_i,
        .turn_i,
        .turn_next_i,
        .valid_i  (valid),
        .willing_i(willing),
        .asks_o   (asks),
        .asked_i  (asked_q),
        .granted_o(granted)
    );
  end else begin : gen_by_class
    em_size_class_choice #(
        .Ports(Ports)
    ) u_choice (
        .clk_i,
        .class_i,
        .turn_i,
        .valid_i  (valid),
        .willing_i(willing),
        .asks_o   (asks),
        .asked_i  (asked_q),
        .granted_o(granted)
    );

    logic unused_turn;
    assign unused_turn = ^turn_next_i;
    for (genvar i = 0; i < Ports * Ports; i++) begin : gen_unused
      logic unused;
      assign unused = ^class_next_i[i/Ports][i%Ports];
    end
  end

  // The cycle after the request knows if a destination asks. It grants if so, and is a request
  // cycle again if not. What a request found is of use in that cycle alone.
  phase_e phase, phase_q;
  assign phase = (phase_q == PhaseGrant && any_q == '0) ? PhaseRequest : phase_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      phase_q <= PhaseRequest;
      any_q   <= '0;
      asked_q <= '{default: '0};
      match_q <= '{default: '0};
    end else begin
      unique case (phase)
        PhaseRequest: phase_q <= PhaseGrant;
        PhaseGrant: phase_q <= PhaseMark;
        default: phase_q <= PhaseRequest;
      endcase
      any_q   <= any;
      asked_q <= asks;
      // A port grants only in the cycle after a request.
      match_q <= (phase_q == PhaseGrant) ? granted : '{default: '0};
    end
  end

  always_ff @(posedge clk_i) begin
    response_q       <= response_i;
    asked_response_q <= asked_response;
  end

  assign phase_o          = phase;
  assign asked_o          = asked_q;
  assign granted_o        = granted;
  assign match_o          = match_q;
  assign response_o       = asked_response_q;

endmodule
