/// Handles a failed link in a host. The host accepts nothing more, notifies the transmit clock
/// behind all earlier grants, forgets its peers, and is settled once nothing sent before is in
/// flight.
///
/// Messages are accepted from the edge after the one that brings the link up: the other end's peer
/// notices are right behind its idles. The transmit clock learns of it by a shorter path than the
/// arrivals take. The host waits for its confirmation only when the link fails again.
module em_host_link (
    input logic clk_i,
    input logic rst_ni,

    /// The link is up.
    input  logic up_i,
    /// More had to be answered than can be kept: the link is to fail.
    input  logic lost_i,
    /// To the edge, until the link is down: the other end has to know.
    output logic fail_o,

    /// Messages are taken.
    output logic enable_o,
    /// To the transmit clock: the link is down.
    output logic down_o,
    /// ItemLinkDown is to be queued.
    output logic tell_o,
    input  logic told_i,
    output logic forget_o,
    input  logic forgetting_i,
    /// Nothing of before is under way: memory, and the transmit clock.
    input  logic quiet_i,
    input  logic flushed_i,
    /// The link may start anew.
    output logic settled_o
);

  typedef enum logic [2:0] {
    StStart,   // after the reset
    StUp,
    StTell,
    StForget,
    StDown
  } state_e;

  state_e state_q, state_d;
  logic down_q, fail_q, starts;

  // The transmit clock has as much to forget after a reset.
  assign starts = !forgetting_i && !flushed_i;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StStart:  if (up_i && starts) state_d = StUp;
      StUp:     if (!up_i || lost_i) state_d = StTell;
      StTell:   if (down_q && told_i) state_d = StForget;
      StForget: if (!forgetting_i && quiet_i && flushed_i) state_d = StDown;
      default:  if (up_i && !fail_q) state_d = StUp;
    endcase
  end

  assign enable_o  = state_q == StUp;
  assign down_o    = down_q;
  assign fail_o    = fail_q;
  assign tell_o    = state_q == StTell && down_q;
  assign forget_o  = tell_o && told_i;
  assign settled_o = state_q == StDown || (state_q == StStart && starts);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StStart;
      down_q  <= 1'b0;
      fail_q  <= 1'b0;
    end else begin
      state_q <= state_d;
      fail_q  <= up_i && (fail_q || (enable_o && lost_i));
      // Another clock looks at it, and must have seen it low before it is high again.
      down_q  <= state_d inside {StForget, StDown} || (state_d == StTell && !flushed_i);
    end
  end

endmodule
