/// em_cxl_control keeps the rate from the floor to the line rate, whatever PFC frames come, and has
/// an end for each phase but the stable one at line rate.
///
/// The published times and rates, whole. What is asserted of target, increase and timer is what
/// makes the promise hold from any state that satisfies it.
module em_cxl_control_proof
  import em_cxl_pkg::*;
#(
    parameter int unsigned LineMbps = 100_000,
    parameter int unsigned FloorMbps = 1_000,
    parameter int unsigned InitialMbps = 100_000
) (
    input logic clk_i,
    input logic pfc_i
);

  logic rst_n = 1'b0;
  logic past_q = 1'b0;
  control_t state, state_q;
  logic acted, duplicate, acted_q, pfc_q;

  em_cxl_control #(
      .LineMbps   (LineMbps),
      .FloorMbps  (FloorMbps),
      .InitialMbps(InitialMbps)
  ) u_dut (
      .clk_i,
      .rst_ni     (rst_n),
      .pfc_i,
      .state_o    (state),
      .acted_o    (acted),
      .duplicate_o(duplicate)
  );

  localparam rate_t Line = rate_t'(LineMbps);
  localparam rate_t Floor = rate_t'(FloorMbps);
  localparam timer_t Longest = timer_t'(50_000);

  logic cut;
  assign cut = state.phase == PhasePfcResponse || state.phase == PhaseFastRecovery
               || state.phase == PhaseRecoveryPfcResponse;

  always_ff @(posedge clk_i) begin
    rst_n   <= 1'b1;
    past_q  <= rst_n;
    state_q <= state;
    acted_q <= acted;
    pfc_q   <= pfc_i;
    if (rst_n) begin
      assert (state.current >= Floor && state.current <= Line);
      assert (state.target >= Floor && state.target <= Line);
      if (cut) assert (state.current <= state.target);
      assert (state.current - state.increase >= Floor && state.increase <= state.current);
      if (state.phase != PhaseIncrementExploration) assert (state.increase == '0);
      assert (state.speedups < 3'd5);
      assert (state.phase <= PhaseIncrementGuessing);
      // A way out of every phase, after a bounded time.
      assert (state.timed == !(state.phase == PhaseStable && state.current == Line));
      if (state.timed) assert (state.timer < Longest || !past_q);
      // What is not a duplicate, and only that, is acted on, and never raises the rate.
      assert (acted == (pfc_i && state.deaf == '0) && duplicate == (pfc_i && !acted));
    end
    if (past_q) begin
      if (acted_q && !(state_q.timed && state_q.timer == '0)) begin
        assert (state.current <= state_q.current);
      end
      // Without a PFC frame and before the timer ends, nothing changes.
      if (!acted_q && !(state_q.timed && state_q.timer == '0)) begin
        assert (state.phase == state_q.phase && state.current == state_q.current);
      end
      if (!pfc_q) assert (state.deaf <= state_q.deaf);
    end
  end

endmodule
