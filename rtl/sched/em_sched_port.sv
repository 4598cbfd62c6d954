/// One end of a port: how far its release is, and the control blocks it owes.
///
/// `left_o` counts down to the release and below zero while the port idles, as far as is needed to
/// pay for what it owes. Control that passes in a request cycle counts at once; during an iteration
/// it waits until the ports are marked busy, since it may pass within the grant to be marked.
module em_sched_port
  import em_sched_pkg::*;
#(
    parameter int unsigned SlotCycles = 1
) (
    input logic clk_i,
    input logic rst_ni,
    input control_config_t config_i,

    input phase_e phase_i,
    /// Of the next cycle, to which `charge_i` belongs.
    input phase_e phase_next_i,
    /// Control blocks that pass in the next cycle.
    input charge_t charge_i,

    /// The port is granted for `busy_i` cycles from `start_i` cycles ahead.
    input  logic  take_i,
    input  left_t start_i,
    input  left_t busy_i,
    output left_t left_o
);

  /// More idle time than can ever be owed.
  localparam left_t IdleMost = left_t'(SlotCycles << DebtBits);

  typedef struct packed {
    left_t left;
    debt_t debt;
  } end_t;

  end_t end_q, end_d;
  charge_t in_grant_q, in_mark_q;

  /// Blocks pass: what exceeds the free ones delays the release.
  function automatic end_t charge(end_t was, charge_t blocks, control_config_t c);
    logic [DebtBits:0] owed, late;
    owed   = {1'b0, was.debt} + (DebtBits + 1)'(blocks);
    late   = (owed > {1'b0, c.blocks_free}) ? owed - {1'b0, c.blocks_free} : '0;
    charge = was;
    if (c.counts) begin
      charge.debt = debt_t'(owed - late);
      charge.left = was.left + left_t'(left_t'({1'b0, late}) * left_t'(SlotCycles));
    end
  endfunction

  /// The port idled until its grant starts, and is busy from then on.
  function automatic end_t take(end_t was, left_t start, left_t busy);
    left_t idle_slots;
    take       = was;
    idle_slots = left_t'((start - was.left) / left_t'(SlotCycles));
    if (start > was.left) begin
      take.left = start;
      take.debt = (idle_slots >= left_t'({8'b0, was.debt})) ? '0
                  : was.debt - debt_t'(idle_slots);
    end
    take.left = take.left + busy;
  endfunction

  always_comb begin
    end_d = end_q;
    if (take_i) end_d = take(end_d, start_i, busy_i);
    if (phase_i == PhaseMark) begin
      if (end_d.left >= 0) end_d = charge(end_d, in_grant_q, config_i);
      if (end_d.left > 0) end_d = charge(end_d, in_mark_q, config_i);
    end
    if (end_d.left > -IdleMost) end_d.left = end_d.left - 1'b1;
    if (phase_next_i == PhaseRequest && end_d.left > 0) begin
      end_d = charge(end_d, charge_i, config_i);
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      end_q      <= '0;
      in_grant_q <= '0;
      in_mark_q  <= '0;
    end else begin
      end_q <= end_d;
      if (phase_next_i == PhaseGrant) in_grant_q <= charge_i;
      if (phase_next_i == PhaseMark) in_mark_q <= charge_i;
    end
  end

  assign left_o = end_q.left;

endmodule
