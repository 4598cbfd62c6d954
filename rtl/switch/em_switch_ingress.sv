/// A port's uplink in the switch's clock: sorts arriving blocks, one a cycle.
///
/// A chunk goes to the destination of the oldest grant, before it is whole; its last block becomes
/// an ABORT if it fails a check or exceeds its grant. Notifications and requests go to the
/// scheduler once they are whole, statuses to their node, peer notices to the pairs.
module em_switch_ingress
  import em_pkg::*;
  import em_link_pkg::*;
  import em_sched_pkg::ask_t;
  import em_sched_pkg::bytes_t;
  import em_sched_pkg::charge_t;
  import em_sched_pkg::tag_t;
  import em_switch_pkg::*;
#(
    parameter int unsigned Ports = 8,
    parameter logic [$clog2(Ports)-1:0] Port = '0,
    localparam int unsigned PortWidth = $clog2(Ports)
) (
    input logic clk_i,
    input logic rst_ni,
    input logic [Ports-1:0] port_up_i,
    /// With whom this port exchanges messages.
    input logic [Ports-1:0] joined_i,

    input logic  valid_i,
    input item_t item_i,

    // Circuits.
    input  logic                      next_valid_i,
    input  logic [PortWidth-1:0]      next_destination_i,
    output logic                      use_o,
    output logic [GrantBytesBits-1:0] use_bytes_o,
    input  logic                      allowed_i,
    output logic                      skip_o,

    /// The port may refuse the first block of a chunk.
    output routed_chunk_t chunk_o,
    input  logic          chunk_refused_i,

    // Scheduler.
    output ask_t    ask_o,
    input  logic    ask_refused_i,
    /// The request that is asked for.
    output held_t   held_o,
    /// Control blocks that came.
    output charge_t charge_o,

    /// With the node rewritten.
    output routed_status_t status_o,
    input  logic           status_refused_i,

    output heard_t  heard_o,
    output events_t events_o
);

  typedef enum logic [1:0] {
    StateBetween,
    StateForward,
    StateDrop
  } state_e;

  state_e state_q, state_d;
  logic chunk_valid, chunk_first, chunk_last, demanded;
  logic [PortWidth-1:0] chunk_port;
  block_t chunk_block;
  logic [PortWidth-1:0] to_q;
  control_t control;
  logic up, up_q, ends, sound;
  logic [ContentBits-1:0] ms_q;
  logic [HeldMdMost-1:0][PayloadBits-1:0] md_q;
  logic [1:0] md_count_q;
  logic unused;

  assign up      = port_up_i[Port];
  assign control = item_i.block.payload;
  assign ends    = valid_i && up && item_i.last;
  assign sound   = ends && item_i.ending == EndSound;

  // --- Chunks.

  // Data blocks so far, and what the first block says of the last of them.
  logic [GrantBytesBits-4:0] blocks_q, data_blocks;
  logic [2:0] tail_q;
  logic acknowledged_q, chunk_ends, given_up, chunk_sound, begins;
  rres_ms_t response;
  wreq_ms_t write;

  assign response = control.content;
  assign write    = control.content;

  assign begins      = valid_i && up && item_i.kind == KindChunk && item_i.first && !item_i.last;
  assign chunk_ends  = ends && item_i.kind == KindChunk;
  assign chunk_sound = chunk_ends && item_i.ending == EndSound;
  assign data_blocks = blocks_q - (GrantBytesBits - 3)'(acknowledged_q);
  assign use_o       = chunk_sound;
  assign use_bytes_o = {data_blocks, 3'b000} - GrantBytesBits'(3'(-tail_q));
  // The port failed, or the chunk ended and is not sound.
  assign given_up    = state_q != StateBetween && (chunk_ends && !chunk_sound || !up);

  always_comb begin
    chunk_valid = 1'b0;
    chunk_block = item_i.block;
    chunk_last  = 1'b0;
    chunk_port  = to_q;
    state_d       = state_q;
    unique case (state_q)
      StateForward: begin
        chunk_valid = valid_i && up && item_i.kind == KindChunk;
        if (given_up) begin
          {chunk_valid, chunk_last, chunk_block} = {1'b1, 1'b1, Abort};
        end else if (chunk_ends) begin
          chunk_last = 1'b1;
          if (!allowed_i) chunk_block = Abort;
        end
        // If that port fails, no lane of it takes the rest.
        if (chunk_last) state_d = StateBetween;
      end
      StateDrop: if (chunk_ends || !up) state_d = StateBetween;
      default: begin
        chunk_port  = next_destination_i;
        chunk_valid = begins && next_valid_i;
        if (begins) state_d = (next_valid_i && !chunk_refused_i) ? StateForward : StateDrop;
      end
    endcase
  end

  assign chunk_first = chunk_valid && state_q == StateBetween;
  assign chunk_o     = '{
      valid: chunk_valid,
      first: chunk_first,
      last: chunk_last,
      port: node_t'(chunk_port),
      block: chunk_block
  };

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StateBetween;
      up_q    <= 1'b1;
    end else begin
      state_q <= state_d;
      up_q    <= up;
    end
  end

  always_ff @(posedge clk_i) begin
    if (chunk_first) to_q <= next_destination_i;
    if (begins) begin
      acknowledged_q <= control.content[3:0] == OpAcknowledgedWrite;
      tail_q <= (control.content[3:0] == OpReadResponse) ? response.tail : write.tail;
      blocks_q <= '0;
    end else if (valid_i) begin
      blocks_q <= blocks_q + 1'b1;
    end
  end

  // --- Requests, held until they are whole.

  rreq_ms_t request;
  rreq64_mt_t request_mt;
  notification_t notification;
  bytes_t request_bytes;

  assign request      = ms_q;
  assign request_mt   = control.content;
  assign notification = control.content;

  /// In bytes, or in units of 64.
  function automatic bytes_t bytes_of(logic [LengthBits-1:0] length);
    return length[LengthBits-1] ? bytes_t'({length[LengthBits-2:0], 6'b0})
                                : bytes_t'(length[LengthBits-2:0]);
  endfunction

  always_ff @(posedge clk_i) begin
    if (valid_i && item_i.first) begin
      ms_q       <= control.content;
      md_count_q <= '0;
    end else if (valid_i && item_i.kind == KindRequest && !item_i.last) begin
      for (int unsigned i = 0; i < HeldMdMost; i++) begin
        if (md_count_q == 2'(i)) md_q[i] <= item_i.block.payload;
      end
      md_count_q <= md_count_q + 1'b1;
    end
  end

  // A read of a 64-bit address, in its /MD/, says by how much its length is too long.
  assign request_bytes = (request.opcode != OpRead) ? bytes_t'(8)
                         : bytes_of(request.length) - ((md_count_q == '0) ? '0
                                                       : bytes_t'(request_mt.excess));

  logic asks, is_request;
  node_t asked_node;
  assign is_request = item_i.kind == KindRequest;
  assign asks       = sound && (is_request || item_i.kind == KindNotification);
  assign asked_node = is_request ? request.node : notification.node;

  function automatic logic is_peer(node_t node, logic [Ports-1:0] peers);
    return (NodeBits + 1)'(node) < (NodeBits + 1)'(Ports) && peers[PortWidth'(node)];
  endfunction

  assign demanded = asks && is_peer(asked_node, joined_i);
  assign ask_o    = '{
      valid: demanded,
      response: is_request,
      peer: node_t'(PortWidth'(asked_node)),
      bytes: is_request ? request_bytes : bytes_of(notification.length),
      tag: is_request ? tag_t'(request.id) : tag_t'(notification.id)
  };
  assign held_o   = '{
      md_count: md_count_q,
      mt: item_i.block.payload,
      md: md_q,
      ms: ms_q
  };
  assign charge_o = !asks ? '0 : is_request ? charge_t'(md_count_q) + charge_t'(2)
                             : charge_t'(1);

  // --- Statuses.

  status_t status, sent;
  logic from_peer, passes, answers, unused_gone;
  logic [7:0] status_crc;

  assign status      = control.content;
  assign from_peer   = sound && item_i.kind == KindStatus && status.opcode == OpPeer;
  assign skip_o      = from_peer && status.code == StatusNull || given_up;
  assign unused_gone = from_peer && status.code != StatusNull && status.code != StatusIncomplete &&
                       status.code != StatusLinkDisabled;
  assign passes      = sound && item_i.kind == KindStatus && is_peer(status.node, joined_i) &&
                       (status.opcode != OpPeer || status.code == StatusIncomplete);
  // A request with an unknown opcode is answered, as its sender waits for an answer.
  assign answers     = ends && item_i.kind == KindUnknown && item_i.ending == EndRefused;

  always_comb begin
    sent      = status;
    sent.node = node_t'(Port);
    if (answers) begin
      sent        = '0;
      sent.opcode = request.opcode;
      sent.node   = request.node;
      sent.id     = request.id;
      sent.code   = StatusBadOpcode;
    end
  end

  em_crc8 u_crc (
      .sub_type_i(SubSingle),
      .content_i (sent),
      .crc_o     (status_crc)
  );

  assign status_o = '{
      valid: passes || answers,
      port: answers ? node_t'(Port) : node_t'(PortWidth'(status.node)),
      block: '{payload: {status_crc, sent, SubSingle, BlockEdm}, header: SyncControl}
  };
  assign heard_o  = '{
      valid: from_peer && status.code == StatusLinkDisabled &&
             (NodeBits + 1)'(status.node) < (NodeBits + 1)'(Ports),
      peer: node_t'(PortWidth'(status.node))
  };

  // --- What goes wrong.

  always_comb begin
    events_o                    = '0;
    events_o.chunk_astray       = chunk_sound && !(state_q == StateForward && allowed_i);
    events_o.chunk_aborted      = given_up;
    events_o.chunk_overflow     = chunk_first && chunk_refused_i;
    events_o.demand_refused     = asks && (!demanded || ask_refused_i);
    events_o.message_unexpected = ends && item_i.ending == EndRefused || unused_gone ||
                                  sound && item_i.kind == KindOther;
    events_o.status_dropped     = status_o.valid && status_refused_i;
    events_o.failed             = up_q && !up;
  end

  // Fields of formats that only others look at.
  assign unused = ^{control, response, write, request, request_mt, notification};

endmodule
