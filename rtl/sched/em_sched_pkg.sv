/// What the modules of the grant scheduler share. docs/internals/grant-scheduler.md has the rules.
package em_sched_pkg;

  import em_pkg::*;

  /// Of a demand: 1 B to 4 MiB - 1.
  localparam int unsigned BytesBits = 22;
  /// Fraction bits of the logarithms that a weighted rank is the sum of.
  localparam int unsigned LogFractionBits = 3;
  /// Of a logarithm: 5 bits of octave and the fraction.
  localparam int unsigned LogBits = 5 + LogFractionBits;
  /// It is found in fours of bits.
  localparam int unsigned LogGroups = (BytesBits + 3) / 4;
  /// What being late takes off a weighted rank: one size class.
  localparam int unsigned LateBonus = 2 << LogFractionBits;
  /// Size classes are whole octaves of the mean of both logarithms.
  localparam int unsigned ClassShift = LogFractionBits + 1;
  localparam int unsigned ClassBits = LogBits + 1 - ClassShift;
  /// Classes where nothing but the class ranks; the least has all that is under 128 B.
  localparam int unsigned SizeClassLeast = 6;
  localparam int unsigned SizeClassBits = 4;
  localparam int unsigned SizeClasses = 1 << SizeClassBits;
  /// Request, grant, mark busy (section 3.1.2).
  localparam int unsigned CyclesPerIteration = 3;
  /// Of a port's distance to its release, signed, in cycles.
  localparam int unsigned LeftBits = 16;
  /// Bits that count the control blocks that may pass free, and those that pass in a cycle.
  localparam int unsigned DebtBits = 8;
  localparam int unsigned ChargeBits = 4;
  /// Bits of the name that a port gives a message; a scheduler keeps the lowest `TagWidth`.
  localparam int unsigned TagBits = 16;

  typedef logic [BytesBits-1:0] bytes_t;
  typedef logic [LogBits-1:0] log_t;
  /// The least goes first: remaining bytes, or the sum of two logarithms, or zero.
  typedef logic [BytesBits-1:0] rank_t;
  typedef logic [ClassBits-1:0] class_t;
  typedef logic [SizeClassBits-1:0] size_class_t;
  /// A bit a class.
  typedef logic [SizeClasses-1:0] class_set_t;
  typedef logic signed [LeftBits-1:0] left_t;
  typedef logic [DebtBits-1:0] debt_t;
  typedef logic [ChargeBits-1:0] charge_t;
  typedef logic [TagBits-1:0] tag_t;

  /// What a port asks for: its notification, or its request, whose response the peer is granted.
  typedef struct packed {
    logic   valid;
    logic   response;
    node_t  peer;
    bytes_t bytes;
    tag_t   tag;
  } ask_t;

  /// A grant to a source.
  typedef struct packed {
    logic                      valid;
    logic                      response;     // of a request of the destination
    logic                      first;        // chunk of the message
    logic                      last;
    node_t                     destination;
    tag_t                      tag;
    logic [GrantBytesBits-1:0] bytes;
    left_t                     delay;        // cycles from the mark to its use
  } decision_t;

  /// A message that joins a flow.
  typedef struct packed {
    logic   valid;
    bytes_t bytes;
    log_t   size_log;
    tag_t   tag;
  } insert_t;

  /// The head of a flow shrinks, as its ports become busy.
  typedef struct packed {
    logic valid;
    log_t left_log;  // the logarithm of what is left
  } take_t;

  /// The message that is first in a flow.
  typedef struct packed {
    logic   valid;
    rank_t  rank;
    tag_t   tag;
    bytes_t remaining;
    logic   started;
  } head_t;

  /// A demand: what is left of it behind its first chunk, and the logarithm and class of all.
  typedef struct packed {
    bytes_t      bytes;
    bytes_t      beyond;
    log_t        size_log;
    size_class_t size_class;
  } demand_t;

  typedef enum logic [1:0] {
    PolicyFcfs = 2'd0,           // first come, first served
    PolicySrptPublished = 2'd1,  // fewest remaining bytes, greedy
    PolicySrpt = 2'd2            // remaining times size, hold, lateness
  } policy_e;

  typedef enum logic [1:0] {
    PhaseRequest = 2'd0,
    PhaseGrant = 2'd1,
    PhaseMark = 2'd2
  } phase_e;

  /// The order in which messages are granted.
  typedef struct packed {
    policy_e policy;
    logic    counts_late;     // messages of the size below become late
    bytes_t  late_bytes_min;
  } rank_config_t;

  /// Control blocks on the links: those beyond the free ones lengthen a grant.
  typedef struct packed {
    logic  counts;
    debt_t blocks_free;
  } control_config_t;

  /// log2 in eighths, its fraction linear: exact at powers of two. Zero gives zero. The first four
  /// bits that are not all zero are found beside what each four would give, with the three below.
  function automatic log_t log2_eighths(bytes_t value);
    logic [LogGroups-1:0] found;
    logic [4*LogGroups+LogFractionBits-1:0] bits;
    bits         = (4 * LogGroups + LogFractionBits)'({value, 3'b000});
    log2_eighths = '0;
    for (int unsigned g = 0; g < LogGroups; g++) found[g] = bits[4*g+3+:4] != '0;
    for (int unsigned g = 0; g < LogGroups; g++) begin
      if (found[g] && found >> (g + 1) == '0) begin
        log2_eighths |= {3'(g), log2_of_four(bits[4*g+:7])};
      end
    end
  endfunction

  /// The logarithm of four bits and the three below: the highest bit's position and the fraction.
  function automatic logic [LogFractionBits+1:0] log2_of_four(logic [6:0] bits);
    if (bits[6]) return {2'd3, bits[5:3]};
    if (bits[5]) return {2'd2, bits[4:2]};
    if (bits[4]) return {2'd1, bits[3:1]};
    return {2'd0, bits[2:0]};
  endfunction

  /// Octave of the mean of both, from the least class on.
  function automatic size_class_t size_class(log_t remaining, log_t size);
    logic [LogBits:0] sum;
    class_t octave;
    sum    = {1'b0, remaining} + {1'b0, size};
    octave = class_t'(sum >> ClassShift);
    return (octave > class_t'(SizeClassLeast)) ? size_class_t'(octave - class_t'(SizeClassLeast))
                                               : '0;
  endfunction

  /// The set of one class.
  function automatic class_set_t only_class(size_class_t of);
    for (int unsigned c = 0; c < SizeClasses; c++) only_class[c] = of == size_class_t'(c);
  endfunction

  /// The set of what goes before a class.
  function automatic class_set_t lesser_classes(size_class_t of);
    for (int unsigned c = 0; c < SizeClasses; c++) lesser_classes[c] = of > size_class_t'(c);
  endfunction

  /// The first class that is not of such a set; none, where all are.
  function automatic class_set_t class_after(class_set_t lesser);
    return ~lesser & {lesser[SizeClasses-2:0], 1'b1};
  endfunction

  /// True if one class goes before another, or is equal where that is enough. It compares bit by
  /// bit: for so few bits no carry chain is quicker.
  function automatic logic goes_first(size_class_t one, size_class_t other, logic or_equal);
    goes_first = or_equal;
    for (int unsigned b = 0; b < SizeClassBits; b++) begin
      goes_first = !one[b] && other[b] || one[b] == other[b] && goes_first;
    end
  endfunction

  /// What a port asks for, as a message that joins the flow of a peer if it is of that flow.
  function automatic insert_t insert_of(ask_t ask, logic is_sound, log_t size_log, logic response,
                                        node_t peer);
    logic is_here;
    is_here = ask.valid && is_sound && ask.response == response && ask.peer == peer;
    return '{valid: is_here, bytes: ask.bytes, size_log: size_log, tag: ask.tag};
  endfunction

  /// Data blocks of so many bytes.
  function automatic bytes_t blocks_of(bytes_t bytes);
    return (bytes + bytes_t'(7)) >> 3;
  endfunction

  /// A sum in as few levels of gates as there can be: what comes from where is found for all bits
  /// at once (Kogge and Stone). Its parts may be negative.
  function automatic left_t plus_by_prefixes(left_t a, left_t b);
    left_t generated, passed, half;
    half      = a ^ b;
    generated = a & b;
    passed    = a | b;
    for (int unsigned span = 1; span < LeftBits; span *= 2) begin
      // What is below the lowest bit passes nothing on.
      generated |= passed & (generated << span);
      passed    &= passed << span;
    end
    return half ^ (generated << 1);
  endfunction

  /// A sum. An FPGA has carry chains that are quicker than any gates, and a simulator has an adder.
  function automatic left_t plus(left_t a, left_t b);
`ifdef EM_PREFIX_SUMS
    return plus_by_prefixes(a, b);
`else
    return a + b;
`endif
  endfunction

  /// Of more: all but two are taken in without a carry. The one that comes last is last.
  function automatic left_t plus3(left_t a, left_t b, left_t c);
    return plus(a ^ b ^ c, (a & b | a & c | b & c) << 1);
  endfunction

  function automatic left_t plus4(left_t a, left_t b, left_t c, left_t d);
    return plus3(a ^ b ^ c, (a & b | a & c | b & c) << 1, d);
  endfunction

  function automatic left_t plus5(left_t a, left_t b, left_t c, left_t d, left_t e);
    return plus4(a ^ b ^ c, (a & b | a & c | b & c) << 1, d, e);
  endfunction

  /// So many slots, of a time that is not negative, as far as a debt can be.
  function automatic debt_t whole_slots(left_t cycles, left_t slot_cycles);
    logic [LeftBits-1:0] slots;
    slots = LeftBits'(cycles) / LeftBits'(slot_cycles);
    if (cycles < 0) return '0;
    return (slots >> DebtBits != '0) ? '1 : debt_t'(slots);
  endfunction

endpackage
