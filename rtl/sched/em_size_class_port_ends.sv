/// The two ends of all ports: when a grant starts, how long it takes them, and which are ready.
///
/// When a grant would start is found for every request in the grant cycle, beside the choice among
/// them: from there to the mark no end changes but by the time that passes.
module em_size_class_port_ends
  import em_sched_pkg::*;
#(
    parameter int unsigned Ports = 8,
    parameter int unsigned SlotCycles = 1
) (
    input logic clk_i,
    input logic rst_ni,
    input control_config_t control_config_i,
    input left_t           window_cycles_i,
    input left_t           ahead_cycles_i,

    input phase_e phase_i,
    /// Control blocks that pass in this cycle.
    input charge_t uplink_blocks_i[Ports],
    input charge_t downlink_blocks_i[Ports],

    /// By destination: the source asked, in the grant cycle.
    input  logic [Ports-1:0] asked_i[Ports],
    // In the mark cycle.
    /// By source: the destination.
    input  logic [Ports-1:0] match_i[Ports],
    /// By destination: it asked for a response, and how long that takes, less a cycle.
    input  logic [Ports-1:0] response_i,
    input  left_t            response_busy_less_i[Ports],
    /// By source: how long its write takes, less a cycle.
    input  left_t            write_busy_less_i[Ports],
    output left_t            start_o[Ports],

    output logic [Ports-1:0] source_ready_o,
    output logic [Ports-1:0] destination_ready_o
);

  localparam left_t Slot = left_t'(SlotCycles);

  left_t source_left[Ports], destination_left[Ports], start_q[Ports], from_q[Ports];
  debt_t source_idle_q[Ports], destination_idle_q[Ports];
  charge_t uplink_q[Ports], downlink_q[Ports];
  // What is set once: the limit of a destination, and what makes of its distance when it is nearly
  // free, that and two, and whether that is to come.
  left_t destination_limit_q, to_ahead_q, to_ahead_two_q, to_ahead_waits_q;

  always_ff @(posedge clk_i) begin
    destination_limit_q <= window_cycles_i + ahead_cycles_i;
    to_ahead_q          <= ~ahead_cycles_i;
    to_ahead_two_q      <= left_t'(1) - ahead_cycles_i;
    to_ahead_waits_q    <= -left_t'(2) - ahead_cycles_i;
  end

  for (genvar p = 0; p < Ports; p++) begin : gen_ports
    left_t from_source, of_source, of_destination, ahead;
    left_t source_busy, destination_busy, write_busy;
    debt_t idle_here;
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

    // In the grant cycle, of the mark: how far the releases are, and when the destination is nearly
    // free.
    always_comb begin
      from_source = '0;
      for (int unsigned s = 0; s < Ports; s++) begin
        from_source |= source_left[s] & {LeftBits{asked_i[p][s]}};
      end
    end
    assign of_source      = plus(from_source, -left_t'(1));
    assign of_destination = plus(destination_left[p], -left_t'(1));
    assign ahead          = plus(destination_left[p], to_ahead_q);

    // From the cycle after the mark on, when the source is free and the destination nearly so. What
    // either end idles until then is found beside it, whichever of them it waits for. What does not
    // need to know whom the destination asked comes first.
    left_t behind_source, behind_destination, ahead_of_one;
    logic source_waits, ahead_waits, destination_last;
    assign source_waits       = plus(from_source, -left_t'(2)) >= 0;
    assign ahead_waits        = plus(destination_left[p], to_ahead_waits_q) >= 0;
    assign behind_source      = plus(plus(destination_left[p], to_ahead_two_q), ~from_source);
    assign ahead_of_one       = plus(left_t'(3), ~from_source);
    assign behind_destination = plus(plus(~destination_left[p], left_t'(1)), from_source);
    assign destination_last   = plus(destination_left[p], ~from_source) >= 0 &&
                                plus(destination_left[p], -left_t'(2)) >= 0;
    always_ff @(posedge clk_i) begin
      start_q[p] <= left_t'(1);
      if (source_waits) start_q[p] <= of_source;
      if (ahead_waits && behind_source >= 0) start_q[p] <= ahead;
      from_q[p] <= source_waits ? of_source : left_t'(1);
      if (destination_last) from_q[p] <= of_destination;
      source_idle_q[p] <= whole_slots(ahead_waits ? behind_source : ahead_of_one, Slot);
      destination_idle_q[p] <= source_waits ? whole_slots(behind_destination, Slot)
                               : whole_slots(plus(left_t'(2), ~of_destination), Slot);
    end

    // The match of this source, and of this destination.
    always_comb begin
      start_o[p]  = '0;
      idle_here   = '0;
      source_busy = write_busy_less_i[p] & {LeftBits{(match_i[p] & ~response_i) != '0}};
      write_busy  = '0;
      for (int unsigned o = 0; o < Ports; o++) begin
        start_o[p] |= start_q[o] & {LeftBits{match_i[p][o]}};
        idle_here |= source_idle_q[o] & {DebtBits{match_i[p][o]}};
        source_busy |= response_busy_less_i[o] & {LeftBits{match_i[p][o] && response_i[o]}};
        write_busy |= write_busy_less_i[o] & {LeftBits{match_i[o][p]}};
        from[o] = match_i[o][p];
      end
    end
    assign destination_busy = response_i[p] ? response_busy_less_i[p] : write_busy;

    em_sched_port #(
        .SlotCycles(SlotCycles)
    ) u_source (
        .clk_i,
        .rst_ni,
        .config_i    (control_config_i),
        .limit_i     (window_cycles_i),
        .phase_i,
        .charge_i    (uplink_q[p]),
        .take_i      (match_i[p] != '0),
        .from_i      (start_o[p]),
        .idle_slots_i(idle_here),
        .busy_less_i (source_busy),
        .left_o      (source_left[p]),
        .ready_o     (source_ready_o[p])
    );

    em_sched_port #(
        .SlotCycles(SlotCycles)
    ) u_destination (
        .clk_i,
        .rst_ni,
        .config_i    (control_config_i),
        .limit_i     (destination_limit_q),
        .phase_i,
        .charge_i    (downlink_q[p]),
        .take_i      (from != '0),
        .from_i      (from_q[p]),
        .idle_slots_i(destination_idle_q[p]),
        .busy_less_i (destination_busy),
        .left_o      (destination_left[p]),
        .ready_o     (destination_ready_o[p])
    );
  end

endmodule
