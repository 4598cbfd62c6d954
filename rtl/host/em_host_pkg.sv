/// The types that pass between a host and its caller, and between the parts of a host.
/// docs/internals/rtl-host.md says which part owns which state.
package em_host_pkg;

  import em_pkg::*;

  localparam int unsigned TokenBits = 16;
  /// Of one message, in bytes: it bounds the parameter MessageBytes.
  localparam int unsigned BytesBits = 16;
  /// Fields of the id: class, generation, row.
  localparam int unsigned RowBits = 3;
  localparam int unsigned GenerationBits = 4;
  localparam int unsigned RowsMax = 1 << RowBits;

  typedef logic [TokenBits-1:0] token_t;
  typedef logic [BytesBits-1:0] bytes_t;
  typedef logic [RowBits-1:0] row_t;
  typedef logic [GenerationBits-1:0] generation_t;
  /// Tells a response from the one before it in the same buffer.
  typedef logic [1:0] phase_t;

  typedef struct packed {
    logic        write;
    generation_t generation;
    row_t        row;
  } message_id_t;

  /// tdata of the request stream: RREQ, WREQ (posted, acknowledged), RMWREQ, by its opcode.
  typedef struct packed {
    logic [1:0][63:0] operands;  // compare-and-swap: expected, new
    logic [63:0]      address;
    bytes_t           bytes;     // of a read or write; an RMW has 8
    node_t            peer;
    logic [3:0]       opcode;    // em_pkg::opcode_e
    token_t           token;     // the caller's own; comes back with data and completion
  } request_t;

  /// How a message ended, decided on this side.
  typedef enum logic [3:0] {
    EndDone,
    EndTimeout,     // no answer in time: the NULL response
    EndIncomplete,  // a part of the response did not arrive
    EndPeerDown,
    EndLinkDown,
    EndBadRequest   // unknown opcode or peer, no bytes or too many; nothing was sent
  } end_e;

  /// tdata of the completion stream: exactly one for each request.
  typedef struct packed {
    logic       remote;  // `code` is the peer's em_pkg::status_e, otherwise an end_e
    logic [3:0] code;
    token_t     token;
  } completion_t;

  /// tdata of the read-data stream: the bytes of reads and the old words of RMWs, in order within
  /// each token.
  typedef struct packed {
    token_t      token;
    logic        last;  // of the message
    logic [7:0]  keep;
    logic [63:0] data;
  } read_data_t;

  /// tdata of the write-data stream: the bytes of one write after the other, in the order of the
  /// requests, each from bit 0 of a word on.
  typedef struct packed {
    logic        last;
    logic [63:0] data;
  } write_data_t;

  /// What a message of one block, or a request, says: for em_encode_request.
  typedef struct packed {
    logic [7:0]       sub_type;      // SubNotification, SubSingle, or SubStart for a request
    logic             acknowledged;  // /N/
    logic [3:0]       opcode;
    node_t            node;
    id_t              id;
    bytes_t           bytes;
    logic [3:0]       code;
    logic [63:0]      address;
    logic [1:0][63:0] operands;
  } control_fields_t;

  /// What a chunk says in front of its data: for em_encode_chunk.
  typedef struct packed {
    logic        null_answer;  // no chunk: one /MST/ that a grant stays unused
    logic [3:0]  opcode;       // OpReadResponse, OpPostedWrite, OpAcknowledgedWrite
    node_t       node;         // the sender; of an unused grant, its peer
    id_t         id;
    logic [14:0] index;
    logic        last;
    bytes_t      bytes;
    logic [63:0] address;
  } chunk_fields_t;

  /// Of an entry, at most.
  localparam int unsigned EntryBitsMax = 8;
  typedef logic [EntryBitsMax-1:0] entry_t;

  /// Of a write's data.
  typedef logic [7:0] slot_t;

  /// What the compute side knows of a destination.
  typedef struct packed {
    logic [1:0][RowsMax-1:0][GenerationBits-1:0] generations;  // of the last ids: reads, writes
    logic [1:0][RowsMax-1:0]                     rows;         // in use: of reads, of writes
    logic [RowBits:0]                            writes_active;  // not sent in full: at most X
    entry_t                                      head;         // of its queue
    entry_t                                      tail;
    logic                                        queued;
    logic                                        down;
  } destination_t;

  typedef enum logic [2:0] {
    ItemGrant,     // of a write of this node or of a response
    ItemRequest,   // the grant of a response's first chunk, which begins with it
    ItemUnused,    // a grant that is to be answered and no more
    ItemPeerDown,  // the switch does not reach the peer
    ItemPeerUp,
    ItemLinkDown
  } item_kind_e;

  /// What is done to an entry.
  typedef struct packed {
    logic take;     // a request begins to use it
    logic enqueue;
    logic dequeue;
    logic open;
    logic finish;   // its completion is given
    logic close;
    logic sent;
    logic cancel;
    logic kill;     // its peer or the link is gone: nothing more can happen to it
  } entry_commands_t;

  typedef struct packed {
    logic used;
    logic queued;
    logic open;
    logic ended;
    logic sent;
    logic write;
  } entry_state_t;

  /// What the host's core does next.
  typedef enum logic [2:0] {
    OpRequest,
    OpEvent,
    OpSent,
    OpExpired,
    OpWord
  } op_e;

  /// A write was opened: what its chunks need.
  typedef struct packed {
    entry_t      entry;
    id_t         id;
    node_t       peer;
    logic        acknowledged;
    bytes_t      bytes;
    logic [63:0] address;
    slot_t       slot;  // of its data
  } opened_t;

  /// All that an open write asked for was granted, and answered.
  typedef struct packed {
    entry_t entry;
    logic   closes;   // no status can come: posted, or its last chunk was withheld
    logic   exposed;  // the peer saw its id
  } sent_t;

  /// ItemPeerDown, ItemPeerUp, ItemLinkDown.
  typedef struct packed {
    item_kind_e kind;
    node_t      peer;
  } word_t;

  // What crosses from the receive to the transmit clock.

  /// An entry of the grant queue.
  typedef struct packed {
    item_kind_e kind;
    node_t      peer;
    id_t        id;
    bytes_t     bytes;  // granted; of a request, all of the response
    phase_t     phase;  // of the response that begins
  } item_t;

  /// How an open message of this node ended.
  typedef struct packed {
    node_t      peer;
    id_t        id;
    logic       ends;    // with `remote` and `code`, unless it ended before
    logic       closes;  // nothing more can come under its id
    logic       remote;
    logic [3:0] code;
  } event_t;

  /// An acknowledgement or a refusal to be sent.
  typedef struct packed {
    node_t      peer;
    id_t        id;
    logic [3:0] code;
  } reply_t;

  /// A word of a response, read from memory; the last one says how it went.
  typedef struct packed {
    node_t       peer;
    row_t        row;
    phase_t      phase;
    logic        last;
    logic [3:0]  code;
    bytes_t      word;  // its number in the response
    logic [63:0] data;
  } response_word_t;

  /// What has arrived of a response from memory.
  typedef struct packed {
    phase_t     phase;
    bytes_t     words;
    logic       done;
    logic [3:0] code;  // once it is done
  } arrived_t;

  // What crosses from the transmit to the receive clock.

  /// A read or RMW is opened, or is to end if it has not.
  typedef struct packed {
    logic   cancel;
    node_t  peer;
    id_t    id;
    bytes_t bytes;
    token_t token;
  } read_command_t;

  // Inside the receive clock.

  typedef enum logic [2:0] {
    ArriveNone,      // a message that a host has no use for, or that was given up
    ArriveGrant,
    ArriveRequest,   // RREQ or RMWREQ
    ArriveResponse,  // a chunk
    ArriveWrite,     // a chunk
    ArriveStatus,
    ArrivePeerDown,
    ArrivePeerUp
  } arrive_e;

  /// A message whose last block has come.
  typedef struct packed {
    arrive_e          kind;
    node_t            peer;
    id_t              id;
    logic [3:0]       opcode;
    logic [3:0]       code;
    logic             too_long;  // of a request: more bytes than `bytes` can say
    bytes_t           bytes;
    logic [14:0]      index;
    logic             last;
    logic [63:0]      address;
    logic [1:0][63:0] operands;
  } arrival_t;

  /// Where a chunk begins in its message, which may have 4 MiB.
  typedef logic [22:0] offset_t;

  /// What memory is to do.
  typedef struct packed {
    logic [3:0]       opcode;   // OpRead, an RMW, or a write
    node_t            peer;
    id_t              id;
    phase_t           phase;    // of the response
    logic             first;    // chunk of a write
    logic             last;
    bytes_t           bytes;
    logic [63:0]      address;
    logic [1:0][63:0] operands;
  } command_t;

endpackage
