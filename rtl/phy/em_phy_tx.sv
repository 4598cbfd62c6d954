/// The transmitter's edge of a link, between encoder and scrambler (section 3.2.3): memory blocks
/// join the blocks of Ethernet frames. docs/internals/edm-phy.md has the rules.
///
/// Two cycles lead from `memory_i` to the line: the register behind the multiplexer and the
/// register behind the scrambler; one with `FewStages`. A slot is a cycle with `slot_i`; without it
/// nothing moves, on either side.
module em_phy_tx
  import em_pkg::*;
  import em_link_pkg::*;
#(
    /// The line is scrambled; without it a PHY around this one does that.
    parameter bit Scrambled = 1'b1,
    /// The scrambler is behind the multiplexer in the same cycle.
    parameter bit FewStages = 1'b0
) (
    input logic clk_i,
    input logic rst_ni,

    /// A block leaves: always, or as the gearbox behind lets it.
    input logic slot_i,
    /// Memory goes whenever it has something; otherwise both share the slots.
    input logic strict_i,

    /// From em_link_faults, in this clock.
    input link_state_t state_i,

    /// The head of what waits. A framed unit must have its next block in each slot until its last.
    input  tx_memory_t memory_i,
    output logic       memory_ready_o,

    // From the encoder: for each slot with `encoder_ready_o` one block, an idle between frames.
    output logic       encoder_ready_o,
    input  line_slot_t encoded_i,

    /// Pulses: a block of the encoder that was not asked for, a unit that ran dry. Either is lost.
    output logic encoder_overrun_o,
    output logic memory_dry_o,

    output line_slot_t line_o
);

  /// Idles that an end sends before anything else once it is up: one more than the other must see.
  localparam logic [2:0] FirstIdles = 3'd4;

  logic [2:0] idles_q;
  logic silent, starts, frame_waits, memory;
  block_t fault, frame_block, chosen, line;
  logic line_valid;

  // Before the memory's first block, the first idles; while the link is down, faults.
  assign silent = !state_i.up || idles_q != '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) idles_q <= '0;
    else if (!state_i.up) idles_q <= FirstIdles;
    else if (slot_i && idles_q != '0) idles_q <= idles_q - 1'b1;
  end

  // A frame of which a part was dropped is dropped to its end: its rest would be no frame.
  logic cut_q, offered;
  assign frame_waits = offered && (!cut_q || starts);
  assign starts      = frame_block.header == SyncControl && has_start(frame_block.payload[7:0]);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) cut_q <= 1'b0;
    else if (slot_i) cut_q <= silent || (cut_q && !(offered && starts));
  end

  em_tx_buffer u_buffer (
      .clk_i,
      .rst_ni,
      .slot_i,
      .ready_o      (encoder_ready_o),
      .valid_i      (encoded_i.valid),
      .block_i      (encoded_i.block),
      .overrun_o    (encoder_overrun_o),
      .frame_waits_o(offered),
      .block_o      (frame_block),
      // Memory takes the slot of a gap, and leaves a frame's block where it is.
      .take_i       (!(memory && frame_waits))
  );

  em_tx_arbiter u_arbiter (
      .clk_i,
      .rst_ni,
      .slot_i,
      .strict_i,
      .down_i         (silent),
      .frame_waits_i  (frame_waits),
      .memory_valid_i (memory_i.valid),
      .memory_framed_i(memory_i.framed),
      .memory_last_i  (memory_i.last),
      .memory_o       (memory)
  );

  assign memory_ready_o = slot_i && memory;
  assign memory_dry_o   = slot_i && memory && !memory_i.valid;

  // The other end's fault in the first column, and in the second what this end knows.
  assign fault = '{
      header: SyncControl,
      payload: {
        {7'b1, state_i.ready}, state_i.heard, state_i.failure,
        {8'h00, RemoteFault, BlockOrderedOrdered}
      }
  };

  always_comb begin
    if (!state_i.up) chosen = fault;
    else if (silent) chosen = Idle;
    else if (memory) chosen = memory_i.valid ? memory_i.block : Abort;
    else if (frame_waits) chosen = frame_block;
    else chosen = Idle;
  end

  if (FewStages) begin : gen_at_once
    assign line       = chosen;
    assign line_valid = slot_i;
  end else begin : gen_stage
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        line       <= Idle;
        line_valid <= 1'b0;
      end else begin
        line_valid <= slot_i;
        if (slot_i) line <= chosen;
      end
    end
  end

  logic [63:0] scrambled;

  if (Scrambled) begin : gen_scrambler
    em_scrambler u_scrambler (
        .clk_i,
        .rst_ni,
        .valid_i  (line_valid),
        .payload_i(line.payload),
        .line_o   (scrambled)
    );
  end else begin : gen_plain
    assign scrambled = line.payload;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) line_o <= '{valid: 1'b0, block: Idle};
    else line_o <= '{valid: line_valid, block: '{payload: scrambled, header: line.header}};
  end

endmodule
