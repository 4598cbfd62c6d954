/// The receiver's Ethernet side. A frame's blocks wait for their /T/ and the check of their
/// sequence, and go up in consecutive slots, at the pace of the line. Everything else has become
/// idles, except ordered sets. `RxExtractor` of crates/edm is the model.
module em_rx_frame
  import em_pkg::*;
  import em_link_pkg::*;
(
    input logic clk_i,
    input logic rst_ni,

    /// A block to be received.
    input logic   slot_i,
    /// It is no memory block, and sound as far as a block can tell.
    input logic   standard_i,
    /// It is to count as an idle, an ordered set that it is.
    input logic   idle_i,
    input block_t block_i,
    /// The link has failed, or fails in this slot: all frames are dropped.
    input logic   failed_i,

    /// Towards the decoder, in the next cycle.
    output block_t block_o,

    // These outputs describe the block of this slot:
    /// Bits changed on the way.
    output logic corrupt_o,
    /// The frame under way was given up by its sender, or cut by an error.
    output logic aborted_o,
    output logic too_long_o,
    /// Its preamble or its check sequence is wrong.
    output logic bad_frame_o
);

  localparam int unsigned PreambleBytes = 7;
  localparam logic [55:0] Preamble = 56'hd5_5555_5555_5555;
  /// Octets after the start character, longest and shortest.
  localparam logic [13:0] OctetsMax = 14'(FrameBytesMax + PreambleBytes);
  localparam logic [13:0] OctetsMin = 14'(PreambleBytes + 4);
  /// The register of the check after a frame and its check sequence.
  localparam logic [31:0] Residue = 32'hdebb_20e3;

  logic in_frame_q, in_frame_d, preamble_q, preamble_d, lane4_q, too_long_q, too_long_d;
  logic [13:0] octets_q, octets_d;
  logic [31:0] crc_q, crc_d;

  // By header and type alone, which are there early; whether the block is sound comes late.
  logic data, control, start, start4, terminate;
  logic [7:0] block_type;
  assign block_type = block_i.payload[7:0];
  assign data       = block_i.header == SyncData;
  assign control    = block_i.header == SyncControl;
  assign start      = control && has_start(block_type) && !idle_i;
  assign start4     = start && block_type != BlockStart;
  assign terminate  = control && has_terminate(block_type);

  // After a start on lane 4, the first block has the rest of the preamble in its lower half.
  logic [63:0] covered;
  logic [3:0] covered_octets;
  logic upper_half;
  assign upper_half = lane4_q && data;

  always_comb begin
    covered        = terminate ? block_i.payload >> 8 : block_i.payload;
    covered_octets = terminate ? 4'(terminate_octets(block_type)) : 4'd8;
    if (upper_half) begin
      covered        = block_i.payload >> 32;
      covered_octets = 4'd4;
    end
    // Outside of a frame the count is a don't-care.
    if (!in_frame_q) covered_octets = '0;
  end

  em_crc32 u_crc (
      .crc_i   (crc_q),
      .data_i  (covered),
      .octets_i(covered_octets),
      .crc_o   (crc_d)
  );

  always_comb begin
    preamble_d = preamble_q;
    octets_d   = octets_q + (terminate ? 14'(terminate_octets(block_type)) : 14'd8);
    if (upper_half) preamble_d = preamble_q && block_i.payload[31:0] == Preamble[55:24];
    if (start) begin
      preamble_d = start4 ? block_i.payload[63:40] == Preamble[23:0] :
          block_i.payload[63:8] == Preamble;
      octets_d   = start4 ? 14'd3 : 14'(PreambleBytes);
    end
    too_long_d = !start && (too_long_q || octets_d > OctetsMax);
  end

  logic ends, misplaced, whole, sound, kept;
  assign ends      = terminate || gives_up(block_i);
  // A frame's block without a frame, or within one a block that ends nothing.
  assign misplaced = in_frame_q ? !data && !ends : data || terminate;
  assign whole     = in_frame_q && terminate;
  assign sound     = preamble_d && crc_d == Residue && octets_d >= OctetsMin;
  assign kept      = whole && !too_long_d;

  logic standard;
  assign in_frame_d  = start || (in_frame_q && !ends);
  assign standard    = slot_i && standard_i;
  assign too_long_o  = standard && whole && too_long_d;
  assign bad_frame_o = standard && kept && !sound;
  assign aborted_o   = in_frame_q && (failed_i ? !bad_frame_o : standard && ends && !whole);
  assign corrupt_o   = standard && (misplaced || (kept && !sound));

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) in_frame_q <= 1'b0;
    else if (failed_i) in_frame_q <= 1'b0;
    else if (standard) in_frame_q <= in_frame_d;
  end

  always_ff @(posedge clk_i) begin
    if (standard && (start || in_frame_q)) begin
      preamble_q <= preamble_d;
      octets_q   <= octets_d;
      too_long_q <= too_long_d;
      lane4_q    <= start4;
      crc_q      <= start ? '1 : crc_d;
    end
  end

  // Ordered sets pass where no frame goes up.
  logic up, other_q;
  block_t up_block, other_block_q;

  em_frame_buffer u_buffer (
      .clk_i,
      .rst_ni,
      .slot_i,
      .push_i  (standard_i && (start || in_frame_q)),
      .block_i,
      .commit_i(standard_i && kept),
      .drop_i  (standard_i && in_frame_q && ends && !kept),
      .gap_i   (standard_i ? !in_frame_d && !terminate : !in_frame_q),
      .clear_i (failed_i),
      .valid_o (up),
      .block_o (up_block)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) other_q <= 1'b0;
    else other_q <= standard && control && !idle_i && !failed_i && block_type inside {
          BlockControlOrdered, BlockOrderedControl, BlockOrderedOrdered};
  end

  always_ff @(posedge clk_i) other_block_q <= block_i;

  assign block_o = up ? up_block : other_q ? other_block_q : Idle;

endmodule
