/// A compute node and a memory node, for the bench: it is the processor, the network between them
/// and the memory. The rules of AXI4 are watched on both sides.
module em_cxl_node
  import em_cxl_axi_pkg::*;
  import em_cxl_pkg::*;
#(
    parameter int unsigned Sets = 2,
    parameter int unsigned Fetches = 8,
    parameter int unsigned Window = 64,
    parameter int unsigned Slots = 8,
    parameter int unsigned TlbEntries = 2
) (
    input logic clk_i,
    input logic rst_ni,

    input  axi_request_t  axi_i,
    output axi_response_t axi_o,
    input  logic          clean_i,
    input  logic          clean_drop_i,
    output logic          cleaned_o,
    output logic          lost_o,

    input  table_request_t  table_i,
    output table_response_t table_o,
    output axi_request_t    memory_o,
    input  axi_response_t   memory_i,

    /// From either node and to it: 0 is the compute node.
    output logic  [1:0] beat_valid_o,
    input  logic  [1:0] beat_ready_i,
    output beat_t       beat_o[2],
    input  logic  [1:0] beat_valid_i,
    input  beat_t       beat_i[2],
    input  logic  [1:0] error_i,

    /// Rules of AXI4 that are broken at the processor's side, and at the memory's: by the request,
    /// by the response, by both.
    output logic [5:0] broken_o
);

  localparam mac_t Compute = 48'h0c_00_00_00_00_02;
  localparam mac_t Memory = 48'h0d_00_00_00_00_02;
  /// Identifiers that the processor uses.
  localparam int unsigned Watches = 12;

  logic pfc;
  logic [1:0] unused_dropped;

  em_cxl_compute_node #(
      .Sets       (Sets),
      .Fetches    (Fetches),
      .Window     (Window),
      .Slots      (2 * Window),
      .RetryCycles(1_500)
  ) u_compute (
      .clk_i,
      .rst_ni,
      .mac_i       (Compute),
      .peer_i      (Memory),
      .axi_i,
      .axi_o,
      .clean_i,
      .clean_drop_i,
      .cleaned_o,
      .lost_o,
      .beat_valid_o(beat_valid_o[0]),
      .beat_ready_i(beat_ready_i[0]),
      .beat_o      (beat_o[0]),
      .beat_valid_i(beat_valid_i[0]),
      .beat_i      (beat_i[0]),
      .error_i     (error_i[0]),
      .pfc_i       (pfc),
      .dropped_o   (unused_dropped[0])
  );

  em_cxl_memory_node #(
      .Window    (Window),
      .Entries   (64),
      .TlbEntries(TlbEntries),
      .Buckets   (16),
      .Slots     (Slots)
  ) u_memory (
      .clk_i,
      .rst_ni,
      .mac_i       (Memory),
      .peer_i      (Compute),
      .drain_i     (1'b1),
      .table_i,
      .table_o,
      .axi_o       (memory_o),
      .axi_i       (memory_i),
      .beat_valid_o(beat_valid_o[1]),
      .beat_ready_i(beat_ready_i[1]),
      .beat_o      (beat_o[1]),
      .beat_valid_i(beat_valid_i[1]),
      .beat_i      (beat_i[1]),
      .error_i     (error_i[1]),
      .pfc_o       (pfc),
      .dropped_o   (unused_dropped[1])
  );

  id_t watches[Watches], slots[Slots];
  for (genvar i = 0; i < Watches; i++) begin : gen_watches
    assign watches[i] = id_t'(i);
  end
  for (genvar i = 0; i < Slots; i++) begin : gen_slots
    assign slots[i] = id_t'(i);
  end

  em_axi_rules #(
      .Watches(Watches)
  ) u_processor_rules (
      .clk_i,
      .rst_ni,
      .request_i        (axi_i),
      .response_i       (axi_o),
      .watch_i          (watches),
      .request_broken_o (broken_o[0]),
      .response_broken_o(broken_o[1]),
      .shared_broken_o  (broken_o[2])
  );

  em_axi_rules #(
      .Watches(Slots)
  ) u_memory_rules (
      .clk_i,
      .rst_ni,
      .request_i        (memory_o),
      .response_i       (memory_i),
      .watch_i          (slots),
      .request_broken_o (broken_o[3]),
      .response_broken_o(broken_o[4]),
      .shared_broken_o  (broken_o[5])
  );

endmodule
