/// Takes the memory blocks out of a link. Each is passed on in the next cycle, before its message
/// is whole; the verdict of all checks stands with the last one. `Deframer` of crates/wire is the
/// model.
module em_rx_message
  import em_pkg::*;
  import em_link_pkg::*;
(
    input logic clk_i,
    input logic rst_ni,

    /// A block to be received.
    input logic   slot_i,
    input block_t block_i,
    /// The link has failed: what is under way ends.
    input logic   failed_i,

    output rx_memory_t memory_o,

    // These outputs describe the block of this slot:
    /// It is no memory block.
    output logic standard_o,
    /// Bits changed on the way.
    output logic corrupt_o,
    /// Of these: in a control block, seen without its message.
    output logic corrupt_control_o,
    /// The sender gave a message up.
    output logic aborted_o
);

  localparam logic [9:0] BlocksMax = 10'(ChunkBytesMax / 8 + 1);

  logic edm, bad_sync, bad_type, bad_sub_type, bad_crc;
  logic [7:0] sub_type;
  logic [ContentBits-1:0] content;

  em_control_decode u_decode (
      .header_i      (block_i.header),
      .payload_i     (block_i.payload),
      .edm_o         (edm),
      .sub_type_o    (sub_type),
      .content_o     (content),
      .bad_sync_o    (bad_sync),
      .bad_type_o    (bad_type),
      .bad_sub_type_o(bad_sub_type),
      .bad_crc_o     (bad_crc)
  );

  // The message under way: its /MS/, its /MD/ blocks so far, its checks.
  logic open_q, open_d;
  logic [ContentBits-1:0] start_q;
  logic [9:0] count_q;
  logic [7:0] last_octets_q;
  logic reserved_q;
  logic [15:0] crc16_q, crc16;
  logic [31:0] crc32_q, crc32;

  logic data, start, terminate, single, block_bad;
  assign data      = block_i.header == SyncData;
  assign start     = edm && sub_type == SubStart;
  assign terminate = edm && sub_type == SubTerminate;
  assign single    = edm && !start && !terminate;
  assign block_bad = bad_sync || bad_type || bad_sub_type || bad_crc;

  // Both checks run along: over the content of /MS/, the /MD/ blocks, and a part of /MT/. A switch
  // changes the node of a request, so that it counts as zero there.
  logic is_start, node_counts;
  logic [63:0] covered32, covered16;
  logic [3:0] octets32, octets16;
  rreq_ms_t with_node, without_node;

  assign with_node   = content;
  assign is_start    = !data && sub_type == SubStart;
  assign node_counts = !(with_node.opcode inside {
      OpRead, OpCompareAndSwap, OpFetchAndAdd, OpSwap, OpAnd, OpOr, OpXor});

  always_comb begin
    without_node      = with_node;
    without_node.node = '0;
    covered16 = data ? block_i.payload : 64'(is_start ? without_node : with_node);
    covered32 = data ? block_i.payload : 64'(is_start && !node_counts ? without_node : with_node);
    octets16  = data ? 4'd8 : is_start ? 4'd5 : 4'd3;
    octets32  = data ? 4'd8 : is_start ? 4'd5 : 4'd1;
    // Outside of a message the counts are don't-care.
    if (!open_q && !is_start) begin
      octets16 = '0;
      octets32 = '0;
    end
  end

  em_crc16 u_crc16 (
      .crc_i   (is_start ? '1 : crc16_q),
      .data_i  (covered16),
      .octets_i(octets16),
      .crc_o   (crc16)
  );

  em_crc32c u_crc32 (
      .crc_i   (is_start ? '1 : crc32_q),
      .data_i  (covered32),
      .octets_i(octets32),
      .crc_o   (crc32)
  );

  rmwreq40_mt_t end16;
  crc32_mt_t end32;
  logic bad_message, refused;
  assign end16 = content;
  assign end32 = content;

  em_message_verdict u_verdict (
      .sub_type_i   (sub_type),
      .content_i    (content),
      .start_i      (start_q),
      .count_i      (count_q),
      .last_octets_i(last_octets_q),
      .reserved_i   (reserved_q),
      .crc16_i      (end16.crc == ~crc16),
      .crc32_i      (end32.crc == ~crc32),
      .corrupt_o    (bad_message),
      .refused_o    (refused)
  );

  logic corrupt, aborted, member;

  always_comb begin
    corrupt = block_bad;
    aborted = 1'b0;
    member  = 1'b0;
    open_d  = open_q;
    if (open_q) begin
      // Whatever the control block is, the message ends here, well or badly.
      if (data && count_q != BlocksMax) member = 1'b1;
      else if (terminate && !bad_message) member = 1'b1;
      else if (gives_up(block_i)) aborted = 1'b1;
      else corrupt = 1'b1;
      open_d = member && data;
    end else begin
      if (terminate) corrupt = 1'b1;
      member = start || single;
      open_d = start;
    end
  end

  assign standard_o = !open_q && !edm && !block_bad;
  assign corrupt_o  = slot_i && corrupt;
  assign aborted_o  = slot_i && aborted;
  assign corrupt_control_o = slot_i && block_bad;

  // The first /MD/ of an acknowledged write.
  acknowledged_t head;
  assign head = block_i.payload;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) open_q <= 1'b0;
    else if (failed_i || corrupt_o) open_q <= 1'b0;
    else if (slot_i) open_q <= open_d;
  end

  always_ff @(posedge clk_i) begin
    if (slot_i) begin
      crc16_q <= crc16;
      crc32_q <= crc32;
      if (!open_q) begin
        start_q       <= content;
        count_q       <= '0;
        last_octets_q <= '0;
        reserved_q    <= 1'b0;
      end else begin
        count_q <= count_q + 1'b1;
        for (int unsigned i = 0; i < 8; i++) last_octets_q[i] <= block_i.payload[8*i+:8] != '0;
        if (count_q == '0) reserved_q <= head.reserved != '0 || head.reserved_low != '0;
      end
    end
  end

  logic ends;
  assign ends = failed_i || !member || terminate || single;

  rx_memory_t memory_d;
  assign memory_d.valid  = (slot_i && (member || open_q)) || (failed_i && open_q);
  assign memory_d.first  = !open_q;
  assign memory_d.last   = ends;
  assign memory_d.ending = (failed_i || !member) ? EndAborted : refused ? EndRefused : EndSound;
  assign memory_d.block  = block_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) memory_o <= '0;
    else memory_o <= memory_d;
  end

endmodule
