/// The receiver's edge of a link, between descrambler and decoder (section 3.2.3): memory messages
/// out, whole Ethernet frames up. docs/internals/edm-phy.md has the rules.
///
/// Two cycles lead from the line to `memory_o` and to the decoder: one for the descrambler, one for
/// the extraction; one for both with `FewStages`. All checks of the wire are made here, so a
/// message that ends in `EndSound` can be trusted. The link fails with the first corrupt block, and
/// nothing behind it passes.
module em_phy_rx
  import em_link_pkg::*;
#(
    /// The line is scrambled; without it a PHY around this one has done that already.
    parameter bit Scrambled = 1'b1,
    /// The extraction is behind the descrambler in the same cycle.
    parameter bit FewStages = 1'b0
) (
    input logic clk_i,
    input logic rst_ni,

    input line_slot_t line_i,
    /// The line has a signal and block lock; without it the link fails.
    input logic       signal_i,

    /// The host or switch gives the link up.
    input  logic        fail_i,
    /// A link that is down may start anew; for the last failure, until it has.
    input  logic        allow_i,
    output link_state_t state_o,
    output rx_events_t  events_o,

    output rx_memory_t memory_o,

    /// Towards the decoder. Valid in each slot, also without a frame: idles then.
    output line_slot_t encoded_o
);

  logic slot, signal;
  logic [63:0] payload;
  block_t arrived;

  if (Scrambled) begin : gen_descrambler
    em_descrambler u_descrambler (
        .clk_i,
        .rst_ni,
        .valid_i  (line_i.valid),
        .line_i   (line_i.block.payload),
        .payload_o(payload)
    );
  end else begin : gen_plain
    assign payload = line_i.block.payload;
  end

  if (FewStages) begin : gen_at_once
    assign slot    = line_i.valid;
    assign signal  = signal_i;
    assign arrived = '{payload: payload, header: line_i.block.header};
  end else begin : gen_stage
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        slot    <= 1'b0;
        signal  <= 1'b1;
        arrived <= Idle;
      end else begin
        slot   <= line_i.valid;
        signal <= signal_i;
        if (line_i.valid) arrived <= '{payload: payload, header: line_i.block.header};
      end
    end
  end

  logic take, no_news, failed, started, standard, corrupt;
  logic control_corrupt, message_corrupt, frame_corrupt;

  em_link_faults u_faults (
      .clk_i,
      .rst_ni,
      .slot_i   (slot),
      .signal_i (signal),
      .block_i  (arrived),
      .fail_i,
      .allow_i,
      .corrupt_i(corrupt),
      .state_o,
      .take_o   (take),
      .idle_o   (no_news),
      .failed_o (failed),
      .started_o(started)
  );

  assign corrupt = message_corrupt || frame_corrupt;

  em_rx_message u_message (
      .clk_i,
      .rst_ni,
      .slot_i    (take),
      .block_i   (arrived),
      .failed_i  (failed),
      .memory_o,
      .standard_o(standard),
      .corrupt_o (message_corrupt),
      .corrupt_control_o(control_corrupt),
      .aborted_o (events_o.message_aborted)
  );

  block_t up;

  em_rx_frame u_frame (
      .clk_i,
      .rst_ni,
      .slot_i     (take),
      .standard_i (standard),
      .idle_i     (no_news),
      .block_i    (arrived),
      .failed_i   (failed || corrupt),
      .block_o    (up),
      .corrupt_o  (frame_corrupt),
      .aborted_o  (events_o.frame_aborted),
      .too_long_o (events_o.frame_too_long),
      .bad_frame_o(events_o.frame_corrupt)
  );

  assign events_o.corrupt       = corrupt;
  assign events_o.remote_failed = failed && !fail_i;
  assign events_o.started       = started;
  assign events_o.corrupt_control = control_corrupt;
  assign events_o.corrupt_message = message_corrupt && !control_corrupt;
  assign events_o.corrupt_frame   = frame_corrupt;

  logic slot_two_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) slot_two_q <= 1'b0;
    else slot_two_q <= slot;
  end

  assign encoded_o = '{valid: slot_two_q, block: up};

endmodule
