/// The memory node's address translator (section III.C): from a compute node and its page to a page
/// of the pool, by the TLB, or else by the complete table, which a hash of both indexes; operation
/// for operation what `Translator` of crates/cxl does.
///
/// A TLB hit is answered two cycles after it was taken. Otherwise each bucket that is read takes a
/// cycle more, and a search ends at the first bucket from which no entry had to go on. After a
/// reset the table is emptied, a bucket a cycle.
module em_cxl_translator
  import em_cxl_pkg::*;
#(
    parameter int unsigned TlbEntries = 32,
    /// Of four entries each: a power of two, 2 at least.
    parameter int unsigned Buckets = 1024
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic      valid_i,
    output logic      ready_o,
    input  table_op_e op_i,
    input  mac_t      node_i,
    /// For maps, a line of the page.
    input  line_t     line_i,
    input  page_t     frame_i,

    output logic       done_o,
    /// A page was there: for a map, it is mapped already and nothing was changed.
    output logic       found_o,
    /// For a map: all buckets in which the entry could be are full.
    output logic       full_o,
    /// The line of the pool.
    output line_t      line_o,
    /// Buckets that were read to find it; none for a TLB hit.
    output logic [3:0] reads_o
);

  localparam int unsigned BucketBits = $clog2(Buckets);
  localparam int unsigned Slots = 4;
  localparam int unsigned Probes = (Buckets < 8) ? Buckets : 8;
  localparam int unsigned HashOctets = 11;
  localparam logic [31:0] HashPoly = 32'h1edc6f41;

  typedef logic [BucketBits-1:0] bucket_index_t;
  typedef struct packed {
    logic [15:0]              overflown;  // entries that did not fit here
    translation_t [Slots-1:0] entries;
  } bucket_t;

  typedef enum logic [2:0] {
    StateClear  = 3'd0,
    StateIdle   = 3'd1,
    StateLook   = 3'd2,  // in the TLB; the first bucket is read
    StateSearch = 3'd3,  // a bucket is here, the next one is read
    StateChange = 3'd4,  // a bucket on the way to an entry is read
    StateWrite  = 3'd5   // and written
  } state_e;

  state_e state_q, state_d;
  table_op_e op_q;
  mac_t node_q;
  line_t line_q;
  page_t frame_q, page, tlb_frame, found_frame;
  // Bucket of the search, and the bucket in which the entry is or will be.
  logic [3:0] probe_q, probe_d, last_q, last_d;
  logic searching_q, searching_d, has_free_q, has_free_d;
  bucket_index_t clear_q, home, address;
  logic [31:0] hash;
  bucket_t bucket, written;
  logic [Slots-1:0] match, free, chosen;
  logic tlb_hit, tlb_use, tlb_insert, tlb_forget;
  logic take, read, write, done, found, full, is_last;
  page_t result;

  assign page = line_q[LineBits-1:PageOffsetBits];

  em_crc #(
      .Width (32),
      .Poly  (HashPoly),
      .Octets(HashOctets)
  ) u_hash (
      .crc_i   ('1),
      .data_i  ({40'(page), node_q}),
      .octets_i(4'(HashOctets)),
      .crc_o   (hash)
  );

  assign home = bucket_index_t'(~hash);

  em_cxl_tlb #(
      .Entries(TlbEntries)
  ) u_tlb (
      .clk_i,
      .rst_ni,
      .node_i  (node_q),
      .page_i  (page),
      .hit_o   (tlb_hit),
      .frame_o (tlb_frame),
      .use_i   (tlb_use),
      .insert_i(tlb_insert),
      .frame_i (found_frame),
      .forget_i(tlb_forget)
  );

  em_ram #(
      .Width($bits(bucket_t)),
      .Depth(Buckets)
  ) u_table (
      .clk_i,
      .write_i        (write || state_q == StateClear),
      .write_address_i((state_q == StateClear) ? clear_q : home + bucket_index_t'(probe_q)),
      .write_data_i   ((state_q == StateClear) ? '0 : written),
      .read_i         (read),
      .read_address_i (address),
      .read_data_o    (bucket)
  );

  always_comb begin
    found_frame = '0;
    for (int unsigned i = 0; i < Slots; i++) begin
      free[i]  = !bucket.entries[i].valid;
      match[i] = bucket.entries[i].valid && bucket.entries[i].node == node_q
                 && bucket.entries[i].page == page;
      if (match[i]) found_frame |= bucket.entries[i].frame;
    end
  end

  assign chosen  = free & (~free + 1'b1);
  assign is_last = probe_q == 4'(Probes - 1);

  // What a bucket on the way becomes.
  always_comb begin
    written = bucket;
    if (probe_q != last_q) begin
      written.overflown = (op_q == TableMap) ? bucket.overflown + 1'b1 : bucket.overflown - 1'b1;
    end else begin
      for (int unsigned i = 0; i < Slots; i++) begin
        if (op_q == TableMap && chosen[i]) begin
          written.entries[i] = '{valid: 1'b1, node: node_q, page: page, frame: frame_q};
        end
        if (op_q == TableUnmap && match[i]) written.entries[i].valid = 1'b0;
      end
    end
  end

  assign ready_o = state_q == StateIdle;
  assign take    = valid_i && ready_o;

  always_comb begin
    state_d     = state_q;
    probe_d     = probe_q;
    last_d      = last_q;
    searching_d = searching_q;
    has_free_d  = has_free_q;
    address     = home;
    result      = found_frame;
    {read, write, done, found, full, tlb_use, tlb_insert, tlb_forget} = '0;
    case (state_q)
      StateClear: if (&clear_q) state_d = StateIdle;
      StateIdle: if (take) state_d = StateLook;
      StateLook: begin
        probe_d     = '0;
        searching_d = 1'b1;
        has_free_d  = 1'b0;
        if (op_q == TableTranslate && tlb_hit) begin
          {done, found, tlb_use} = '1;
          result  = tlb_frame;
          state_d = StateIdle;
        end else begin
          read    = 1'b1;
          state_d = StateSearch;
        end
      end
      StateSearch: begin
        probe_d = probe_q + 1'b1;
        address = home + bucket_index_t'(probe_d);
        read    = 1'b1;
        if (searching_q && |match) begin
          found  = 1'b1;
          last_d = probe_q;
          if (op_q == TableUnmap) begin
            tlb_forget = tlb_hit;
            probe_d    = '0;
            state_d    = StateChange;
          end else begin
            done       = 1'b1;
            tlb_insert = op_q == TableTranslate;
            state_d    = StateIdle;
          end
        end else begin
          if (bucket.overflown == '0 || is_last) searching_d = 1'b0;
          if (|free && !has_free_q) begin
            has_free_d = 1'b1;
            last_d     = probe_q;
          end
          // A map goes on until it has seen where the page could be, and where it has room.
          if (op_q != TableMap) begin
            if (!searching_d) {done, state_d} = {1'b1, StateIdle};
          end else if (!searching_d && has_free_d) begin
            probe_d = '0;
            state_d = StateChange;
          end else if (is_last) begin
            {done, full} = '1;
            state_d = StateIdle;
          end
        end
      end
      StateChange: begin
        address = home + bucket_index_t'(probe_q);
        read    = 1'b1;
        state_d = StateWrite;
      end
      default: begin
        write   = 1'b1;
        probe_d = probe_q + 1'b1;
        state_d = StateChange;
        if (probe_q == last_q) begin
          done    = 1'b1;
          found   = op_q == TableUnmap;
          state_d = StateIdle;
        end
      end
    endcase
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StateClear;
      clear_q <= '0;
      done_o  <= 1'b0;
    end else begin
      state_q <= state_d;
      clear_q <= clear_q + 1'b1;
      done_o  <= done;
    end
  end

  always_ff @(posedge clk_i) begin
    if (take) begin
      op_q    <= op_i;
      node_q  <= node_i;
      line_q  <= line_i;
      frame_q <= frame_i;
    end
    probe_q     <= probe_d;
    last_q      <= last_d;
    searching_q <= searching_d;
    has_free_q  <= has_free_d;
    found_o     <= found;
    full_o      <= full;
    line_o      <= {result, line_q[PageOffsetBits-1:0]};
    reads_o     <= (state_q == StateLook) ? '0 : (state_q == StateSearch) ? probe_q + 1'b1
                                                                          : last_q + 1'b1;
  end

endmodule
