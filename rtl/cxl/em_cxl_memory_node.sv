/// A memory node for one compute node: AXI4-Stream from a MAC, packet manager, translator, and an
/// AXI4 master towards memory.
///
/// Requests are translated one by one, in their order: a hit of the TLB takes three cycles. A page
/// that is not mapped is answered without memory. Maps and unmaps go before the next request.
module em_cxl_memory_node
  import em_cxl_axi_pkg::*;
  import em_cxl_pkg::*;
#(
    parameter int unsigned Window = 512,
    parameter sequence_t   Initial = '0,
    parameter bit          GoBackN = 1'b0,
    parameter int unsigned Entries = 512,
    parameter int unsigned Threshold = 50,
    parameter int unsigned TlbEntries = 32,
    parameter int unsigned Buckets = 1024,
    /// Accesses to memory that are under way.
    parameter int unsigned Slots = 8
) (
    input logic clk_i,
    input logic rst_ni,
    /// Of this node, and of the compute node.
    input mac_t mac_i,
    input mac_t peer_i,

    /// A request may leave the FIFO in this cycle: the pace of the node's data path.
    input logic drain_i,

    input  table_request_t  table_i,
    output table_response_t table_o,

    output axi_request_t  axi_o,
    input  axi_response_t axi_i,

    output logic  beat_valid_o,
    input  logic  beat_ready_i,
    output beat_t beat_o,
    input  logic  beat_valid_i,
    input  beat_t beat_i,
    input  logic  error_i,
    /// More entries of the FIFO are used than the threshold.
    output logic  pfc_o,
    output logic  dropped_o
);

  localparam int unsigned PlaceBits = $clog2(Window);
  typedef logic [PlaceBits-1:0] place_t;

  typedef enum logic [1:0] {
    StateFree      = 2'd0,
    StateTranslate = 2'd1,
    StateMemory    = 2'd2,  // it waits for the master
    StateUnmapped  = 2'd3   // it waits to be answered
  } state_e;

  state_e state_q, state_d;
  logic issuable, issue, issued, maps, of_table_q, translated;
  place_t issued_place, place_q, complete_place, master_place;
  request_t issued_request, request_q, request;
  response_t complete_response, master_response;
  logic lookup_valid, lookup_ready, lookup_done, lookup_found, lookup_full;
  table_op_e lookup_op;
  mac_t lookup_node;
  line_t lookup_line, line, line_q;
  logic master_valid, master_ready, master_complete, complete;
  logic [3:0] unused_reads;
  logic unused_arrived;
  arrival_e unused_arrival;

  em_cxl_memory_packets #(
      .Window   (Window),
      .Initial  (Initial),
      .GoBackN  (GoBackN),
      .Entries  (Entries),
      .Threshold(Threshold)
  ) u_packets (
      .clk_i, .rst_ni, .mac_i, .peer_i, .drain_i, .issuable_o(issuable), .issue_i(issue),
      .issued_o(issued), .issued_place_o(issued_place), .issued_request_o(issued_request),
      .complete_i(complete), .complete_place_i(complete_place),
      .complete_response_i(complete_response), .beat_valid_o, .beat_ready_i, .beat_o,
      .beat_valid_i, .beat_i, .error_i, .pfc_o, .arrived_o(unused_arrived),
      .arrival_o(unused_arrival), .dropped_o
  );

  // A request is there a cycle after its issue, and goes to the translator at once.
  assign maps  = state_q == StateFree && table_i.valid;
  assign issue = state_q == StateFree && !table_i.valid && lookup_ready && issuable;

  assign lookup_valid = issued || maps;
  assign lookup_op    = issued ? TableTranslate : table_i.op;
  assign lookup_node  = issued ? peer_i : table_i.node;
  assign lookup_line  = issued ? issued_request.line : table_i.line;

  em_cxl_translator #(
      .TlbEntries(TlbEntries),
      .Buckets   (Buckets)
  ) u_translator (
      .clk_i, .rst_ni, .valid_i(lookup_valid), .ready_o(lookup_ready), .op_i(lookup_op),
      .node_i(lookup_node), .line_i(lookup_line), .frame_i(table_i.frame), .done_o(lookup_done),
      .found_o(lookup_found), .full_o(lookup_full), .line_o(line), .reads_o(unused_reads)
  );

  assign table_o = '{
      ready: maps && lookup_ready,
      done: lookup_done && of_table_q,
      found: lookup_found,
      full: lookup_full
  };
  assign translated = lookup_done && !of_table_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) of_table_q <= 1'b0;
    else if (lookup_valid && lookup_ready) of_table_q <= !issued;
  end

  assign master_valid = state_q == StateMemory || (translated && lookup_found);

  always_comb begin
    state_d = state_q;
    case (state_q)
      StateFree: if (issue) state_d = StateTranslate;
      StateTranslate: begin
        if (translated) state_d = lookup_found ? StateMemory : StateUnmapped;
        if (master_valid && master_ready) state_d = StateFree;
      end
      StateMemory: if (master_ready) state_d = StateFree;
      default: if (!master_complete) state_d = StateFree;
    endcase
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) state_q <= StateFree;
    else state_q <= state_d;
  end

  always_ff @(posedge clk_i) begin
    if (issued) begin
      request_q <= issued_request;
      place_q   <= issued_place;
    end
    if (translated) line_q <= line;
  end

  always_comb begin
    request      = request_q;
    request.line = (state_q == StateMemory) ? line_q : line;
  end

  em_cxl_axi_master #(
      .Slots    (Slots),
      .PlaceBits(PlaceBits)
  ) u_master (
      .clk_i, .rst_ni, .valid_i(master_valid), .ready_o(master_ready), .place_i(place_q),
      .request_i(request), .axi_o, .axi_i, .complete_o(master_complete),
      .complete_place_o(master_place), .complete_response_o(master_response)
  );

  // Memory's ends go first: an unmapped request keeps all behind it waiting, so that they cease.
  assign complete       = master_complete || state_q == StateUnmapped;
  assign complete_place = master_complete ? master_place : place_q;
  always_comb begin
    complete_response = master_response;
    if (!master_complete) begin
      complete_response = '{
          is_read: request_q.ask == AskRead,
          id: request_q.id,
          status: StatusUnmapped,
          data: '0
      };
    end
  end

endmodule
