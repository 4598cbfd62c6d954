/// Stores an Ethernet frame until it is whole, and up to two idles of the gap after it.
/// `FrameBuffer` of crates/edm is the model.
///
/// Blocks go out, one a slot, while whole frames are there. The content never exceeds the longest
/// frame and a gap, since as many blocks leave as arrive. The part of a longer frame that does not
/// fit is not stored.
module em_frame_buffer
  import em_link_pkg::*;
#(
    parameter int unsigned BytesMax = FrameBytesMax,
    /// Idles kept of the gap after a frame: as many as a decoder needs.
    localparam int unsigned GapBlocks = 2,
    /// /S/, data, /T/, and one more for a start on lane 4.
    localparam int unsigned Depth = BytesMax / 8 + 3 + GapBlocks,
    localparam int unsigned IndexWidth = $clog2(Depth)
) (
    input logic clk_i,
    input logic rst_ni,

    input logic   slot_i,
    /// A block of the frame under way.
    input logic   push_i,
    input block_t block_i,
    /// The block is its last, and the frame is to be kept.
    input logic   commit_i,
    /// The frame under way is to be dropped, with the block.
    input logic   drop_i,
    /// A slot between frames.
    input logic   gap_i,
    /// The link has failed: everything is dropped.
    input logic   clear_i,

    /// In the cycle after the slot.
    output logic   valid_o,
    output block_t block_o
);

  localparam logic [IndexWidth-1:0] IndexLast = IndexWidth'(Depth - 1);
  typedef logic [IndexWidth:0] count_t;

  block_t blocks_q[Depth];
  logic [IndexWidth-1:0] read_q, start_q, write_q, at;
  /// Blocks of whole frames, and after those of the frame under way.
  count_t whole_q, partial_q, kept, count;
  logic [1:0] gap_q;
  logic write, gap, add, pop;
  /// No room for another block.
  logic full_q;

  function automatic logic [IndexWidth-1:0] next(logic [IndexWidth-1:0] index);
    return (index == IndexLast) ? '0 : index + 1'b1;
  endfunction

  // A frame is dropped first: the slot may be one of the gap after the frame before it.
  assign at    = drop_i ? start_q : write_q;
  assign kept  = drop_i ? '0 : partial_q;
  assign gap   = gap_i && gap_q != '0 && whole_q != '0;
  assign write = slot_i && (gap || (push_i && !drop_i && !full_q));
  // What makes blocks whole comes late: all it decides is prepared.
  assign add   = commit_i || gap;
  assign pop   = slot_i && (whole_q != '0 || commit_i) && !clear_i;
  assign count = whole_q + kept + count_t'(write);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      read_q    <= '0;
      start_q   <= '0;
      write_q   <= '0;
      whole_q   <= '0;
      partial_q <= '0;
      gap_q     <= '0;
      full_q    <= 1'b0;
      valid_o   <= 1'b0;
    end else begin
      valid_o <= pop;
      if (clear_i) begin
        start_q   <= read_q;
        write_q   <= read_q;
        whole_q   <= '0;
        partial_q <= '0;
        full_q    <= 1'b0;
      end else if (slot_i) begin
        if (pop) read_q <= next(read_q);
        whole_q <= add ? count - 1'b1 : (whole_q != '0) ? whole_q - 1'b1 : '0;
        full_q  <= count - count_t'(pop) == count_t'(Depth);
        if (commit_i) gap_q <= 2'(GapBlocks);
        else if (gap) gap_q <= gap_q - 1'b1;
        write_q   <= write ? next(at) : at;
        partial_q <= add ? '0 : kept + count_t'(write);
        if (add) start_q <= write ? next(at) : at;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (write) blocks_q[at] <= gap ? Idle : block_i;
    block_o <= blocks_q[read_q];
  end

endmodule
