/// The open reads and RMWs of this node, and their data on its way to the caller.
///
/// A chunk is accepted if it follows the previous one; its data is with the caller two edges after
/// it arrived. The end of a read goes behind its data, so its completion cannot come before.
module em_host_reads
  import em_pkg::*;
  import em_host_pkg::*;
#(
    parameter int unsigned Nodes        = 4,
    parameter int unsigned X            = 3,
    parameter int unsigned ReadSlots    = 4,
    parameter int unsigned MessageBytes = 1024,
    parameter int unsigned ChunkBytes   = 256
) (
    input logic clk_i,
    input logic rst_ni,
    /// Drops the data that waits, but for a word that is on offer. The link is down.
    input  logic flush_i,
    /// Nothing waits to be dropped.
    output logic quiet_o,

    input  logic          command_valid_i,
    output logic          command_ready_o,
    input  read_command_t command_i,

    // Words of a chunk, and the message that ends.
    input logic        word_i,
    input logic [63:0] data_i,
    input logic        ends_i,
    input node_t       peer_i,
    input row_t        row_i,
    input logic        arrived_i,
    input arrival_t    arrival_i,
    /// Its peer is known.
    input logic        known_i,

    output logic       read_tvalid_o,
    input  logic       read_tready_i,
    output read_data_t read_tdata_o,
    output logic       event_valid_o,
    input  logic       event_ready_i,
    output event_t     event_o,
    /// How a read ended could not be kept: it will time out, and its row stays in use.
    output logic       lost_o
);

  localparam int unsigned Rows = Nodes * X;
  localparam int unsigned RowsBits = $clog2(Rows);
  localparam int unsigned RingWords = 1 << $clog2(ReadSlots * MessageBytes / 8);
  /// Chunks of all reads, and two ends of each.
  localparam int unsigned Chunks = (MessageBytes + ChunkBytes - 1) / ChunkBytes;
  localparam int unsigned Descriptors = ReadSlots * (Chunks + 2);
  typedef logic [RowsBits-1:0] rows_t;

  typedef struct packed {
    logic   open;
    logic   ended;
    id_t    id;
    token_t token;
    bytes_t bytes;
    bytes_t moved;
  } read_t;

  /// Data of a chunk, or none, and what happens behind it.
  typedef struct packed {
    bytes_t bytes;
    logic   last;
    token_t token;
    logic   is_event;
    event_t happened;
  } descriptor_t;

  read_command_t command_q;
  read_t read, read_d;
  rows_t asked, row_q, reset_row_q;
  descriptor_t descriptor, out;
  logic resetting_q, is_command_q, takes_command, is_chunk, is_status, is_match, writes;
  logic commit, describes, fits, out_valid, out_taken, step, is_end_word;
  bytes_t offset, sum, left_q, left;
  logic is_due, is_data, streaming_q, drained_q, valid_q, last_q;
  token_t token_q;
  logic [7:0] keep_q, tail;
  logic [63:0] ring_data;
  logic [$clog2(Descriptors+1)-1:0] unused_count;
  logic describes_ready;

  // ---- one message or command at a time: read its row, then write it ----

  // A message that ends has the memory; what the transmit clock wants waits.
  assign takes_command   = command_valid_i && !ends_i && !resetting_q;
  assign command_ready_o = takes_command;
  assign asked           = ends_i
      ? rows_t'(peer_i) * rows_t'(X) + rows_t'(row_i)
      : rows_t'(command_i.peer) * rows_t'(X) + rows_t'(command_i.id[RowBits-1:0]);

  em_host_ram #(
      .Width($bits(read_t)),
      .Depth(Rows)
  ) u_reads (
      .clk_i,
      .write_i        (resetting_q || writes),
      .write_address_i(resetting_q ? reset_row_q : row_q),
      .write_data_i   (resetting_q ? '0 : read_d),
      .read_i         (ends_i || takes_command),
      .read_address_i (asked),
      .read_data_o    (read)
  );

  assign is_match  = read.open && read.id == (is_command_q ? command_q.id : arrival_i.id);
  assign is_chunk  = arrived_i && known_i && arrival_i.kind == ArriveResponse && is_match;
  assign is_status = arrived_i && known_i && arrival_i.kind == ArriveStatus && is_match
      && arrival_i.code != StatusOk;
  assign offset    = bytes_t'(arrival_i.index) * bytes_t'(ChunkBytes);
  assign sum       = read.moved + arrival_i.bytes;
  assign is_due    = offset == read.moved && arrival_i.bytes <= read.bytes - read.moved
      && arrival_i.last == (sum == read.bytes) && fits && describes_ready
      && arrival_i.bytes != '0;

  always_comb begin
    read_d     = read;
    writes     = 1'b0;
    commit     = 1'b0;
    describes  = 1'b0;
    descriptor = '{token: read.token, last: arrival_i.last, happened: '{
        peer: arrival_i.peer, id: arrival_i.id, ends: !read.ended, closes: 1'b1, default: '0},
        default: '0};
    if (is_command_q) begin
      writes = !command_q.cancel || (is_match && !read.ended);
      if (!command_q.cancel) begin
        read_d = '{open: 1'b1, ended: 1'b0, id: command_q.id, token: command_q.token,
                   bytes: command_q.bytes, moved: '0};
      end else begin
        // It stays open until nothing more can come under its id.
        read_d.ended        = 1'b1;
        describes           = writes;
        descriptor.is_event = 1'b1;
        descriptor.happened = '{peer: command_q.peer, id: command_q.id, ends: 1'b1, closes: 1'b0,
                                remote: 1'b0, code: EndTimeout};
      end
    end else if (is_chunk) begin
      commit              = is_due && !read.ended;
      writes              = commit || arrival_i.last;
      read_d.moved        = sum;
      read_d.open         = !arrival_i.last;
      descriptor.is_event = arrival_i.last;
      descriptor.bytes    = commit ? arrival_i.bytes : '0;
      describes           = commit || arrival_i.last;
      if (!is_due) descriptor.happened.code = EndIncomplete;
    end else if (is_status) begin
      writes              = 1'b1;
      read_d.open         = 1'b0;
      describes           = 1'b1;
      descriptor.is_event = 1'b1;
      descriptor.happened.remote = 1'b1;
      descriptor.happened.code   = arrival_i.code;
    end
  end

  em_host_ring #(
      .Depth(RingWords)
  ) u_ring (
      .clk_i,
      .rst_ni,
      .push_i  (word_i),
      .data_i,
      .commit_i(commit),
      .rewind_i(arrived_i && !commit),
      .fits_o  (fits),
      .pop_i   (step && !flush_i),
      .skip_i  (step && flush_i),
      .data_o  (ring_data)
  );

  em_fifo_sync #(
      .Width($bits(descriptor_t)),
      .Depth(Descriptors)
  ) u_descriptors (
      .clk_i,
      .rst_ni,
      .valid_i(describes),
      .ready_o(describes_ready),
      .data_i (descriptor),
      .valid_o(out_valid),
      .ready_i(out_taken),
      .data_o (out),
      .count_o(unused_count)
  );

  // ---- to the caller: the data of a chunk, and what happens once it was taken ----

  assign is_data     = out.bytes != '0 && !drained_q;
  assign left        = streaming_q ? left_q : out.bytes;
  assign is_end_word = left <= bytes_t'(8);
  assign step        = out_valid && is_data && (flush_i || !valid_q || read_tready_i);
  assign quiet_o     = !out_valid;

  assign event_valid_o = out_valid && !is_data && out.is_event && !flush_i
      && (!valid_q || read_tready_i);
  assign event_o       = out.happened;
  assign lost_o        = describes && !describes_ready;
  assign out_taken     = (step && is_end_word && !out.is_event)
      || (out_valid && !is_data && (flush_i || (event_valid_o && event_ready_i)));

  always_comb begin
    tail = '1;
    if (is_end_word) tail = 8'hff >> (4'd8 - left[3:0]);
  end

  assign read_tvalid_o = valid_q;
  assign read_tdata_o  = '{token: token_q, last: last_q, keep: keep_q, data: ring_data};

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      resetting_q  <= 1'b1;
      reset_row_q  <= '0;
      is_command_q <= 1'b0;
      streaming_q  <= 1'b0;
      drained_q    <= 1'b0;
      valid_q      <= 1'b0;
    end else begin
      if (resetting_q) begin
        resetting_q <= reset_row_q != rows_t'(Rows - 1);
        reset_row_q <= reset_row_q + 1'b1;
      end
      is_command_q <= takes_command;
      if (step) streaming_q <= !is_end_word;
      if (out_taken) drained_q <= 1'b0;
      else if (step && is_end_word) drained_q <= 1'b1;
      if (step && !flush_i) valid_q <= 1'b1;
      else if (read_tready_i) valid_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    row_q <= asked;
    if (takes_command) command_q <= command_i;
    if (step) left_q <= left - bytes_t'(8);
    if (step && !flush_i) begin
      token_q <= out.token;
      last_q  <= out.last && is_end_word;
      keep_q  <= tail;
    end
  end

endmodule
