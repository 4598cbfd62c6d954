/// Encodes a chunk of data from its fields and words, block by block, or the notice that a grant
/// stays unused.
///
/// The first block is in the output register one edge after the fields were taken; the others
/// follow as fast as words come. The next fields are taken when the last block is loaded.
module em_encode_chunk
  import em_pkg::*;
  import em_link_pkg::*;
  import em_host_pkg::*;
(
    input logic clk_i,
    input logic rst_ni,
    /// Drops what is under way.
    input logic flush_i,

    input  logic          valid_i,
    output logic          ready_o,
    input  chunk_fields_t fields_i,

    /// Words of the chunk; what is behind its last byte may be anything. The first is there from
    /// the edge on that takes the fields, and each next one from the edge that takes one.
    input  logic [63:0] data_i,
    output logic        data_ready_o,

    output tx_memory_t memory_o,
    input  logic       memory_ready_i
);

  typedef enum logic [1:0] {
    StepFirst,
    StepHeader,  // the /MD/ of an acknowledged write that names it
    StepData,
    StepLast
  } step_e;

  chunk_fields_t fields_q, fields;
  step_e step_q, step_d;
  tx_memory_t out_q, out_d;
  logic [31:0] crc_q, crc;
  bytes_t left_q, left;
  logic [63:0] word, covered, kept;
  logic [3:0] octets;
  logic [7:0] sub_type, tail_octet;
  logic [ContentBits-1:0] first, content;
  block_t control_block;
  logic load, is_write, is_last_word;

  assign fields   = (step_q == StepFirst) ? fields_i : fields_q;
  assign left     = (step_q == StepFirst) ? fields_i.bytes : left_q;
  assign is_write = fields.opcode != OpReadResponse;

  assign ready_o      = step_q == StepFirst && (!out_q.valid || memory_ready_i);
  assign load         = (step_q == StepFirst) ? valid_i && ready_o
                                              : !out_q.valid || memory_ready_i;
  assign data_ready_o = load && step_q == StepData;
  assign memory_o     = out_q;

  always_comb begin
    status_t unused;
    rres_ms_t response;
    wreq_ms_t write;
    unused = '{node: fields.node, id: fields.id, code: StatusNull, default: '0};
    response = '{
        opcode: fields.opcode, node: fields.node, id: fields.id, tail: fields.bytes[2:0],
        last: fields.last, index: fields.index};
    write = '{
        opcode: fields.opcode, tail: fields.bytes[2:0],
        last: fields.last && fields.opcode == OpAcknowledgedWrite,
        address_low: fields.address[31:0]};
    if (fields.null_answer) first = unused;
    else first = is_write ? write : response;
  end

  // The octets behind a chunk's last byte are zero.
  always_comb begin
    for (int unsigned i = 0; i < 8; i++) begin
      kept[8*i+:8] = (left > bytes_t'(i)) ? data_i[8*i+:8] : 8'h0;
    end
  end

  always_comb begin
    acknowledged_t header;
    header = '{
        node: fields.node, id: fields.id, index: fields.index,
        address_high: fields.address[63:40], default: '0};
    word = (step_q == StepHeader) ? header : kept;
  end

  assign is_last_word = left <= bytes_t'(8);
  assign tail_octet   = is_write ? fields.address[39:32] : 8'h0;

  always_comb begin
    crc32_mt_t end_content;
    end_content = '{tail_octet: tail_octet, crc: ~crc};
    sub_type    = SubTerminate;
    content     = end_content;
    if (step_q == StepFirst) begin
      sub_type = fields.null_answer ? SubSingle : SubStart;
      content  = first;
    end
  end

  always_comb begin
    covered = word;
    octets  = 4'd8;
    if (step_q == StepFirst && !valid_i) begin
      octets = '0;
    end else if (step_q == StepFirst) begin
      covered = 64'(first);
      octets  = 4'd5;
    end else if (step_q == StepLast) begin
      covered = 64'(tail_octet);
      octets  = 4'd1;
    end
  end

  em_crc32c u_crc32c (
      .crc_i   ((step_q == StepFirst) ? '1 : crc_q),
      .data_i  (covered),
      .octets_i(octets),
      .crc_o   (crc)
  );

  em_encode_control u_control (
      .sub_type_i(sub_type),
      .content_i (content),
      .block_o   (control_block)
  );

  always_comb begin
    unique case (step_q)
      StepFirst: begin
        if (fields.null_answer) step_d = StepFirst;
        else step_d = (fields.opcode == OpAcknowledgedWrite) ? StepHeader : StepData;
      end
      StepHeader: step_d = StepData;
      StepData:   step_d = is_last_word ? StepLast : StepData;
      default:    step_d = StepFirst;
    endcase
  end

  always_comb begin
    out_d = out_q;
    if (memory_ready_i) out_d.valid = 1'b0;
    if (load) begin
      out_d.valid  = 1'b1;
      out_d.framed = !fields.null_answer;
      out_d.last   = step_d == StepFirst;
      out_d.block  = control_block;
      if (step_q inside {StepHeader, StepData}) begin
        out_d.block = '{payload: word, header: SyncData};
      end
    end
    if (flush_i) out_d.valid = 1'b0;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      step_q <= StepFirst;
      out_q  <= '0;
    end else begin
      out_q <= out_d;
      if (flush_i) step_q <= StepFirst;
      else if (load) step_q <= step_d;
    end
  end

  always_ff @(posedge clk_i) begin
    if (load) begin
      crc_q <= crc;
      if (step_q == StepFirst) fields_q <= fields_i;
      if (step_q == StepFirst) left_q <= fields_i.bytes;
      else if (step_q == StepData) left_q <= left_q - bytes_t'(8);
    end
  end

endmodule
