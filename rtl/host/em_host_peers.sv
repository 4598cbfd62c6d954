/// The memory side's state of its peers: the last id of each row, to detect duplicates, and the
/// progress of each write. It decides on requests, chunks of writes and grants, in the cycle after
/// they arrived.
module em_host_peers
  import em_pkg::*;
  import em_host_pkg::*;
#(
    parameter int unsigned Nodes        = 4,
    parameter int unsigned X            = 3,
    parameter int unsigned MessageBytes = 1024,
    parameter int unsigned ChunkBytes   = 256
) (
    input logic  clk_i,
    input logic  rst_ni,
    input node_t node_i,
    /// Forgets all peers. None is known then before the switch says so.
    input  logic forget_i,
    output logic forgetting_o,

    input logic     ends_i,
    input node_t    peer_i,
    input logic     arrived_i,
    input arrival_t arrival_i,

    /// The words of the chunk found room; its command would.
    input  logic fits_i,
    input  logic command_ready_i,
    /// The message is of a peer that is known.
    output logic known_o,

    output logic     item_valid_o,
    output item_t    item_o,
    output logic     command_valid_o,
    output command_t command_o,
    output logic     reply_valid_o,
    output reply_t   reply_o,
    // For counters: a message that had no effect, by cause.
    output logic     duplicate_o,
    output logic     dropped_o
);

  localparam int unsigned IndexBits = (Nodes > 1) ? $clog2(Nodes) : 1;
  typedef logic [IndexBits-1:0] index_t;

  /// Of a row of reads and RMWs.
  typedef struct packed {
    logic        seen;
    generation_t generation;
    phase_t      phase;
  } served_t;

  /// Of a row of writes.
  typedef struct packed {
    logic        seen;
    generation_t generation;
    logic        whole;       // its last chunk has come
    logic        broken;      // a chunk is missing: the rest is not stored
    logic        overloaded;  // because there was no room
    offset_t     received;
  } stored_t;

  typedef struct packed {
    logic                       down;
    served_t [X-1:0]            served;
    stored_t [RowsMax-1:0]      stored;
  } peer_t;

  peer_t word, word_d;
  served_t served;
  stored_t stored, stored_d;
  message_id_t id;
  index_t walk_q;
  logic walking_q, walk_writes_q, resetting_q, writes, is_new, in_range;
  logic is_posted, is_acknowledged, is_request, takes_request, stores, is_last_walk, row_served;
  offset_t offset;

  function automatic index_t index(node_t node);
    return ((NodeBits + 1)'(node) < (NodeBits + 1)'(Nodes)) ? index_t'(node) : '0;
  endfunction

  /// Generations are compared as serial numbers: up to eight ahead is new.
  function automatic logic is_after(generation_t generation, generation_t last);
    generation_t ahead;
    ahead = generation - last;
    return ahead != '0 && ahead <= generation_t'(8);
  endfunction

  em_host_ram #(
      .Width($bits(peer_t)),
      .Depth(Nodes)
  ) u_peers (
      .clk_i,
      .write_i        (walking_q ? walk_writes_q : writes),
      .write_address_i(walking_q ? walk_q : index(arrival_i.peer)),
      .write_data_i   (word_d),
      .read_i         (walking_q || ends_i),
      .read_address_i (walking_q ? walk_q : index(peer_i)),
      .read_data_o    (word)
  );

  assign id              = arrival_i.id;
  assign in_range        = (NodeBits + 1)'(arrival_i.peer) < (NodeBits + 1)'(Nodes)
      && arrival_i.peer != node_i;
  assign known_o         = in_range && !word.down;
  assign is_posted       = arrival_i.opcode == OpPostedWrite;
  assign is_acknowledged = arrived_i && arrival_i.kind == ArriveWrite && !is_posted && known_o
      && id.write && arrival_i.bytes != '0;

  // ---- requests ----

  assign row_served    = (RowBits + 1)'(id.row) < (RowBits + 1)'(X);
  assign served        = row_served ? word.served[id.row] : '0;
  assign is_request    = arrived_i && arrival_i.kind == ArriveRequest && known_o
      && !id.write && row_served && arrival_i.bytes != '0;
  assign is_new        = !served.seen || is_after(id.generation, served.generation);
  assign takes_request = is_request && is_new && command_ready_i && !arrival_i.too_long
      && arrival_i.bytes <= bytes_t'(MessageBytes);

  // ---- chunks of writes ----

  assign offset = offset_t'(arrival_i.index) * offset_t'(ChunkBytes);

  always_comb begin
    stored   = word.stored[id.row];
    stored_d = stored;
    stores   = 1'b0;
    if (!stored.seen || is_after(id.generation, stored.generation)) begin
      stored_d = '{seen: 1'b1, generation: id.generation, default: '0};
    end
    if (stored_d.generation == id.generation && !stored_d.whole && offset >= stored_d.received)
    begin
      if (offset != stored_d.received) stored_d.broken = 1'b1;
      if (!stored_d.broken && !(fits_i && command_ready_i)) begin
        {stored_d.broken, stored_d.overloaded} = '1;
      end
      stores           = !stored_d.broken;
      stored_d.whole   = arrival_i.last;
      stored_d.received = stored_d.received + offset_t'(arrival_i.bytes);
    end else begin
      stored_d = stored;
    end
  end

  // ---- what comes of it ----

  always_comb begin
    word_d = word;
    writes = 1'b0;
    if (takes_request) begin
      writes                 = 1'b1;
      word_d.served[id.row] = '{seen: 1'b1, generation: id.generation, phase: served.phase + 1'b1};
    end
    if (is_acknowledged) begin
      writes                = 1'b1;
      word_d.stored[id.row] = stored_d;
    end
    if (arrived_i && in_range && arrival_i.kind inside {ArrivePeerDown, ArrivePeerUp}) begin
      writes      = 1'b1;
      word_d.down = arrival_i.kind == ArrivePeerDown;
    end
    if (walking_q || (writes && word_d.down)) begin
      word_d.stored = '0;
      word_d.down   = !resetting_q;
      for (int unsigned i = 0; i < X; i++) begin
        word_d.served[i].seen = 1'b0;
        if (resetting_q) word_d.served[i] = '0;
      end
    end
  end

  always_comb begin
    item_valid_o = 1'b0;
    item_o       = '{kind: ItemUnused, peer: arrival_i.peer, id: arrival_i.id,
                     bytes: arrival_i.bytes, phase: served.phase + 1'b1};
    unique case (arrival_i.kind)
      ArriveGrant: begin
        item_valid_o = arrived_i;
        if (known_o) item_o.kind = ItemGrant;
      end
      ArriveRequest: begin
        item_valid_o = arrived_i;
        if (takes_request) item_o.kind = ItemRequest;
      end
      ArrivePeerDown: begin
        item_valid_o = arrived_i && in_range;
        item_o.kind  = ItemPeerDown;
      end
      ArrivePeerUp: begin
        item_valid_o = arrived_i && in_range;
        item_o.kind  = ItemPeerUp;
      end
      default: ;
    endcase
  end

  assign command_valid_o = takes_request || (is_acknowledged && stores)
      || (arrived_i && arrival_i.kind == ArriveWrite && is_posted && fits_i && command_ready_i);
  assign command_o = '{
      opcode: arrival_i.opcode, peer: arrival_i.peer, id: arrival_i.id,
      phase: served.phase + 1'b1, first: offset == '0, last: arrival_i.last,
      bytes: arrival_i.bytes, address: arrival_i.address, operands: arrival_i.operands};

  // A write with a hole is answered by its last chunk; a request that no buffer holds at once.
  always_comb begin
    reply_valid_o = 1'b0;
    reply_o       = '{peer: arrival_i.peer, id: arrival_i.id, code: StatusOverloaded};
    if (is_acknowledged && arrival_i.last && stored_d.broken && stored_d.whole && !stored.whole)
    begin
      reply_valid_o = 1'b1;
      if (!stored_d.overloaded) reply_o.code = StatusIncomplete;
    end
    if (is_request && is_new && command_ready_i && !takes_request) reply_valid_o = 1'b1;
  end

  assign duplicate_o = (is_request && !is_new)
      || (is_acknowledged && !stores && !stored_d.broken);
  assign dropped_o   = arrived_i && arrival_i.kind == ArriveWrite && !command_valid_o;

  // ---- forgetting ----

  assign forgetting_o = walking_q;
  assign is_last_walk = walk_writes_q && walk_q == index_t'(Nodes - 1);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      walking_q     <= 1'b1;
      walk_writes_q <= 1'b0;
      walk_q        <= '0;
      resetting_q   <= 1'b1;
    end else if (!walking_q) begin
      walking_q <= forget_i;
    end else begin
      walk_writes_q <= !walk_writes_q;
      if (walk_writes_q) walk_q <= is_last_walk ? '0 : walk_q + 1'b1;
      if (is_last_walk) {walking_q, resetting_q} <= '0;
    end
  end

endmodule
