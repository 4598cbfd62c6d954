/// The two ends of all ports: when a grant starts, how long it takes them, and who is ready.
///
/// When a grant would start is found for every request in the grant cycle, beside the choice among
/// them: from there to the mark no end changes but by the time that passes.
module em_class_ends
  import em_sched_pkg::*;
#(
    parameter int unsigned Ports = 8,
    parameter int unsigned SlotCycles = 1,
    parameter int unsigned ChunkOverheadBlocks = 2
) (
    input logic clk_i,
    input logic rst_ni,
    input control_config_t control_config_i,
    input left_t           window_cycles_i,
    input left_t           ahead_cycles_i,

    input phase_e phase_i,
    input phase_e phase_next_i,
    /// Control blocks that pass in this cycle.
    input charge_t uplink_blocks_i[Ports],
    input charge_t downlink_blocks_i[Ports],

    /// By destination: the source asked, in the grant cycle.
    input  logic [Ports-1:0] asked_i[Ports],
    /// By source: the destination, and how much, in the cycle after it.
    input  logic [Ports-1:0] match_i[Ports],
    input  bytes_t           bytes_i[Ports],
    output left_t            start_o[Ports],

    output logic [Ports-1:0] source_ready_o,
    output logic [Ports-1:0] destination_ready_o
);

  left_t source_left[Ports], destination_left[Ports], start_q[Ports], busy[Ports];
  charge_t uplink_q[Ports], downlink_q[Ports];

  for (genvar p = 0; p < Ports; p++) begin : gen_ports
    left_t of_source, start, destination_busy;
    logic [Ports-1:0] from;

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        uplink_q[p]   <= '0;
        downlink_q[p] <= '0;
      end else begin
        uplink_q[p]   <= uplink_blocks_i[p];
        downlink_q[p] <= downlink_blocks_i[p];
      end
    end

    // From the cycle after the mark on, when the source is free and the destination nearly so.
    always_comb begin
      of_source = '0;
      for (int unsigned s = 0; s < Ports; s++) begin
        of_source |= source_left[s] & {LeftBits{asked_i[p][s]}};
      end
      start = left_t'(2);
      if (of_source > start) start = of_source;
      if (destination_left[p] - ahead_cycles_i > start) begin
        start = destination_left[p] - ahead_cycles_i;
      end
    end
    always_ff @(posedge clk_i) start_q[p] <= start - 1'b1;

    // The match of this source, and of this destination.
    always_comb begin
      start_o[p]       = '0;
      destination_busy = '0;
      for (int unsigned o = 0; o < Ports; o++) begin
        start_o[p] |= start_q[o] & {LeftBits{match_i[p][o]}};
        destination_busy |= busy[o] & {LeftBits{match_i[o][p]}};
        from[o] = match_i[o][p];
      end
    end
    assign busy[p] = left_t'((blocks_of(bytes_i[p]) + bytes_t'(ChunkOverheadBlocks))
                             * bytes_t'(SlotCycles));

    em_sched_port #(
        .SlotCycles(SlotCycles)
    ) u_source (
        .clk_i,
        .rst_ni,
        .config_i    (control_config_i),
        .phase_i,
        .phase_next_i,
        .charge_i    (uplink_q[p]),
        .take_i      (match_i[p] != '0),
        .start_i     (start_o[p]),
        .busy_i      (busy[p]),
        .left_o      (source_left[p])
    );

    em_sched_port #(
        .SlotCycles(SlotCycles)
    ) u_destination (
        .clk_i,
        .rst_ni,
        .config_i    (control_config_i),
        .phase_i,
        .phase_next_i,
        .charge_i    (downlink_q[p]),
        .take_i      (from != '0),
        .start_i     (start_q[p]),
        .busy_i      (destination_busy),
        .left_o      (destination_left[p])
    );

    assign source_ready_o[p]      = source_left[p] <= window_cycles_i;
    assign destination_ready_o[p] = destination_left[p] <= window_cycles_i + ahead_cycles_i;
  end

endmodule
