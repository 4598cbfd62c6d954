/// Arbitrates slot by slot between memory blocks and blocks of Ethernet frames. `TxArbiter` of
/// crates/edm is the model, docs/internals/edm-phy.md has the bounds.
///
/// Fair: single blocks alternate with a frame's blocks. After a unit of k blocks, which nothing may
/// interrupt, frames may take up to k slots before the next unit. The gap between two frames counts
/// as taken, and the debt to frames is cleared once they have offered nothing for longer. Strict:
/// memory goes first whenever it has something to send.
module em_tx_arbiter #(
    /// Blocks of the longest unit: a page and an acknowledged write's head.
    localparam int unsigned UnitBlocksMax = em_pkg::ChunkBytesMax / 8 + 3
) (
    input logic clk_i,
    input logic rst_ni,

    input logic slot_i,
    input logic strict_i,
    /// The link is down: memory sends nothing, and the unit under way is forgotten.
    input logic down_i,

    input  logic frame_waits_i,
    input  logic memory_valid_i,
    /// The block is of a unit of several.
    input  logic memory_framed_i,
    /// The block is the unit's last.
    input  logic memory_last_i,
    /// In this slot a memory block goes, or else a frame's, or else an idle.
    output logic memory_o
);

  localparam int unsigned OwedWidth = $clog2(UnitBlocksMax + 1);
  /// Slots without data that the gap of 12 octets between two frames can take.
  localparam logic [1:0] GapSlots = 2'd2;

  logic open_q, memory_was_last_q, may_send;
  logic [OwedWidth-1:0] owed_q;
  logic [1:0] unused_q, unused_d;

  assign may_send = owed_q == '0 || strict_i ||
      (!memory_framed_i && !(frame_waits_i && memory_was_last_q));
  assign memory_o = !down_i && (open_q || (memory_valid_i && may_send));
  assign unused_d = frame_waits_i ? '0 : (unused_q > GapSlots) ? unused_q : unused_q + 1'b1;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      open_q            <= 1'b0;
      memory_was_last_q <= 1'b0;
      owed_q            <= '0;
      unused_q          <= GapSlots + 1'b1;
    end else if (slot_i) begin
      open_q            <= memory_o && memory_valid_i && !memory_last_i;
      memory_was_last_q <= memory_o;
      unused_q          <= unused_d;
      if (strict_i || unused_d > GapSlots) owed_q <= '0;
      else if (memory_o && frame_waits_i) owed_q <= owed_q + OwedWidth'(owed_q != '1);
      else if (owed_q != '0) owed_q <= owed_q - 1'b1;
    end
  end

endmodule
