/// Priority PIM in three cycles an iteration (section 3.1.2): every ready destination asks for its
/// best candidate of a ready source; every source takes the best that asks it; both become busy.
///
/// The matcher stays in the request cycle while no destination asks: then no candidate joins two
/// ready ports, so the matching is maximal. Requests are latched by source, destination and flow.
module em_sched_matcher
  import em_sched_pkg::*;
#(
    parameter int unsigned Ports = 2,
    parameter int unsigned KeyWidth = 66,
    localparam int unsigned PortWidth = $clog2(Ports)
) (
    input logic clk_i,
    input logic rst_ni,

    /// By source and destination: what may be granted as far as order and holds go.
    input logic [Ports-1:0]    candidate_i[Ports],
    input logic [KeyWidth-1:0] key_i[Ports][Ports],
    input logic [Ports-1:0]    response_i[Ports],
    input logic [Ports-1:0]    source_ready_i,
    input logic [Ports-1:0]    destination_ready_i,

    output phase_e phase_o,
    output phase_e phase_next_o,
    /// At least one destination asks.
    output logic   asked_o,
    /// By destination, in the second cycle: the source that it asks.
    output logic [PortWidth-1:0] asked_source_o[Ports],

    /// By source, in the third cycle: with whom it is matched, and the flow.
    output logic [Ports-1:0]     match_o,
    output logic [PortWidth-1:0] match_destination_o[Ports],
    output logic [Ports-1:0]     match_response_o
);

  typedef logic [KeyWidth-1:0] key_t;

  phase_e phase_q, phase_d;
  // By destination: the request.
  logic [Ports-1:0] request, request_q, request_response_q;
  logic [PortWidth-1:0] asked[Ports], asked_q[Ports];
  key_t request_key[Ports], request_key_q[Ports];
  // By source: the grant.
  logic [Ports-1:0] grant, match_q, match_response_q;
  logic [PortWidth-1:0] granted[Ports], match_destination_q[Ports];

  for (genvar d = 0; d < Ports; d++) begin : gen_requests
    logic [Ports-1:0] eligible;
    key_t key[Ports];
    for (genvar s = 0; s < Ports; s++) begin : gen_column
      assign eligible[s] = candidate_i[s][d] && source_ready_i[s] && destination_ready_i[d];
      assign key[s]      = key_i[s][d];
    end

    em_min_tree #(
        .Inputs  (Ports),
        .KeyWidth(KeyWidth)
    ) u_best (
        .valid_i(eligible),
        .key_i  (key),
        .valid_o(request[d]),
        .index_o(asked[d]),
        .key_o  (request_key[d])
    );
  end

  for (genvar s = 0; s < Ports; s++) begin : gen_grants
    logic [Ports-1:0] asks;
    key_t unused_key;
    logic unused;
    for (genvar d = 0; d < Ports; d++) begin : gen_row
      assign asks[d] = request_q[d] && asked_q[d] == PortWidth'(s);
    end

    em_min_tree #(
        .Inputs  (Ports),
        .KeyWidth(KeyWidth)
    ) u_best (
        .valid_i(asks),
        .key_i  (request_key_q),
        .valid_o(grant[s]),
        .index_o(granted[s]),
        .key_o  (unused_key)
    );
    assign unused = ^unused_key;
  end

  assign asked_o = phase_q == PhaseRequest && request != '0;

  always_comb begin
    unique case (phase_q)
      PhaseRequest: phase_d = asked_o ? PhaseGrant : PhaseRequest;
      PhaseGrant: phase_d = PhaseMark;
      default: phase_d = PhaseRequest;
    endcase
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      phase_q   <= PhaseRequest;
      request_q <= '0;
      match_q   <= '0;
    end else begin
      phase_q <= phase_d;
      if (phase_q == PhaseRequest) request_q <= request;
      match_q <= (phase_q == PhaseGrant) ? grant : '0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (asked_o) begin
      asked_q       <= asked;
      request_key_q <= request_key;
      for (int unsigned d = 0; d < Ports; d++) begin
        request_response_q[d] <= response_i[asked[d]][d];
      end
    end
    if (phase_q == PhaseGrant) begin
      match_destination_q <= granted;
      for (int unsigned s = 0; s < Ports; s++) begin
        match_response_q[s] <= request_response_q[granted[s]];
      end
    end
  end

  assign phase_o             = phase_q;
  assign phase_next_o        = phase_d;
  assign asked_source_o      = asked_q;
  assign match_o             = match_q;
  assign match_destination_o = match_destination_q;
  assign match_response_o    = match_response_q;

endmodule
