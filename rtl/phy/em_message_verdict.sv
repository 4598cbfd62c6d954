/// Decides whether the block that ends a message makes it sound: the fields of `Message::decode` of
/// crates/wire. Combinational; for a message of one block, or of /MS/ to /MT/.
module em_message_verdict
  import em_pkg::*;
(
    /// The block's sub-type: /N/, /G/, /MST/, or /MT/.
    input logic [            7:0] sub_type_i,
    input logic [ContentBits-1:0] content_i,

    // These inputs describe the blocks before /MT/:
    input logic [ContentBits-1:0] start_i,
    /// /MD/ blocks.
    input logic [            9:0] count_i,
    /// Which octets of the last one are not zero.
    input logic [            7:0] last_octets_i,
    /// Bits of the first one that an acknowledged write must not set.
    input logic                   reserved_i,
    /// The check over all blocks holds.
    input logic                   crc16_i,
    input logic                   crc32_i,

    /// No sender sends it: bits changed on the way.
    output logic corrupt_o,
    /// Sound, but not of this version.
    output logic refused_o
);

  localparam logic [9:0] DataBlocksMax = 10'(ChunkBytesMax / 8);

  notification_t notification;
  grant_t grant;
  status_t status;
  rreq_ms_t read;
  rreq64_mt_t read_end;
  rmwreq_ms_t rmw;
  rres_ms_t response;
  wreq_ms_t write;
  crc32_mt_t long_end;

  assign notification = content_i;
  assign grant        = content_i;
  assign status       = content_i;
  assign read_end     = content_i;
  assign long_end     = content_i;
  assign read         = start_i;
  assign rmw          = start_i;
  assign response     = start_i;
  assign write        = start_i;

  /// Zero, or units of 64 B where bytes would do.
  function automatic logic bad_length(logic [LengthBits-1:0] length);
    return (length[16]) ? length[15:10] == '0 : length == '0;
  endfunction

  /// No data, more than a chunk's, or octets after it that are not zero.
  function automatic logic bad_data(logic [9:0] blocks, logic [2:0] tail, logic [7:0] octets);
    return blocks == '0 || blocks > DataBlocksMax || (tail != '0 && (octets >> tail) != '0);
  endfunction

  logic is_long;
  logic [9:0] operands;
  assign operands = (read.opcode == OpCompareAndSwap) ? 10'd2 : 10'd1;
  assign is_long  = count_i == operands + 1'b1;

  logic framed_corrupt, framed_refused;

  always_comb begin
    framed_corrupt = 1'b0;
    framed_refused = 1'b0;
    unique case (read.opcode)
      OpRead: begin
        framed_corrupt = count_i > 1 || (count_i == 1 && !crc32_i);
        framed_refused = read.reserved != '0 || bad_length(read.length);
        // The excess may not make the length that of fewer units, or of bytes.
        if (count_i == 1 && read_end.reserved != '0) framed_refused = 1'b1;
        if (count_i == 1 && read_end.excess != '0 && (!read.length[16] ||
            read.length[15:0] == 16'd1024)) framed_refused = 1'b1;
      end
      OpReadResponse: begin
        framed_corrupt = !crc32_i;
        framed_refused = long_end.tail_octet != '0 || bad_data(
            count_i, response.tail, last_octets_i);
      end
      OpPostedWrite: begin
        framed_corrupt = !crc32_i;
        framed_refused = write.last || bad_data(count_i, write.tail, last_octets_i);
      end
      OpAcknowledgedWrite: begin
        framed_corrupt = count_i == '0 || !crc32_i;
        framed_refused = reserved_i || bad_data(count_i - 1'b1, write.tail, last_octets_i);
      end
      OpCompareAndSwap, OpFetchAndAdd, OpSwap, OpAnd, OpOr, OpXor: begin
        framed_corrupt = is_long ? !crc32_i : !(count_i == operands && crc16_i);
        framed_refused = rmw.reserved != '0 || (is_long && (rmw.address_low != '0 ||
            long_end.tail_octet != '0));
      end
      default: framed_refused = 1'b1;
    endcase
  end

  always_comb begin
    corrupt_o = 1'b0;
    unique case (sub_type_i)
      SubNotification:
      refused_o = notification.reserved != '0 || notification.reserved_low != '0 || bad_length(
          notification.length);
      SubGrant:
      refused_o = grant.reserved != '0 || grant.reserved_low != '0 || grant.bytes == '0;
      SubSingle: refused_o = status.reserved != '0 || status.code > StatusOverloaded;
      default: begin
        corrupt_o = framed_corrupt;
        refused_o = framed_refused && !framed_corrupt;
      end
    endcase
  end

endmodule
