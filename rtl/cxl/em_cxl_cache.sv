/// The cache of a compute node (section III.B): set-associative, write-back, never shared; equal,
/// operation for operation, to `Cache` of crates/cxl.
///
/// One operation a cycle, in the order in which they are taken; a fill goes before an access, and
/// the reads that waited for it are answered without another operation between them. An access that
/// stalls is kept, all accesses behind it wait, and it comes again after each fill.
///
/// Cycles from the one in which an operation is taken: its step, and what must be fetched and
/// written, after 2; data of a victim and the response of a write after 4; the response of a read
/// hit, and of the first read that waited for a fill, after 6. They are the stages of crates/cxl.
module em_cxl_cache
  import em_cxl_pkg::*;
#(
    /// 32 KiB in 4 ways of 64 B lines. A power of two, 2 at least.
    parameter int unsigned Sets = 128,
    /// Lines that are fetched at once, 1 to 64.
    parameter int unsigned Fetches = 64,
    localparam int unsigned SetBits = $clog2(Sets),
    localparam int unsigned PlaceBits = SetBits + WayBits
) (
    input logic clk_i,
    input logic rst_ni,

    /// An access. A read's identifier is that of no other read in flight.
    input  logic      access_valid_i,
    output logic      access_ready_o,
    /// `OpRead`, `OpWrite` or `OpClean`.
    input  cache_op_e access_op_i,
    /// For `OpClean` a place: the set, and in the lowest bits the way.
    input  line_t     access_line_i,
    input  id_t       access_id_i,
    input  mask_t     access_mask_i,
    input  data_t     access_data_i,
    input  logic      access_drop_i,
    input  line_t     range_first_i,
    input  line_t     range_last_i,
    /// Fetches and victims of three more operations are taken.
    input  logic      room_i,

    /// A fetch that is under way has ended: with the line if it is good.
    input  logic   fill_valid_i,
    output logic   fill_ready_o,
    input  fetch_t fill_fetch_i,
    input  logic   fill_good_i,
    input  data_t  fill_data_i,

    /// What came of an operation, and of whose.
    output logic        step_valid_o,
    output cache_op_e   step_op_o,
    output cache_step_e step_o,
    output id_t         step_id_o,
    /// Of this step: a victim to write first, and a line to fetch.
    output logic        victim_valid_o,
    output line_t       victim_line_o,
    output mask_t       victim_mask_o,
    output logic        fetch_valid_o,
    output fetch_t      fetch_o,
    output line_t       fetch_line_o,
    /// Data of victims, in their order; bytes outside the mask do not matter.
    output logic        victim_data_valid_o,
    output data_t       victim_data_o,

    /// Responses, in the order of their operations: of writes, and whether their victims are to be
    /// acknowledged first; of reads, good unless the fetch failed.
    output logic  written_valid_o,
    output id_t   written_id_o,
    output logic  written_replaced_o,
    output logic  read_valid_o,
    output id_t   read_id_o,
    output logic  read_good_o,
    output data_t read_data_o
);

  typedef struct packed {
    cache_op_e op;
    line_t     line;  // or place
    id_t       id;
    mask_t     mask;
    logic      drop;  // of a fill: it is good
    fetch_t    fetch;
    data_t     data;
  } operation_t;

  typedef struct packed {
    cache_op_e            op;
    cache_step_e          step;
    id_t                  id;
    logic [PlaceBits-1:0] place;
    mask_t                write;
    logic                 respond;
    logic                 good;
    logic                 fetch_valid;
    fetch_t               fetch;
    line_t                line;
    logic                 victim;
    line_t                victim_line;
    mask_t                victim_mask;
  } decision_t;

  // The operation whose set is read; the one that is decided; what was decided.
  operation_t access, fill, first, op_q, held_q;
  decision_t decision, decision_q;
  data_t decision_data_q;
  logic op_valid_q, held_valid_q, retry_q, decision_valid_q;
  logic ready, tells, more, stalls, ends;
  logic take_fill, take_held, take_access, take;
  logic [PlaceBits-1:0] fill_place, place;
  logic [SetBits-1:0] first_set;

  // From the set of the operation that is decided.
  set_t set_before, set_after;
  cache_step_e step;
  way_index_t way;
  fetch_t joined, free;
  mask_t valid, victim_mask;
  line_t victim_line;
  logic whole, victim, full, last, begins;
  id_t told;

  assign access = '{op: access_op_i, line: access_line_i, id: access_id_i, mask: access_mask_i,
                    drop: access_drop_i, fetch: '0, data: access_data_i};
  assign fill   = '{op: OpFill, line: line_t'(fill_place), id: '0, mask: '0,
                    drop: fill_good_i, fetch: fill_fetch_i, data: fill_data_i};

  assign tells       = op_q.op == OpFill || op_q.op == OpTell;
  assign more        = op_valid_q && tells && !last;
  assign ends        = op_valid_q && tells && last;
  assign stalls      = op_valid_q && step == StepStalled;
  assign take_fill   = fill_valid_i && fill_ready_o;
  assign take_held   = held_valid_q && retry_q && !more && !fill_valid_i && room_i;
  assign take_access = access_valid_i && access_ready_o;
  assign take        = take_fill || take_held || take_access;
  assign first       = take_fill ? fill : take_held ? held_q : access;

  assign fill_ready_o   = ready && !more;
  assign access_ready_o = ready && !more && !fill_valid_i && !held_valid_q && !stalls && room_i;

  // Places are the sets times the ways, plus the way.
  assign first_set = (first.op == OpRead || first.op == OpWrite) ? first.line[SetBits-1:0]
                                                                 : first.line[PlaceBits-1:WayBits];

  em_cxl_cache_tags #(
      .Sets(Sets)
  ) u_tags (
      .clk_i,
      .rst_ni,
      .ready_o     (ready),
      .read_i      (take),
      .read_index_i(first_set),
      .set_o       (set_before),
      .write_i     (op_valid_q && !stalls),
      .write_set_i (set_after)
  );

  em_cxl_cache_set u_set (
      .op_i          (op_q.op),
      .line_i        (op_q.line),
      .way_i         (op_q.line[WayBits-1:0]),
      .mask_i        (op_q.mask),
      .drop_i        (op_q.drop),
      .range_first_i,
      .range_last_i,
      .good_i        (op_q.drop),
      .fetches_full_i(full),
      .fetch_i       (free),
      .set_i         (set_before),
      .set_o         (set_after),
      .step_o        (step),
      .way_o         (way),
      .joined_o      (joined),
      .valid_o       (valid),
      .whole_o       (whole),
      .victim_o      (victim),
      .victim_line_o (victim_line),
      .victim_mask_o (victim_mask)
  );

  assign begins = op_q.op == OpRead && step == StepMiss;
  assign place  = {
    (op_q.op == OpRead || op_q.op == OpWrite) ? op_q.line[SetBits-1:0]
                                              : op_q.line[PlaceBits-1:WayBits],
    way
  };

  em_cxl_cache_fetches #(
      .Fetches  (Fetches),
      .PlaceBits(PlaceBits)
  ) u_fetches (
      .clk_i, .rst_ni, .full_o(full), .free_o(free), .begin_i(op_valid_q && begins),
      .begin_place_i(place), .join_i(op_valid_q && step == StepMerged), .join_fetch_i(joined),
      .id_i(op_q.id), .find_fetch_i(fill_fetch_i), .find_place_o(fill_place),
      .tell_fetch_i(op_q.fetch), .tell_i(op_valid_q && tells), .tell_id_o(told), .tell_last_o(last)
  );

  always_comb begin
    decision.op          = op_q.op;
    decision.step        = step;
    decision.id          = tells ? told : op_q.id;
    decision.place       = place;
    decision.respond     = tells || (op_q.op == OpRead && step == StepHit);
    decision.good        = whole;
    decision.fetch_valid = begins;
    decision.fetch       = free;
    decision.line        = op_q.line;
    decision.victim      = victim;
    decision.victim_line = victim_line;
    decision.victim_mask = victim_mask;
    decision.write       = '0;
    if (op_q.op == OpWrite && !stalls) decision.write = op_q.mask;
    // Bytes that were written meanwhile are newer than what was fetched.
    if (op_q.op == OpFill && op_q.drop) decision.write = ~valid;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {op_valid_q, held_valid_q, retry_q, decision_valid_q} <= '0;
    end else begin
      op_valid_q       <= take || more;
      decision_valid_q <= op_valid_q;
      if (stalls) held_valid_q <= 1'b1;
      else if (take_held) held_valid_q <= 1'b0;
      if (stalls || take_held) retry_q <= 1'b0;
      else if (ends) retry_q <= 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (take) op_q <= first;
    else if (more) op_q.op <= OpTell;
    if (stalls) held_q <= op_q;
    decision_q      <= decision;
    decision_data_q <= op_q.data;
  end

  em_cxl_cache_lines #(
      .Places(1 << PlaceBits)
  ) u_lines (
      .clk_i, .rst_ni, .place_i(decision_q.place),
      .write_i(decision_valid_q ? decision_q.write : '0), .data_i(decision_data_q),
      .respond_i(decision_valid_q && decision_q.respond), .id_i(decision_q.id),
      .good_i(decision_q.good), .victim_i(victim_valid_o), .victim_valid_o(victim_data_valid_o),
      .victim_data_o, .valid_o(read_valid_o), .id_o(read_id_o), .good_o(read_good_o),
      .data_o(read_data_o)
  );

  assign step_valid_o   = decision_valid_q;
  assign step_op_o      = decision_q.op;
  assign step_o         = decision_q.step;
  assign step_id_o      = decision_q.id;
  assign victim_valid_o = decision_valid_q && decision_q.victim;
  assign victim_line_o  = decision_q.victim_line;
  assign victim_mask_o  = decision_q.victim_mask;
  assign fetch_valid_o  = decision_valid_q && decision_q.fetch_valid;
  assign fetch_o        = decision_q.fetch;
  assign fetch_line_o   = decision_q.line;

  // A write is answered when its bytes are in the RAM, behind one more register.
  typedef struct packed {
    logic valid;
    id_t  id;
    logic replaced;
  } written_t;

  written_t written, written_q, answered_q;

  always_comb begin
    written.valid    = decision_valid_q && decision_q.op == OpWrite
                       && decision_q.step != StepStalled;
    written.id       = decision_q.id;
    written.replaced = decision_q.step == StepReplaced;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {written_q, answered_q} <= '0;
    else begin
      written_q  <= written;
      answered_q <= written_q;
    end
  end

  assign written_valid_o    = answered_q.valid;
  assign written_id_o       = answered_q.id;
  assign written_replaced_o = answered_q.replaced;

endmodule
