/// Answers each grant, in order: by the chunk that it allows, or by the notice that it stays
/// unused.
///
/// Three cycles lead from the grant queue to the first block: the message state table, the state of
/// the message, the block itself. The first two cycles of the next grant pass while a chunk goes
/// out.
module em_host_chunk
  import em_pkg::*;
  import em_host_pkg::*;
  import em_host_ports_pkg::*;
#(
    parameter int unsigned Nodes      = 4,
    parameter int unsigned X          = 3,
    parameter int unsigned Entries    = 16,
    parameter int unsigned ChunkBytes = 256,
    localparam int unsigned Rows     = Nodes * X,
    localparam int unsigned RowsBits = $clog2(Rows)
) (
    input logic  clk_i,
    input logic  rst_ni,
    input node_t node_i,
    /// The link is down: nothing is answered until ItemLinkDown has come.
    input logic  down_i,

    input  logic  item_valid_i,
    output logic  item_ready_o,
    input  item_t item_i,

    input  core_to_data_t      core_i,
    input  logic [Entries-1:0] is_open_i,
    input  logic [Entries-1:0] is_ended_i,
    output progress_t          progress_o,

    output logic [RowsBits-1:0] ask_row_o,
    input  arrived_t            arrived_i,
    /// A response that memory refused has used up its grants.
    output logic                reply_valid_o,
    input  logic                reply_ready_i,
    output reply_t              reply_o,

    output chunk_to_encoder_t   encoder_o,
    input  encoder_to_chunk_t   encoder_i,
    /// Row of the response that `encoder_o` reads.
    output logic [RowsBits-1:0] read_row_o
);

  localparam int unsigned EntryBits = $clog2(Entries);
  localparam int unsigned TableBits = $clog2(Nodes * RowsMax);
  localparam bytes_t Chunk = bytes_t'(ChunkBytes);

  /// A response under way.
  typedef struct packed {
    logic   open;
    id_t    id;
    phase_t phase;
    bytes_t bytes;
    bytes_t moved;
  } response_t;

  typedef enum logic [2:0] {
    StClear,  // forgets responses: of all peers, or of one
    StWord,   // tells the core of it
    StIdle,
    StLookup,
    StSend,
    StReply
  } state_e;

  state_e state_q, state_d;
  item_t item_q, item;
  message_id_t id;
  logic [EntryBits-1:0] table_entry, entry_q;
  opened_t opened;
  response_t response_q, found, response_d;
  logic [RowsBits-1:0] row, clear_q, clear_last, row_q;
  bytes_t moved_q[Entries];
  bytes_t moved, bytes, left, due, word_q, start;
  slot_t slot_q;
  logic [Entries-1:0] fresh_q, exposed_q;
  sent_t sent_q;
  logic is_response, is_word, is_hit, is_due, is_withheld, is_here, is_refused, is_last, is_null;
  logic is_sent, sent_valid, fields_valid, read;
  chunk_fields_t fields;
  bytes_t read_word;
  slot_t read_slot;
  logic fire, has_come, sent_q_valid, sent_started_q, resetting_q, response_source_q, item_take;

  assign is_word   = item_i.kind inside {ItemPeerDown, ItemPeerUp, ItemLinkDown};
  assign item      = (state_q == StIdle) ? item_i : item_q;
  assign id        = item.id;
  assign row       = RowsBits'(item.peer) * RowsBits'(X) + RowsBits'(id.row);
  assign item_take = state_q == StIdle && item_valid_i;

  em_host_ram #(
      .Width(EntryBits),
      .Depth(Nodes * RowsMax)
  ) u_table (
      .clk_i,
      .write_i        (core_i.open),
      .write_address_i(TableBits'({core_i.opened.peer, core_i.opened.id[2:0]})),
      .write_data_i   (EntryBits'(core_i.opened.entry)),
      .read_i         (item_take),
      .read_address_i (TableBits'({item.peer, id.row})),
      .read_data_o    (table_entry)
  );

  em_host_ram #(
      .Width($bits(opened_t)),
      .Depth(Entries)
  ) u_opened (
      .clk_i,
      .write_i        (core_i.open),
      .write_address_i(EntryBits'(core_i.opened.entry)),
      .write_data_i   (core_i.opened),
      .read_i         (state_q == StLookup),
      .read_address_i (table_entry),
      .read_data_o    (opened)
  );

  em_host_ram #(
      .Width($bits(response_t)),
      .Depth(Rows)
  ) u_responses (
      .clk_i,
      .write_i        (state_q == StClear || (fire && is_response && is_due)),
      .write_address_i((state_q == StClear) ? clear_q : row),
      .write_data_i   ((state_q == StClear) ? '0 : response_d),
      .read_i         (item_take),
      .read_address_i (row),
      .read_data_o    (found)
  );

  assign ask_row_o = row;

  // ---- what the grant allows ----

  assign is_response = !id.write;
  assign is_hit      = is_response ? response_q.open && response_q.id == item_q.id
                     : is_open_i[entry_q] && opened.peer == item_q.peer && opened.id == item_q.id;
  assign moved       = is_response ? response_q.moved : fresh_q[entry_q] ? '0 : moved_q[entry_q];
  assign bytes       = is_response ? response_q.bytes : opened.bytes;
  assign left        = bytes - moved;
  assign due         = (left > Chunk) ? Chunk : left;
  assign is_last     = due == left;
  // The index of a chunk is counted in whole ones, so a grant of less than is due is none.
  assign is_due      = is_hit && item_q.kind != ItemUnused && due != '0
      && (item_q.kind == ItemRequest || item_q.bytes == due);
  assign has_come    = arrived_i.phase == response_q.phase
      && (arrived_i.done || {arrived_i.words, 3'b0} >= (BytesBits+3)'(moved + due));
  assign is_refused  = arrived_i.done && arrived_i.code != StatusOk;
  assign is_withheld = is_response ? is_refused : is_ended_i[entry_q];
  assign is_here     = !is_response || !is_due || has_come;
  assign is_null     = !is_due || is_withheld;

  assign is_sent      = !is_response && is_due && is_last;
  assign fields_valid = state_q == StSend && is_here && !(is_sent && sent_q_valid) && !down_i;
  assign fire         = fields_valid && encoder_i.fields_ready;
  assign fields       = '{
      null_answer: is_null,
      opcode: is_response ? OpReadResponse
          : opened.acknowledged ? OpAcknowledgedWrite : OpPostedWrite,
      node: is_null ? item_q.peer : node_i, id: item_q.id, index: 15'(moved / Chunk),
      last: is_last, bytes: due, address: opened.address + 64'(moved)};

  always_comb begin
    response_d       = response_q;
    response_d.open  = !is_last;
    response_d.moved = moved + due;
  end

  // ---- data of the chunk that goes out ----

  assign start      = moved >> 3;
  assign read       = fire || encoder_i.data_ready;
  assign read_word  = fire ? start : word_q + 1'b1;
  assign read_slot  = fire ? opened.slot : slot_q;
  assign read_row_o = fire ? row : row_q;
  assign encoder_o  = '{
      fields_valid: fields_valid,
      fields: fields,
      is_response: response_source_q,
      read: read,
      read_word: read_word,
      read_slot: read_slot
  };

  // ---- states ----

  always_comb begin
    state_d      = state_q;
    item_ready_o = 1'b0;
    unique case (state_q)
      StClear: if (clear_q == clear_last) state_d = resetting_q ? StIdle : StWord;
      StWord: begin
        item_ready_o = core_i.word_ready;
        if (core_i.word_ready) state_d = StIdle;
      end
      StIdle:
      if (item_valid_i && is_word) begin
        // What was sent before is told first.
        if (!sent_q_valid) state_d = (item_i.kind == ItemPeerUp) ? StWord : StClear;
      end else begin
        item_ready_o = item_valid_i;
        if (item_valid_i && !down_i) state_d = StLookup;
      end
      StLookup: state_d = StSend;
      StSend: begin
        if (fire) state_d = (is_response && is_due && is_last && is_refused) ? StReply : StIdle;
        if (down_i) state_d = StIdle;
      end
      default:  if (reply_ready_i || down_i) state_d = StIdle;
    endcase
  end

  assign clear_last    = (resetting_q || item_i.kind == ItemLinkDown) ? RowsBits'(Rows - 1)
                       : RowsBits'(item_i.peer) * RowsBits'(X) + RowsBits'(X - 1);
  assign reply_valid_o = state_q == StReply;
  assign reply_o       = '{peer: item_q.peer, id: item_q.id, code: arrived_i.code};
  assign sent_valid    = sent_q_valid && (sent_started_q || down_i);
  assign progress_o    = '{
      sent_valid: sent_valid,
      sent: sent_q,
      word_valid: state_q == StWord,
      word: '{kind: item_i.kind, peer: item_i.peer}
  };

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q      <= StClear;
      resetting_q  <= 1'b1;
      clear_q      <= '0;
      sent_q_valid <= 1'b0;
      fresh_q      <= '0;
      exposed_q    <= '0;
    end else begin
      state_q <= state_d;
      if (state_q == StClear && state_d == StIdle) resetting_q <= 1'b0;
      if (state_q == StClear) clear_q <= clear_q + 1'b1;
      else clear_q <= (item_i.kind == ItemPeerDown) ? RowsBits'(item_i.peer) * RowsBits'(X) : '0;
      if (sent_valid && core_i.sent_ready) sent_q_valid <= 1'b0;
      if (fire && is_sent) sent_q_valid <= 1'b1;
      if (fire && !is_response && is_due) begin
        fresh_q[entry_q] <= 1'b0;
        if (!is_null && opened.acknowledged) exposed_q[entry_q] <= 1'b1;
      end
      if (core_i.open) begin
        fresh_q[EntryBits'(core_i.opened.entry)]   <= 1'b1;
        exposed_q[EntryBits'(core_i.opened.entry)] <= 1'b0;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (item_take) item_q <= item_i;
    if (state_q == StLookup) begin
      entry_q    <= table_entry;
      response_q <= found;
      if (item_q.kind == ItemRequest) begin
        response_q <= '{open: 1'b1, id: item_q.id, phase: item_q.phase, bytes: item_q.bytes,
                        moved: '0};
      end
    end
    if (fire && !is_response && is_due) moved_q[entry_q] <= moved + due;
    if (read) begin
      word_q <= read_word;
      slot_q <= read_slot;
      row_q  <= read_row_o;
    end
    if (fire) response_source_q <= is_response;
    if (fire && is_sent) begin
      sent_started_q <= 1'b0;
      sent_q         <= '{
          entry: entry_t'(entry_q), closes: !opened.acknowledged || is_withheld,
          exposed: exposed_q[entry_q] || (!is_null && opened.acknowledged)};
    end else if (encoder_i.started) begin
      sent_started_q <= 1'b1;
    end
  end

endmodule
