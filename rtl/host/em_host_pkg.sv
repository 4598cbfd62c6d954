/// What passes between a host and its caller, and between the parts of a host.
/// docs/internals/rtl-host.md says who owns what.
package em_host_pkg;

  import em_pkg::*;

  localparam int unsigned TokenBits = 16;
  /// Of one message, in bytes: it bounds the parameter MessageBytes.
  localparam int unsigned BytesBits = 16;
  /// Of the id: class, generation, row.
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
    row_t        row;
    generation_t generation;
    logic        write;
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

endpackage
