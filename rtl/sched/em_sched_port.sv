/// One end of a port: how far its release is, whether that is near, and the control blocks it owes.
///
/// The distance counts down to the release and below zero while the port idles, as far as is needed
/// to pay for what it owes. Control that passes in a request cycle counts in it; during an
/// iteration it waits until the ports are marked busy, since it may pass within the grant to be
/// marked, and then counts as if it came one by one. What comes one by one while the port is busy
/// is late by what the sum is late, so that there is nothing to do one after the other: whether a
/// part counts is a question only at a distance of 0 or 1. What is late for a grant is added in the
/// cycle after the mark.
module em_sched_port
  import em_sched_pkg::*;
#(
    parameter int unsigned SlotCycles = 1
) (
    input logic clk_i,
    input logic rst_ni,
    input control_config_t config_i,
    /// At this distance it is ready; not negative.
    input left_t           limit_i,

    input phase_e phase_i,
    /// Control blocks that pass in the next cycle.
    input charge_t charge_i,

    // In the mark cycle.
    /// It is granted from so many cycles ahead on (at least 1, and when it is free), until when it
    /// idles for so many slots, and for so many cycles and one.
    input  logic  take_i,
    input  left_t from_i,
    input  debt_t idle_slots_i,
    input  left_t busy_less_i,

    /// In the grant and the mark cycle.
    output left_t left_o,
    /// In the request cycle.
    output logic  ready_o
);

  /// More idle time than can ever be owed.
  localparam left_t IdleMost = left_t'(SlotCycles << DebtBits);

  left_t left_q, left_d, late_q, late_d;
  debt_t debt_q, debt_d;
  logic ready_q, ready_d;
  // What passes now, and what passed in the grant cycle: that waits for the mark.
  charge_t charge, charge_q, held_q, held_d;
  // Both; how far it is above what is free; and with the debt of the cycle before, which is that of
  // a mark.
  left_t passing_q, over_q, owed_q;
  // One less, so that a sign says that something is late: of both, and of the second alone.
  left_t late_less_q, held_less_q;
  // In cycles: how far it is above, less the one that passes.
  left_t delay_q;
  // A distance before this cycle passes is near if its sum with one of these is negative: for
  // nothing, for what is above the free ones, and (after this cycle) for that and the debt.
  left_t beyond_q, beyond_over_q, beyond_owed_q;
  // Their parts that are set once.
  left_t free_q, free_owed_q;

  function automatic left_t of_debt(debt_t value);
    return left_t'({1'b0, value});
  endfunction

  function automatic left_t of_charge(charge_t value);
    return left_t'({1'b0, value});
  endfunction

  function automatic left_t in_cycles(left_t blocks);
    return left_t'(SlotCycles) * blocks;
  endfunction

  assign charge = config_i.counts ? charge_i : '0;
  assign held_d = (phase_i == PhaseGrant) ? charge_q : '0;

  // Without a grant. What is late for one, which is added now, left it at a distance of 1 at least.
  left_t passed, delayed, owed_less, held_owed_less, near, near_late;
  logic gone, zero, one, late, counts;

  assign passed         = plus3(left_q, late_q, -left_t'(1));
  assign delayed        = plus4(left_q, late_q, in_cycles(of_debt(debt_q)), delay_q);
  assign owed_less      = plus(of_debt(debt_q), late_less_q);
  assign held_owed_less = plus(of_debt(debt_q), held_less_q);
  assign gone           = left_q < 0;
  assign zero           = left_q == '0;
  assign one            = left_q == left_t'(1) && late_q == '0;
  assign late           = owed_less >= 0;
  assign counts         = phase_i != PhaseGrant && !gone && (!zero || held_owed_less >= 0);

  // What passes in the next cycle is in its readiness already. Negative is near.
  assign near      = plus3(left_q, late_q, beyond_q);
  assign near_late = plus5(left_q, late_q, beyond_over_q, in_cycles(of_debt(debt_q)),
                           in_cycles(of_charge(charge)));

  // With one: it is late by what exceeds the free ones, whether or not anything is owed still.
  left_t taken_owed, taken_less, taken_near, taken_near_over, taken_near_owed, paid_until;
  debt_t taken_debt;
  logic owes, taken_late;

  // What is owed and not paid until the grant begins is late as from when the port was free.
  if (SlotCycles == 1) begin : gen_paid_at_once
    assign paid_until = left_q;
  end else begin : gen_paid_in_slots
    assign paid_until = plus3(left_t'(1), ~in_cycles(of_debt(idle_slots_i)), from_i);
  end

  // A complement is one less than its negative.
  assign owes            = plus(of_debt(debt_q), ~of_debt(idle_slots_i)) >= 0;
  assign taken_owed      = owes ? plus3(owed_q, left_t'(1), ~of_debt(idle_slots_i)) : over_q;
  assign taken_less      = owes ? plus(owed_q, ~of_debt(idle_slots_i)) : late_less_q;
  assign taken_late      = taken_less >= 0;
  assign taken_debt      = debt_t'(owes ? plus4(passing_q, of_debt(debt_q), left_t'(1),
                                                ~of_debt(idle_slots_i)) : passing_q);
  assign taken_near      = plus3(~limit_i, from_i, busy_less_i);
  assign taken_near_over = plus3(plus3(beyond_over_q, left_t'(1), in_cycles(of_charge(charge))),
                                 from_i, busy_less_i);
  assign taken_near_owed = plus(plus3(beyond_owed_q, in_cycles(of_charge(charge)), paid_until),
                                busy_less_i);

  // The distance is one of four, of which none waits for another. It is at its least long after the
  // port has come free.
  logic delays, least, waits;
  assign delays = !take_i && counts && late;
  assign least  = !take_i && left_q == -IdleMost;
  assign waits  = !take_i && !least && !(counts && late);

  always_comb begin
    left_d = plus(from_i, busy_less_i) & {LeftBits{take_i}} |
             delayed & {LeftBits{delays}} | passed & {LeftBits{waits}} |
             -IdleMost & {LeftBits{least}};
    late_d = '0;
    debt_d = debt_q;
    if (take_i) begin
      if (taken_late) late_d = in_cycles(taken_owed);
      debt_d  = taken_late ? config_i.blocks_free : taken_debt;
      ready_d = taken_near < 0 && taken_near_over < 0 && taken_near_owed < 0;
    end else begin
      if (counts) begin
        debt_d = late ? config_i.blocks_free : debt_t'(plus(of_debt(debt_q), passing_q));
      end else if (zero) begin
        debt_d = debt_t'(plus(of_debt(debt_q), of_charge(held_q)));
      end
      ready_d = near < 0 && near_late < 0 || gone || one && !late || zero && held_owed_less < 0 ||
                zero && SlotCycles == 1 && owed_less == '0;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      left_q   <= '0;
      late_q   <= '0;
      debt_q   <= '0;
      ready_q  <= 1'b1;
      charge_q <= '0;
      held_q   <= '0;
    end else begin
      left_q   <= left_d;
      late_q   <= late_d;
      debt_q   <= debt_d;
      ready_q  <= ready_d;
      charge_q <= charge;
      held_q   <= held_d;
    end
  end

  always_ff @(posedge clk_i) begin
    passing_q     <= plus(of_charge(charge), of_charge(held_d));
    over_q        <= plus4(left_t'(1), ~of_debt(config_i.blocks_free), of_charge(charge),
                           of_charge(held_d));
    owed_q        <= plus5(of_debt(debt_q), left_t'(1), ~of_debt(config_i.blocks_free),
                           of_charge(charge), of_charge(held_d));
    late_less_q   <= plus3(~of_debt(config_i.blocks_free), of_charge(charge), of_charge(held_d));
    held_less_q   <= plus(~of_debt(config_i.blocks_free), of_charge(held_d));
    delay_q       <= plus3(~in_cycles(of_debt(config_i.blocks_free)), in_cycles(of_charge(charge)),
                           in_cycles(of_charge(held_d)));
    beyond_q      <= plus(~limit_i, -left_t'(1));
    free_q        <= plus(~limit_i, ~in_cycles(of_debt(config_i.blocks_free)));
    free_owed_q   <= plus3(~limit_i, ~in_cycles(of_debt(config_i.blocks_free)), left_t'(1));
    beyond_over_q <= plus3(free_q, in_cycles(of_charge(charge)), in_cycles(of_charge(held_d)));
    beyond_owed_q <= plus4(free_owed_q, in_cycles(of_debt(debt_q)), in_cycles(of_charge(charge)),
                           in_cycles(of_charge(held_d)));
  end

  assign left_o  = left_q;
  assign ready_o = ready_q;

endmodule
