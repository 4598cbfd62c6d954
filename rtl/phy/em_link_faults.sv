/// Decides whether a link carries anything, and how it restarts: clause 46's fault signalling, with
/// numbers. docs/internals/edm-faults.md has the rules; `LinkFaults` of crates/edm is the model.
///
/// A slot processes, in this order, the request of the host or switch, the block, and the
/// receiver's finding on the block. Without a signal a slot passes every cycle.
module em_link_faults
  import em_pkg::*;
  import em_link_pkg::*;
(
    input logic clk_i,
    input logic rst_ni,

    input logic   slot_i,
    /// The line has a signal, and block lock.
    input logic   signal_i,
    input block_t block_i,

    /// The link is to fail.
    input  logic        fail_i,
    /// A link that is down may start anew, and goes on trying until it has.
    input  logic        allow_i,
    /// The receiver found the block of this slot to be corrupt.
    input  logic        corrupt_i,
    output link_state_t state_o,

    // These outputs describe the block of this slot:
    /// The link is up, and it is to be received.
    output logic take_o,
    /// It is no news, and counts as an idle.
    output logic idle_o,
    /// The link was up and has failed: by `fail_i`, a fault or the loss of the signal.
    output logic failed_o,
    /// The link came up with it.
    output logic started_o
);

  /// Signals count once they came so often in a row.
  localparam logic [1:0] SignalRepeats = 2'd3;

  typedef struct packed {
    logic        up;
    logic        allowed;
    logic        answered;     // the other knows of this end's last failure
    logic [7:0]  failure;
    logic [7:0]  heard;
    logic        last_valid;
    logic [63:0] last;         // the signal, or idle, that came last
    logic [1:0]  repeats;
  } state_t;

  localparam state_t Start = '{up: 1'b1, default: '0};

  state_t state_q, state_d, wanted, heard_of;
  logic [63:0] payload;
  logic control, numbered, fault, idle, arrived, this_start, fault_ready;
  logic [7:0] fault_failure, fault_heard;

  /// Another failure for the other end: what it answered to the last one is void.
  function automatic state_t forget_peer(state_t state);
    forget_peer            = state;
    forget_peer.failure    = (state.failure == '1) ? 8'd1 : state.failure + 1'b1;
    forget_peer.heard      = '0;
    forget_peer.answered   = 1'b0;
    forget_peer.last_valid = 1'b0;
    forget_peer.repeats    = '0;
  endfunction

  function automatic state_t fail(state_t state);
    fail         = forget_peer(state);
    fail.up      = 1'b0;
    fail.allowed = 1'b0;
  endfunction

  // What the block says. One fault in either column alone has no numbers.
  assign payload       = block_i.payload;
  assign arrived       = signal_i && !(block_i.header == SyncControl &&
      payload == {LocalFault, 8'h00, LocalFault, BlockOrderedOrdered});
  assign control       = arrived && block_i.header == SyncControl;
  assign idle          = arrived && block_i == Idle;
  assign numbered      = control && payload[39:0] == {8'h00, RemoteFault, BlockOrderedOrdered} &&
      payload[63:57] == 7'b1;
  assign fault_ready   = numbered && payload[56];
  assign fault_heard   = numbered ? payload[55:48] : '0;
  assign fault_failure = numbered ? payload[47:40] : '0;

  always_comb begin
    unique case (payload[7:0])
      BlockOrderedOrdered:
      fault = payload[31:8] == RemoteFault || payload[63:40] == RemoteFault;
      BlockControlOrdered: fault = payload[63:40] == RemoteFault;
      BlockOrderedControl, BlockOrderedStart: fault = payload[31:8] == RemoteFault;
      default: fault = 1'b0;
    endcase
    fault = control && fault;
  end

  always_comb begin
    wanted = state_q;
    if (fail_i && state_q.up) wanted = fail(state_q);
    if (allow_i && !wanted.up) wanted.allowed = 1'b1;
  end

  // The other is about to follow: it sent this before it heard that this end is up.
  assign this_start = fault_ready && wanted.failure != '0 && fault_failure == wanted.heard &&
      fault_heard == wanted.failure;

  always_comb begin
    heard_of = wanted;
    if (!slot_i && signal_i) begin
      // Nothing came, and nothing is missing.
    end else if (wanted.up) begin
      if (!arrived || (fault && !this_start)) heard_of = fail(wanted);
    end else if (!fault && !idle) begin
      // From an end that answered, this was a fault, its first idle or a message before an error.
      if (wanted.answered) heard_of = forget_peer(wanted);
      heard_of.last_valid = 1'b0;
    end else begin
      heard_of.last       = payload;
      heard_of.last_valid = 1'b1;
      if (!wanted.last_valid || wanted.last != payload) heard_of.repeats = 2'd1;
      else if (wanted.repeats != SignalRepeats) heard_of.repeats = wanted.repeats + 1'b1;
      if (heard_of.repeats == SignalRepeats) begin
        if (fault) begin
          heard_of.heard    = fault_failure;
          heard_of.answered = fault_failure != '0 && fault_heard == wanted.failure;
        end
        heard_of.up = heard_of.answered && heard_of.allowed && (idle || fault_ready);
      end
    end
  end

  assign take_o    = slot_i && wanted.up && heard_of.up;
  assign idle_o    = fault;
  assign failed_o  = state_q.up && !heard_of.up;
  assign started_o = !wanted.up && heard_of.up;
  assign state_d   = (corrupt_i && heard_of.up) ? fail(heard_of) : heard_of;

  assign state_o.up      = state_q.up;
  assign state_o.ready   = state_q.answered && state_q.allowed;
  assign state_o.heard   = state_q.heard;
  assign state_o.failure = state_q.failure;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) state_q <= Start;
    else state_q <= state_d;
  end

endmodule
