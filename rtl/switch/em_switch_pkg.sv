/// The types and constants that the parts of the switch share. docs/internals/rtl-switch.md has the
/// rules.
package em_switch_pkg;

  import em_pkg::*;
  import em_link_pkg::*;

  /// What a memory block belongs to.
  typedef enum logic [2:0] {
    KindChunk,         // RRES, WREQ
    KindRequest,       // RREQ, RMWREQ
    KindUnknown,       // /MS/ of an opcode that is not assigned
    KindNotification,  // /N/
    KindStatus,        // /MST/
    KindOther          // /G/: no host sends one to a switch
  } kind_e;

  /// A memory block on its way from a port's receiver to the switch.
  typedef struct packed {
    kind_e   kind;
    logic    first;
    logic    last;
    ending_e ending;
    block_t  block;
  } item_t;

  /// /MD/ blocks of the longest request: a 64-bit address and two operands.
  localparam int unsigned HeldMdMost = 3;

  /// A request from its arrival to its release: all that leaves, but the node and its CRC-8.
  typedef struct packed {
    logic [1:0]                             md_count;
    logic [PayloadBits-1:0]                 mt;
    logic [HeldMdMost-1:0][PayloadBits-1:0] md;
    logic [ContentBits-1:0]                 ms;
  } held_t;

  /// What goes out of an egress port of the switch's own accord: a /G/, a word of a peer (/MST/) or
  /// a released request, with its first block as it leaves.
  typedef struct packed {
    logic                   request;
    logic [PayloadBits-1:0] first;
    held_t                  held;
  } word_t;

  // What passes between the parts of a port, and between ports. A port's number is its node's.

  /// A block of a chunk, on its way from its source to the port that it leaves by.
  typedef struct packed {
    logic   valid;
    logic   first;
    logic   last;
    node_t  port;
    block_t block;
  } routed_chunk_t;

  /// A status, which is one block.
  typedef struct packed {
    logic   valid;
    node_t  port;
    block_t block;
  } routed_status_t;

  /// The node has given up what it had with a peer.
  typedef struct packed {
    logic  valid;
    node_t peer;
  } heard_t;

  /// Word for a node: its peer is joined, or gone.
  typedef struct packed {
    logic  valid;
    logic  joined;
    node_t peer;
  } notice_t;

  /// The opcode of a status that answers no message.
  localparam logic [3:0] OpPeer = 4'd0;

  /// What a port drops or sees go wrong, one bit an event, for counters.
  typedef struct packed {
    logic chunk_astray;        // without a grant, beyond it, or towards a failed port
    logic chunk_aborted;       // its link failed or its sender gave up
    logic chunk_overflow;      // no lane of the egress had room
    logic demand_refused;      // could not be queued
    logic message_unexpected;  // no host sends it to a switch, or it was refused
    logic status_dropped;      // no lane of the egress had room
    logic failed;              // the port went down
  } events_t;

endpackage
