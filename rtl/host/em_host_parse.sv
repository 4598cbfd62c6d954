/// Parses messages from their blocks. Every check was made before; an unsound message is discarded.
///
/// A message is there one edge after its last block. Words of chunks are passed on as they come.
module em_host_parse
  import em_pkg::*;
  import em_link_pkg::*;
  import em_host_pkg::*;
(
    input logic       clk_i,
    input logic       rst_ni,
    /// Nothing is taken while it is low.
    input logic       enable_i,
    input rx_memory_t memory_i,

    // A word of a chunk of a response or of a write; what it belongs to ends with `arrived_o`.
    output logic        response_word_o,
    output logic        write_word_o,
    output logic [63:0] word_o,

    /// The peer of the message that ends in this cycle, and its row.
    output logic     ends_o,
    output node_t    peer_o,
    output row_t     row_o,
    output logic     arrived_o,
    output arrival_t arrival_o
);

  localparam int unsigned CountMax = 3;

  control_t control;
  logic [ContentBits-1:0] content, start_q, start;
  logic [63:0] words_q[CountMax];
  logic [1:0] count_q;  // /MD/ blocks, to CountMax
  logic [BytesBits-4:0] chunk_words_q;
  logic [3:0] opcode;
  logic takes, is_word, is_single, is_write, is_long, is_pair;
  acknowledged_t header;
  arrival_t arrival, arrival_q;
  logic arrived_q;

  assign takes     = enable_i && memory_i.valid;
  assign control   = memory_i.block.payload;
  assign content   = control.content;
  assign start     = memory_i.first ? content : start_q;
  assign opcode    = start[3:0];
  assign is_single = memory_i.first && memory_i.last;
  assign is_word   = takes && !memory_i.first && !memory_i.last;
  assign is_write  = opcode inside {OpPostedWrite, OpAcknowledgedWrite};
  assign header    = words_q[0];
  assign is_pair   = opcode == OpCompareAndSwap;
  assign is_long   = (opcode == OpRead) ? count_q != '0 : count_q > (is_pair ? 2'd2 : 2'd1);

  assign response_word_o = is_word && opcode == OpReadResponse;
  assign write_word_o    = is_word && is_write && (opcode == OpPostedWrite || count_q != '0);
  assign word_o          = memory_i.block.payload;
  assign ends_o          = takes && memory_i.last;
  assign peer_o          = (!is_single && opcode == OpAcknowledgedWrite) ? header.node
                                                                        : start[4+:NodeBits];
  assign row_o           = start[13+:RowBits];

  function automatic bytes_t chunk_bytes(logic [BytesBits-4:0] words, logic [2:0] tail);
    return {words, 3'b0} - ((tail == '0) ? '0 : bytes_t'(8) - bytes_t'(tail));
  endfunction

  always_comb begin
    grant_t grant;
    status_t status;
    rreq_ms_t read;
    rmwreq_ms_t rmw;
    rres_ms_t response;
    wreq_ms_t write;
    grant    = content;
    status   = content;
    read     = start;
    rmw      = start;
    response = start;
    write    = start;
    arrival = '{
        kind: ArriveNone, peer: peer_o, id: start[13+:IdBits], opcode: opcode, default: '0};
    if (is_single && control.sub_type == SubGrant) begin
      // A grant that is not of the class that it says is not one.
      if (grant.response != grant.id[IdBits-1]) arrival.kind = ArriveGrant;
      arrival.bytes = grant.bytes;
    end else if (is_single && control.sub_type == SubSingle) begin
      arrival.code = status.code;
      if (status.opcode != '0) arrival.kind = ArriveStatus;
      else if (status.code == StatusLinkDisabled) arrival.kind = ArrivePeerDown;
      else if (status.code == StatusOk) arrival.kind = ArrivePeerUp;
    end else if (!is_single && opcode == OpRead) begin
      arrival.kind     = ArriveRequest;
      arrival.too_long = read.length[LengthBits-1];
      arrival.bytes    = read.length[BytesBits-1:0];
      arrival.address  = is_long ? words_q[0] : 64'(content);
      if (is_long) arrival.bytes = arrival.bytes - bytes_t'(content[5:0]);
    end else if (!is_single && opcode == OpReadResponse) begin
      arrival.kind  = ArriveResponse;
      arrival.index = response.index;
      arrival.last  = response.last;
      arrival.bytes = chunk_bytes(chunk_words_q, response.tail);
    end else if (!is_single && is_write) begin
      arrival.kind    = ArriveWrite;
      arrival.last    = write.last || opcode == OpPostedWrite;
      arrival.bytes   = chunk_bytes(chunk_words_q, write.tail);
      arrival.address = 64'({content[7:0], write.address_low});
      if (opcode == OpAcknowledgedWrite) begin
        arrival.id             = header.id;
        arrival.index          = header.index;
        arrival.address[63:40] = header.address_high;
      end
    end else if (!is_single) begin
      arrival.kind        = ArriveRequest;
      arrival.bytes       = bytes_t'(8);
      arrival.address     = is_long ? words_q[0] : 64'({content[23:0], rmw.address_low});
      arrival.operands[0] = is_long ? words_q[1] : words_q[0];
      arrival.operands[1] = is_long ? words_q[2] : words_q[1];
    end
    if (memory_i.ending != EndSound) arrival.kind = ArriveNone;
  end

  assign arrived_o = arrived_q;
  assign arrival_o = arrival_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      count_q       <= '0;
      chunk_words_q <= '0;
      arrived_q     <= 1'b0;
    end else begin
      arrived_q <= ends_o;
      if (!enable_i || (takes && memory_i.first)) begin
        count_q       <= '0;
        chunk_words_q <= '0;
      end else if (is_word) begin
        if (count_q != 2'(CountMax)) count_q <= count_q + 1'b1;
        if (response_word_o || write_word_o) chunk_words_q <= chunk_words_q + 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (takes && memory_i.first) start_q <= content;
    if (is_word && count_q != 2'(CountMax)) words_q[count_q] <= memory_i.block.payload;
    if (ends_o) arrival_q <= arrival;
  end

endmodule
