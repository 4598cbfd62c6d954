/// Congestion control in six phases (section III.D, Figure 3): state for state what `RateControl`
/// of crates/cxl does, a cycle at a time.
///
/// The rate is from the floor to the line rate, and every phase but the stable one at line rate has
/// an end. A timer that ends in the cycle of a PFC frame takes effect first.
module em_cxl_control
  import em_cxl_pkg::*;
#(
    /// The published values (section V), and our floor: one step of exploration.
    parameter int unsigned LineMbps    = 100_000,
    parameter int unsigned FloorMbps   = 1_000,
    parameter int unsigned InitialMbps = 100_000,
    parameter int unsigned StepMbps    = 1_000,
    /// 50, 10, 11, 200, 40 and 20 us at 250 MHz. All but T2 are 1 at least.
    parameter int unsigned T1Cycles    = 12_500,
    parameter int unsigned T2Cycles    = 2_500,
    parameter int unsigned T3Cycles    = 2_750,
    parameter int unsigned T4Cycles    = 50_000,
    parameter int unsigned T5Cycles    = 10_000,
    parameter int unsigned T6Cycles    = 5_000
) (
    input logic clk_i,
    input logic rst_ni,

    /// A PFC frame, or a congestion packet, has come.
    input logic pfc_i,

    /// Before what happens in this cycle.
    output control_t state_o,
    /// The PFC frame changes the rate, or is a duplicate.
    output logic     acted_o,
    output logic     duplicate_o
);

  localparam rate_t Line = rate_t'(LineMbps);
  localparam rate_t Floor = rate_t'(FloorMbps);
  localparam rate_t Initial = rate_t'(InitialMbps);
  localparam logic [2:0] Speedups = 3'd5;
  localparam control_t Reset = '{
      phase: PhaseStable,
      current: Initial,
      target: Initial,
      speedups: '0,
      increase: '0,
      timed: InitialMbps != LineMbps,
      timer: (InitialMbps != LineMbps) ? timer_t'(T4Cycles) : '0,
      deaf: '0
  };

  control_t state_q, expired, signalled, state_d;
  logic acted;

  function automatic rate_t at_least_floor(rate_t rate);
    return (rate < Floor) ? Floor : rate;
  endfunction

  /// A rate times eighths, rounded down.
  function automatic rate_t eighths(rate_t rate, logic [2:0] count);
    return rate_t'(({3'b000, rate} * {{RateBits{1'b0}}, count}) >> 3);
  endfunction

  function automatic control_t stable(rate_t rate, timer_t deaf);
    return '{
        phase: PhaseStable,
        current: rate,
        target: rate,
        speedups: '0,
        increase: '0,
        timed: rate != Line,
        timer: (rate != Line) ? timer_t'(T4Cycles) : '0,
        deaf: deaf
    };
  endfunction

  /// The half of the way to the target, and a step up, at most to the line rate.
  rate_t midpoint, raised;
  assign midpoint = rate_t'(({1'b0, state_q.current} + {1'b0, state_q.target}) >> 1);
  assign raised   = (32'(Line - state_q.current) < StepMbps) ? Line
                                                              : state_q.current + rate_t'(StepMbps);

  // What the end of a timer does.
  always_comb begin
    expired = state_q;
    if (state_q.timed && state_q.timer == '0) begin
      case (state_q.phase)
        PhasePfcResponse, PhaseRecoveryPfcResponse: begin
          expired.phase    = PhaseFastRecovery;
          expired.speedups = '0;
          expired.timer    = timer_t'(T3Cycles);
        end
        PhaseFastRecovery: begin
          if (state_q.speedups == Speedups - 1'b1) expired = stable(midpoint, state_q.deaf);
          else begin
            expired.current  = midpoint;
            expired.speedups = state_q.speedups + 1'b1;
            expired.timer    = timer_t'(T3Cycles);
          end
        end
        PhaseStable: begin
          expired.phase = PhaseIncrementExploration;
          expired.timer = timer_t'(T5Cycles);
        end
        PhaseIncrementExploration: begin
          // The last step had its time, too: the line rate itself was tried.
          if (state_q.current == Line) expired = stable(Line, state_q.deaf);
          else begin
            expired.current  = raised;
            expired.increase = raised - state_q.current;
            expired.timer    = timer_t'(T5Cycles);
          end
        end
        default: expired = stable(state_q.current, state_q.deaf);
      endcase
    end
  end

  assign acted       = pfc_i && state_q.deaf == '0;
  assign acted_o     = acted;
  assign duplicate_o = pfc_i && !acted;

  // What a PFC frame does.
  always_comb begin
    signalled = expired;
    if (acted) begin
      signalled.deaf     = timer_t'(T2Cycles);
      signalled.timed    = 1'b1;
      signalled.timer    = timer_t'(T1Cycles);
      signalled.speedups = '0;
      signalled.increase = '0;
      case (expired.phase)
        PhaseFastRecovery: begin
          signalled.phase   = PhaseRecoveryPfcResponse;
          signalled.target  = at_least_floor(eighths(expired.current, 3'd7));
          signalled.current = at_least_floor(eighths(expired.current, 3'd6));
        end
        PhaseRecoveryPfcResponse: begin
          signalled.current = at_least_floor(eighths(expired.current, 3'd6));
        end
        PhaseIncrementExploration: begin
          signalled.phase   = PhaseIncrementGuessing;
          signalled.current = expired.current - expired.increase;
          signalled.timer   = timer_t'(T6Cycles);
        end
        default: begin
          // A second halving keeps the target of the first one.
          if (expired.phase != PhasePfcResponse) signalled.target = expired.current;
          signalled.phase   = PhasePfcResponse;
          signalled.current = at_least_floor(expired.current >> 1);
        end
      endcase
    end
  end

  always_comb begin
    state_d = signalled;
    if (signalled.timed) state_d.timer = signalled.timer - 1'b1;
    if (signalled.deaf != '0) state_d.deaf = signalled.deaf - 1'b1;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) state_q <= Reset;
    else state_q <= state_d;
  end

  assign state_o = state_q;

endmodule
