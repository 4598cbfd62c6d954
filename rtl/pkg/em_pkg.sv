/// Every width, block type and message format of EDM's wire, as docs/internals/wire.md lays them
/// out. crates/wire is the source of truth; golden/wire/{constants,layout}.csv carry it here, and
/// rtl/tb/em_pkg compares every name and every bit.
package em_pkg;

  localparam int unsigned BlockBits = 66;
  localparam int unsigned PayloadBits = 64;
  localparam int unsigned ContentBits = 40;
  localparam int unsigned NodeBits = 9;
  localparam int unsigned IdBits = 8;
  /// Sixteen bits of length and the unit bit above them.
  localparam int unsigned LengthBits = 17;
  localparam int unsigned GrantBytesBits = 16;
  localparam int unsigned ChunkBytesMax = 4096;
  /// Reflected, over sub-type and content in line order.
  localparam logic [7:0] Crc8Poly = 8'h37;
  localparam logic [7:0] Crc8Init = 8'hff;

  typedef logic [NodeBits-1:0] node_t;
  typedef logic [IdBits-1:0] id_t;

  /// Bit 0 goes on the line first.
  typedef enum logic [1:0] {
    SyncControl = 2'b01,
    SyncData = 2'b10
  } sync_e;

  /// Octet 0 of a control block. C control character, O ordered set, S start, T terminate, D data.
  typedef enum logic [7:0] {
    BlockEdm = 8'h00,             // sub-type, content, CRC-8
    BlockControl = 8'h1e,         // C0 C1 C2 C3 C4 C5 C6 C7
    BlockControlOrdered = 8'h2d,  // C0 C1 C2 C3 O4 D5 D6 D7
    BlockControlStart = 8'h33,    // C0 C1 C2 C3 S4 D5 D6 D7
    BlockOrderedControl = 8'h4b,  // O0 D1 D2 D3 C4 C5 C6 C7
    BlockOrderedOrdered = 8'h55,  // O0 D1 D2 D3 O4 D5 D6 D7
    BlockOrderedStart = 8'h66,    // O0 D1 D2 D3 S4 D5 D6 D7
    BlockStart = 8'h78,           // S0 D1 D2 D3 D4 D5 D6 D7
    BlockTerminate0 = 8'h87,      // T0 C1 C2 C3 C4 C5 C6 C7
    BlockTerminate1 = 8'h99,      // D0 T1 C2 C3 C4 C5 C6 C7
    BlockTerminate2 = 8'haa,      // D0 D1 T2 C3 C4 C5 C6 C7
    BlockTerminate3 = 8'hb4,      // D0 D1 D2 T3 C4 C5 C6 C7
    BlockTerminate4 = 8'hcc,      // D0 D1 D2 D3 T4 C5 C6 C7
    BlockTerminate5 = 8'hd2,      // D0 D1 D2 D3 D4 T5 C6 C7
    BlockTerminate6 = 8'he1,      // D0 D1 D2 D3 D4 D5 T6 C7
    BlockTerminate7 = 8'hff       // D0 D1 D2 D3 D4 D5 D6 T7
  } block_type_e;

  /// Octet 1 of an EDM control block.
  typedef enum logic [7:0] {
    SubStart = 8'h33,         // /MS/
    SubTerminate = 8'hcc,     // /MT/
    SubSingle = 8'h66,        // /MST/
    SubNotification = 8'h55,  // /N/
    SubGrant = 8'haa          // /G/
  } sub_type_e;

  typedef enum logic [3:0] {
    OpRead = 4'd1,
    OpReadResponse = 4'd2,
    OpPostedWrite = 4'd3,
    OpAcknowledgedWrite = 4'd4,
    OpCompareAndSwap = 4'd8,
    OpFetchAndAdd = 4'd9,
    OpSwap = 4'd10,
    OpAnd = 4'd11,
    OpOr = 4'd12,
    OpXor = 4'd13
  } opcode_e;

  typedef enum logic [3:0] {
    StatusOk = 4'd0,
    StatusBadOpcode = 4'd1,
    StatusBadAddress = 4'd2,
    StatusLinkDisabled = 4'd3,
    StatusNull = 4'd4,
    StatusMisaligned = 4'd5,
    StatusIncomplete = 4'd6,
    StatusOverloaded = 4'd7
  } status_e;

  // Opcodes, codes and kinds come from the line and may be unassigned: plain bits, not enums.

  /// A payload that is an EDM control block. The first field of a packed struct is its highest.
  typedef struct packed {
    logic [7:0] crc;
    logic [ContentBits-1:0] content;
    logic [7:0] sub_type;
    logic [7:0] block_type;
  } control_t;

  typedef struct packed {
    logic [1:0] reserved;
    logic [LengthBits-1:0] length;
    id_t id;
    node_t node;
    logic [2:0] reserved_low;
    logic acknowledged;
  } notification_t;

  typedef struct packed {
    logic [2:0] reserved;
    logic [GrantBytesBits-1:0] bytes;
    id_t id;
    node_t node;
    logic [2:0] reserved_low;
    logic response;
  } grant_t;

  typedef struct packed {
    logic [1:0] reserved;
    logic [LengthBits-1:0] length;
    id_t id;
    node_t node;
    logic [3:0] opcode;
  } rreq_ms_t;

  typedef struct packed {
    logic [14:0] reserved;
    logic [3:0] code;
    id_t id;
    node_t node;
    logic [3:0] opcode;
  } status_t;

  typedef struct packed {
    logic [15:0] address_low;
    logic [2:0] reserved;
    id_t id;
    node_t node;
    logic [3:0] opcode;
  } rmwreq_ms_t;

  typedef struct packed {
    logic [14:0] index;
    logic last;
    logic [2:0] tail;
    id_t id;
    node_t node;
    logic [3:0] opcode;
  } rres_ms_t;

  typedef struct packed {
    logic [31:0] address_low;
    logic last;
    logic [2:0] tail;
    logic [3:0] opcode;
  } wreq_ms_t;

  typedef struct packed {
    logic [39:0] address;
  } rreq40_mt_t;

  typedef struct packed {
    logic [31:0] crc;
    logic [1:0] reserved;
    logic [5:0] excess;
  } rreq64_mt_t;

  typedef struct packed {
    logic [15:0] crc;
    logic [23:0] address_high;
  } rmwreq40_mt_t;

  /// Of RRES, of WREQ (with address bits 32..39 in the tail octet), of a long RMWREQ.
  typedef struct packed {
    logic [31:0] crc;
    logic [7:0] tail_octet;
  } crc32_mt_t;

  /// The first /MD/ of an acknowledged write.
  typedef struct packed {
    logic [23:0] address_high;
    logic [14:0] index;
    logic [3:0] reserved;
    id_t id;
    node_t node;
    logic [3:0] reserved_low;
  } acknowledged_t;

endpackage
