/// What the modules of CXL over Ethernet share. docs/internals/rtl-cxl.md has the rules.
package em_cxl_pkg;

  /// Bytes of a line: what CXL.mem moves at once.
  localparam int unsigned LineBytes = 64;
  /// Bits of a line's number: 64 TiB in lines.
  localparam int unsigned LineBits = 40;
  /// AXI identifiers: 256 reads and 256 writes in flight (section IV).
  localparam int unsigned IdBits = 8;
  localparam int unsigned Ids = 1 << IdBits;
  /// Ways of a set (section IV).
  localparam int unsigned Ways = 4;
  localparam int unsigned WayBits = 2;
  /// Numbers of fetches: 64 at most are under way.
  localparam int unsigned FetchBits = 6;

  typedef logic [LineBits-1:0] line_t;
  /// A bit a byte: bit 0 is the byte at the lowest address.
  typedef logic [LineBytes-1:0] mask_t;
  typedef logic [8*LineBytes-1:0] data_t;
  typedef logic [IdBits-1:0] id_t;
  typedef logic [WayBits-1:0] way_index_t;
  typedef logic [FetchBits-1:0] fetch_t;

  /// A way without its data. `dirty` is a part of `valid`; a way that is not present has neither.
  typedef struct packed {
    logic       present;
    line_t      line;
    mask_t      valid;
    mask_t      dirty;
    logic       fetching;  // the line stays where it is until the fetch has ended
    fetch_t     fetch;     // which one; without `fetching` don't-care
    way_index_t age;       // 0 is the most recently used way of its set
  } way_t;

  typedef way_t [Ways-1:0] set_t;

  typedef enum logic [2:0] {
    OpRead  = 3'd0,
    OpWrite = 3'd1,
    OpClean = 3'd2,  // of a place, if its line is in the range: for a flush or an invalidation
    OpFill  = 3'd3,  // a fetch has ended, and its first read is answered
    OpTell  = 3'd4   // the next read that waited for the fetch is answered
  } cache_op_e;

  typedef enum logic [3:0] {
    StepHit       = 4'd0,
    StepMiss      = 4'd1,  // a read: the line is fetched
    StepMerged    = 4'd2,  // a read: another one fetches the line
    StepAllocated = 4'd3,  // a write: a way was free or clean
    StepReplaced  = 4'd4,  // a write: a dirty line had to go
    StepStalled   = 4'd5,  // nothing was changed
    StepCleaned   = 4'd6,
    StepKept      = 4'd7,  // nothing to clean
    StepFilled    = 4'd8
  } cache_step_e;

  /// Bits of a rate in Mb/s, of a time in cycles, and of a frame's length on the link in bytes.
  localparam int unsigned RateBits = 17;
  localparam int unsigned TimerBits = 24;
  localparam int unsigned FrameBits = 8;

  typedef logic [RateBits-1:0] rate_t;
  typedef logic [TimerBits-1:0] timer_t;
  typedef logic [FrameBits-1:0] frame_bytes_t;

  /// The six phases of congestion control, a to f in Figure 3.
  typedef enum logic [2:0] {
    PhaseStable               = 3'd0,
    PhasePfcResponse          = 3'd1,
    PhaseFastRecovery         = 3'd2,
    PhaseRecoveryPfcResponse  = 3'd3,
    PhaseIncrementExploration = 3'd4,
    PhaseIncrementGuessing    = 3'd5
  } phase_e;

  /// All that decides what congestion control does next.
  typedef struct packed {
    phase_e     phase;
    rate_t      current;
    rate_t      target;     // where fast recovery goes
    logic [2:0] speedups;   // steps of fast recovery that were made
    rate_t      increase;   // the last step of this exploration, which a PFC frame takes back
    logic       timed;      // the phase ends when `timer` is 0
    timer_t     timer;
    timer_t     deaf;       // until it is 0, a PFC frame is a duplicate
  } control_t;

  /// The number of a request, modulo 2^32.
  localparam int unsigned SequenceBits = 32;
  typedef logic [SequenceBits-1:0] sequence_t;

  typedef enum logic [1:0] {
    AskRead        = 2'd0,
    AskWrite       = 2'd1,
    AskMaskedWrite = 2'd2
  } ask_e;

  typedef enum logic [1:0] {
    StatusDone     = 2'd0,
    StatusUnmapped = 2'd1,
    StatusPoison   = 2'd2
  } status_e;

  /// A request without its number.
  typedef struct packed {
    ask_e  ask;
    id_t   id;
    line_t line;
    mask_t mask;
    data_t data;
  } request_t;

  /// A response without its number. The data is that of a read that is done.
  typedef struct packed {
    logic    is_read;
    id_t     id;
    status_e status;
    data_t   data;
  } response_t;

  /// What became of a request that has come.
  typedef enum logic [2:0] {
    ArrivalNext          = 3'd0,  // it will be executed
    ArrivalKept          = 3'd1,  // it is after one that is missing
    ArrivalDropped       = 3'd2,  // the same, with go-back-N
    ArrivalAnswered      = 3'd3,  // it was executed: its response is sent again
    ArrivalDuplicate     = 3'd4,  // it is being executed or kept
    ArrivalOutsideWindow = 3'd5
  } arrival_e;

  /// Why a request is sent again.
  typedef enum logic [1:0] {
    WhyNegative = 2'd0,  // a SACK + NAK says that it is missing
    WhyGap      = 2'd1,  // a later response has come: its own was lost
    WhyTimeout  = 2'd2,
    WhyFirst    = 2'd3   // it is sent for the first time
  } why_e;

  /// What became of a response, or of a SACK + NAK.
  typedef enum logic [1:0] {
    ReceiptTaken         = 2'd0,
    ReceiptOutsideWindow = 2'd1,
    ReceiptDuplicate     = 2'd2,
    ReceiptMismatch      = 2'd3
  } receipt_e;

  /// Of a clock that times retries, in cycles.
  localparam int unsigned TimeBits = 32;
  typedef logic [TimeBits-1:0] cycles_t;

  /// A station's address: the octet that is sent first is the lowest.
  localparam int unsigned MacBits = 48;
  typedef logic [MacBits-1:0] mac_t;

  /// A page of 2^14 lines, 1 MiB: its number in CMem, and that of its frame in the pool.
  localparam int unsigned PageOffsetBits = 14;
  localparam int unsigned PageBits = LineBits - PageOffsetBits;
  typedef logic [PageBits-1:0] page_t;

  typedef struct packed {
    logic  valid;
    mac_t  node;
    page_t page;
    page_t frame;
  } translation_t;

  typedef enum logic [1:0] {
    TableTranslate = 2'd0,
    TableMap       = 2'd1,
    TableUnmap     = 2'd2
  } table_op_e;

  // Frames: crates/wire/src/cxl has the formats, docs/internals/cxl-wire.md the reasons.

  /// Octets of the longest frame, a masked write, and of the shortest one, without check sequence.
  localparam int unsigned FrameOctetsMax = 97;
  localparam int unsigned FrameOctetsMin = 60;
  /// Octets of a frame that is longer than any: as many as are counted.
  localparam int unsigned OctetBits = 8;
  localparam int unsigned BeatOctets = 64;
  /// As its octets are sent, seen as a number of which the first octet is the lowest.
  localparam logic [15:0] EtherType = 16'hb688;

  typedef logic [8*FrameOctetsMax-1:0] frame_t;
  typedef logic [OctetBits-1:0] octets_t;

  typedef enum logic [7:0] {
    CommandReadRequest        = 8'h01,
    CommandWriteRequest       = 8'h02,
    CommandMaskedWriteRequest = 8'h03,
    CommandReadResponse       = 8'h81,
    CommandWriteResponse      = 8'h82,
    CommandSackNak            = 8'h83,
    CommandSackNakAck         = 8'h84,
    CommandCongestion         = 8'h85
  } command_e;

  /// All fields that some packet has; those that a packet does not have are zeros.
  typedef struct packed {
    mac_t        to;
    mac_t        from;
    logic [7:0]  command;
    sequence_t   nak;
    sequence_t   sack;
    logic        acked_read;  // of a SACK + NAK + ACK
    sequence_t   sequence_number;
    id_t         id;
    line_t       line;
    logic [1:0]  status;
    mask_t       mask;
    data_t       data;
    logic [31:0] number;      // of congestion notifications
    logic [15:0] entries;
  } packet_t;

  /// Why octets are no frame of this protocol, in the order in which it is looked for.
  typedef enum logic [3:0] {
    FaultNone          = 4'd0,
    FaultShort         = 4'd1,
    FaultForeign       = 4'd2,
    FaultSource        = 4'd3,
    FaultCommand       = 4'd4,
    FaultLength        = 4'd5,
    FaultStatus        = 4'd6,
    FaultAcked         = 4'd7,
    FaultDataOfFailure = 4'd8,
    FaultSackBeforeNak = 4'd9
  } fault_e;

  /// A map or unmap of a page. For maps, `line` is any line of the page.
  typedef struct packed {
    logic      valid;
    table_op_e op;
    mac_t      node;
    line_t     line;
    page_t     frame;
  } table_request_t;

  typedef struct packed {
    logic ready;
    logic done;
    logic found;  // the page was there; a map then changes nothing
    logic full;   // a map: all buckets in which the page could be are full
  } table_response_t;

  /// A beat of AXI4-Stream, without its handshake.
  typedef struct packed {
    logic [8*BeatOctets-1:0] data;
    logic [BeatOctets-1:0]   keep;
    logic                    last;
  } beat_t;

  /// What the compute node's walk over its slots does.
  typedef enum logic [1:0] {
    WalkNone    = 2'd0,
    WalkBack    = 2'd1,  // to the mark before a SACK
    WalkForward = 2'd2
  } walk_e;

  /// What a response must match.
  typedef struct packed {
    ask_e ask;
    id_t  id;
  } key_t;

  /// When a request was sent last, and how often its time was doubled since.
  typedef struct packed {
    cycles_t    at;
    logic [2:0] doublings;
  } try_t;

  /// A request's time is doubled this often at most.
  localparam logic [2:0] DoublingsMax = 3'd5;

  /// True if `later` is after `earlier`, on the circle of sequence numbers.
  function automatic logic is_after(sequence_t later, sequence_t earlier);
    sequence_t distance;
    distance = later - earlier;
    return distance != '0 && !distance[SequenceBits-1];
  endfunction

endpackage
