/// The messages that one port asked for in one flow: a ring of X for each peer, in memories.
///
/// With a message goes what its next grant makes of it, so that nothing has to be computed between
/// the read and the mark: a message is read in the grant cycle, marked in the next one, and what is
/// left of it is written back by the end of the one after, before it can be read again.
module em_size_class_message_bank
  import em_sched_pkg::*;
#(
    parameter int unsigned Ports = 8,
    parameter int unsigned Depth = 3,
    parameter int unsigned TagWidth = 16,
    parameter int unsigned ChunkBytes = 256,
    parameter int unsigned ChunkOverheadBlocks = 2,
    parameter int unsigned SlotCycles = 1,
    localparam int unsigned PortWidth = $clog2(Ports),
    localparam int unsigned CountWidth = $clog2(Depth + 1)
) (
    input logic clk_i,

    /// A bit for the peer, and for each peer where its next message goes. What is refused is not
    /// written: a cycle later, which is before it can be read.
    input logic [Ports-1:0]      insert_i,
    input logic                  refused_i,
    input logic [CountWidth-1:0] insert_slot_i[Ports],
    input demand_t               insert_demand_i,
    input logic [TagWidth-1:0]   insert_tag_i,

    /// In the grant cycle: a bit for the peer, and for each peer where its first message is and
    /// whether that was granted before.
    input  logic                  read_i,
    input  logic [Ports-1:0]      read_peer_i,
    input  logic [CountWidth-1:0] read_slot_i[Ports],
    input  logic [Ports-1:0]      read_started_i,
    /// The number of that peer.
    output logic [PortWidth-1:0]  peer_o,

    // In the cycle after it.
    /// What a grant says of it: tag, bytes, first, last.
    output logic [TagWidth+BytesBits+1:0] offer_o,
    output logic                          last_o,
    /// The cycles that it takes both ports, less one.
    output left_t                         busy_less_o,
    output size_class_t                   after_class_o,
    output size_class_t                   second_class_o,
    /// It is granted.
    input  logic                          take_i
);

  localparam bytes_t Chunk = bytes_t'(ChunkBytes);
  localparam int unsigned BusyCyclesMax = ((ChunkBytes + 7) / 8 + ChunkOverheadBlocks) * SlotCycles;
  localparam int unsigned BusyBits = $clog2(BusyCyclesMax);

  typedef logic [CountWidth-1:0] count_t;

  /// What the next grant makes of a message.
  typedef struct packed {
    logic                last;
    logic [BusyBits-1:0] busy_less;
    size_class_t         after_class;
  } outcome_t;

  typedef struct packed {
    bytes_t              size;
    logic [TagWidth-1:0] tag;
    size_class_t         size_class;
    outcome_t            outcome;
  } message_t;

  typedef struct packed {
    bytes_t   bytes;
    outcome_t outcome;
  } remaining_t;

  /// After its last chunk the message is removed; its class field is don't-care. `beyond` is the
  /// bytes less a chunk, computed beside them, so that no logarithm waits for a subtraction.
  function automatic outcome_t outcome_of(bytes_t bytes, bytes_t beyond, log_t size_log);
    outcome_of.last        = bytes <= Chunk;
    outcome_of.busy_less   = BusyBits'(BusyCyclesMax - 1);
    if (bytes <= Chunk) begin
      outcome_of.busy_less = BusyBits'((blocks_of(bytes) + bytes_t'(ChunkOverheadBlocks))
                                       * bytes_t'(SlotCycles) - 1'b1);
    end
    outcome_of.after_class = size_class(log2_eighths(beyond), size_log);
  endfunction

  // Number and slot of the one peer that has its bit set.
  logic [PortWidth-1:0] insert_peer, read_peer;
  count_t insert_slot, read_slot;

  always_comb begin
    {insert_peer, insert_slot, read_peer, read_slot} = '0;
    for (int unsigned o = 0; o < Ports; o++) begin
      insert_peer |= PortWidth'(o) & {PortWidth{insert_i[o]}};
      insert_slot |= insert_slot_i[o] & {CountWidth{insert_i[o]}};
      read_peer |= PortWidth'(o) & {PortWidth{read_peer_i[o]}};
      read_slot |= read_slot_i[o] & {CountWidth{read_peer_i[o]}};
    end
  end

  assign peer_o = read_peer;

  message_t inserted, messages[Depth], head;
  outcome_t outcome;
  remaining_t remaining, left;

  assign inserted.size       = insert_demand_i.bytes;
  assign inserted.tag        = insert_tag_i;
  assign inserted.size_class = insert_demand_i.size_class;
  assign inserted.outcome    = outcome_of(insert_demand_i.bytes, insert_demand_i.beyond,
                                          insert_demand_i.size_log);

  logic [Depth-1:0] write_q;
  logic [Ports-1:0] written_q;
  logic [PortWidth-1:0] write_peer_q;
  message_t write_data_q;

  always_ff @(posedge clk_i) begin
    for (int unsigned slot = 0; slot < Depth; slot++) begin
      write_q[slot] <= insert_i != '0 && !refused_i && insert_slot == count_t'(slot);
    end
    written_q    <= insert_i;
    write_peer_q <= insert_peer;
    write_data_q <= inserted;
  end

  for (genvar slot = 0; slot < Depth; slot++) begin : gen_slots
    em_ram #(
        .Depth(Ports),
        .Width($bits(message_t))
    ) u_messages (
        .clk_i,
        .write_i        (write_q[slot]),
        .write_address_i(write_peer_q),
        .write_data_i   (write_data_q),
        .read_i,
        .read_address_i (read_peer),
        .read_data_o    (messages[slot])
    );
  end

  // A bit a place: of the first message and of the one behind it.
  logic [Depth-1:0] head_is_q, second_is, second_is_q;
  logic started_q;
  logic [PortWidth-1:0] peer_q;
  // What came behind the first while the peer was read, or is written while it is.
  logic passes, passed_q;
  size_class_t passed_class_q;

  for (genvar slot = 0; slot < Depth; slot++) begin : gen_second
    assign second_is[slot] = read_slot == count_t'((slot == 0) ? Depth - 1 : slot - 1);
  end
  assign passes = (write_q & second_is) != '0 && (written_q & read_peer_i) != '0;

  always_ff @(posedge clk_i) begin
    if (read_i) begin
      for (int unsigned slot = 0; slot < Depth; slot++) begin
        head_is_q[slot] <= read_slot == count_t'(slot);
      end
      second_is_q    <= second_is;
      started_q      <= (read_started_i & read_peer_i) != '0;
      peer_q         <= read_peer;
      passed_q       <= passes || (insert_i & read_peer_i) != '0 &&
                        insert_slot == ((read_slot == count_t'(Depth - 1)) ? '0 : read_slot + 1'b1);
      passed_class_q <= passes ? write_data_q.size_class : inserted.size_class;
    end
  end

  always_comb begin
    head           = '0;
    outcome        = remaining.outcome & {$bits(outcome_t){started_q}};
    second_class_o = passed_class_q & {SizeClassBits{passed_q}};
    for (int unsigned slot = 0; slot < Depth; slot++) begin
      head |= messages[slot] & {$bits(message_t){head_is_q[slot]}};
      outcome |= messages[slot].outcome & {$bits(outcome_t){head_is_q[slot] && !started_q}};
      second_class_o |= messages[slot].size_class
                        & {SizeClassBits{second_is_q[slot] && !passed_q}};
    end
  end

  bytes_t bytes;
  assign bytes         = started_q ? remaining.bytes : head.size;
  assign offer_o       = {head.tag, outcome.last ? bytes : Chunk, !started_q, outcome.last};
  assign last_o        = outcome.last;
  assign busy_less_o   = left_t'(outcome.busy_less);
  assign after_class_o = outcome.after_class;

  // A cycle for the subtraction, and one for what the grant after it will make of what is left.
  logic write_back_q;
  logic [PortWidth-1:0] write_back_peer_q;
  log_t size_log_q;
  bytes_t left_q, left_beyond_q;

  always_ff @(posedge clk_i) begin
    write_back_q      <= take_i;
    write_back_peer_q <= peer_q;
    size_log_q        <= log2_eighths(head.size);
    left_q            <= bytes - Chunk;
    left_beyond_q     <= bytes - (Chunk << 1);
  end

  assign left.bytes   = left_q;
  assign left.outcome = outcome_of(left_q, left_beyond_q, size_log_q);

  em_ram #(
      .Depth(Ports),
      .Width($bits(remaining_t))
  ) u_remaining (
      .clk_i,
      .write_i        (write_back_q),
      .write_address_i(write_back_peer_q),
      .write_data_i   (left),
      .read_i,
      .read_address_i (read_peer),
      .read_data_o    (remaining)
  );

endmodule
