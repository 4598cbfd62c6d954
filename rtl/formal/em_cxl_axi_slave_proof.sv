/// em_cxl_axi_slave keeps the rules of AXI4 as a slave, whatever an AXI master does that keeps them
/// too: each access has its responses, one a beat and one a burst, after it and as long as offered.
///
/// By induction at two accesses under way, for any identifier. The cache answers each access once,
/// in any order. What is asserted of the inner state makes the promise hold from any state that
/// satisfies it.
module em_cxl_axi_slave_proof
  import em_cxl_axi_pkg::*;
  import em_cxl_pkg::*;
#(
    parameter int unsigned InFlight = 2
) (
    input logic         clk_i,
    input id_t          watched_i,
    input axi_request_t axi_i,
    input logic         access_ready_i,
    input logic         read_valid_i,
    input id_t          read_id_i,
    input logic         read_good_i,
    input data_t        read_data_i,
    input logic         written_i,
    input id_t          written_id_i,
    input logic         acked_i,
    input id_t          acked_id_i,
    input logic         acked_good_i
);

  logic rst_n = 1'b0;
  id_t watched_q, watch[1];
  axi_response_t response;
  logic access_valid, request_broken, response_broken, shared_broken;
  cache_op_e access_op;
  line_t access_line;
  id_t access_id;
  mask_t access_mask;
  data_t access_data;

  em_cxl_axi_slave #(
      .InFlight(InFlight)
  ) u_dut (
      .clk_i,
      .rst_ni        (rst_n),
      .axi_i,
      .axi_o         (response),
      .access_valid_o(access_valid),
      .access_ready_i,
      .access_op_o   (access_op),
      .access_line_o (access_line),
      .access_id_o   (access_id),
      .access_mask_o (access_mask),
      .access_data_o (access_data),
      .read_valid_i,
      .read_id_i,
      .read_good_i,
      .read_data_i,
      .written_i,
      .written_id_i,
      .acked_i,
      .acked_id_i,
      .acked_good_i
  );

  assign watch[0] = watched_q;
  em_axi_rules #(
      .Asserts(1'b0)
  ) u_rules (
      .clk_i,
      .rst_ni           (rst_n),
      .request_i        (axi_i),
      .response_i       (response),
      .watch_i          (watch),
      .request_broken_o (request_broken),
      .response_broken_o(response_broken),
      .shared_broken_o  (shared_broken)
  );

  // Accesses that the cache has taken and not answered: all, and whether one is watched.
  logic [7:0] reads_q = '0, writes_q = '0;
  logic read_q = 1'b0, write_q = 1'b0, took_read, took_write, read_here, written_here, acked_here;
  assign took_read    = access_valid && access_ready_i && access_op == OpRead;
  assign took_write   = access_valid && access_ready_i && access_op == OpWrite;
  assign read_here    = read_valid_i && read_id_i == watched_q;
  assign written_here = written_i && written_id_i == watched_q;
  assign acked_here   = acked_i && acked_id_i == watched_q;

  always_ff @(posedge clk_i) begin
    if (!rst_n) {reads_q, writes_q, read_q, write_q} <= '0;
    else begin
      reads_q  <= reads_q + 8'(took_read) - 8'(read_valid_i);
      writes_q <= writes_q + 8'(took_write) - 8'(written_i) - 8'(acked_i);
      if (took_read && access_id == watched_q) read_q <= 1'b1;
      else if (read_here) read_q <= 1'b0;
      if (took_write && access_id == watched_q) write_q <= 1'b1;
      else if (written_here || acked_here) write_q <= 1'b0;
    end
  end

  // Responses of the watched identifier in each FIFO, and whether the FIFO is in order.
  logic [1:0] r_here, w_here, a_here;
  logic [7:0] r_count, w_count, a_count;
  for (genvar i = 0; i < 2; i++) begin : gen_places
    // The place `i` behind the head of each.
    logic r_at, w_at, a_at;
    assign r_at = u_dut.u_r.read_q ^ 1'(i);
    assign w_at = u_dut.u_written.read_q ^ 1'(i);
    assign a_at = u_dut.u_acked.read_q ^ 1'(i);
    assign r_here[i] = r_count > 8'(i)
                       && u_dut.u_r.words_q[r_at][$bits(data_t)+:IdBits] == watched_q;
    assign w_here[i] = w_count > 8'(i) && u_dut.u_written.words_q[w_at] == watched_q;
    assign a_here[i] = a_count > 8'(i) && u_dut.u_acked.words_q[a_at][IdBits-1:0] == watched_q;
  end
  assign r_count = 8'(u_dut.u_r.count_q);
  assign w_count = 8'(u_dut.u_written.count_q);
  assign a_count = 8'(u_dut.u_acked.count_q);

  // A beat of the watched burst of writes was lost; and one whose response waits.
  logic lost_q = 1'b0, lost_waits;
  assign lost_waits = (a_here[0] && !u_dut.u_acked.words_q[u_dut.u_acked.read_q][IdBits])
                      || (a_here[1] && !u_dut.u_acked.words_q[!u_dut.u_acked.read_q][IdBits]);
  always_ff @(posedge clk_i) begin
    if (acked_here && !acked_good_i) lost_q <= 1'b1;
    else if (response.aw_ready && axi_i.aw_id == watched_q) lost_q <= 1'b0;
  end

  logic reading, writing, read_burst, write_burst;
  assign reading     = u_dut.reading_q[watched_q];
  assign writing     = u_dut.writing_q[watched_q];
  assign read_burst  = u_dut.read_burst_q.active && u_dut.read_burst_q.id == watched_q;
  assign write_burst = u_dut.write_burst_q.active && u_dut.write_burst_q.id == watched_q;

  always_ff @(posedge clk_i) begin
    rst_n <= 1'b1;
    if (!rst_n) watched_q <= watched_i;
    else begin
      // The world: a master that keeps the rules, and a cache that answers what it took, once.
      assume (!request_broken);
      if (read_valid_i) assume (reads_q != '0 && (read_here ? read_q : reads_q > 8'(read_q)));
      if (written_i || acked_i) assume (8'(written_i) + 8'(acked_i) <= writes_q);
      assume (!(written_here && acked_here));
      if (written_here || acked_here) assume (write_q);
      if (!written_here && !acked_here) begin
        assume (8'(written_i) + 8'(acked_i) + 8'(write_q) <= writes_q);
      end

      // The promise.
      assert (!response_broken && !shared_broken);

      // Counts: what is under way waits in the cache or in a FIFO, which has a place for it.
      assert (8'(u_dut.reads_q) == reads_q + r_count && 8'(u_dut.reads_q) <= 8'(InFlight));
      assert (8'(u_dut.writes_q) == writes_q + w_count + a_count);
      assert (8'(u_dut.writes_q) <= 8'(InFlight));
      assert (r_count <= 8'(InFlight) && w_count <= 8'(InFlight) && a_count <= 8'(InFlight));
      assert ((u_dut.u_r.write_q ^ u_dut.u_r.read_q) == r_count[0]);
      assert ((u_dut.u_written.write_q ^ u_dut.u_written.read_q) == w_count[0]);
      assert ((u_dut.u_acked.write_q ^ u_dut.u_acked.read_q) == a_count[0]);

      // One read of the identifier, in the cache or in the FIFO; the same of its writes.
      assert (2'(reading) == 2'(read_q) + 2'(r_here[0]) + 2'(r_here[1]));
      assert (3'(writing) == 3'(write_q) + 3'(w_here[0]) + 3'(w_here[1]) + 3'(a_here[0])
              + 3'(a_here[1]));
      assert (8'(read_q) <= reads_q && 8'(write_q) <= writes_q);
      assert (reads_q <= 8'(InFlight) && writes_q <= 8'(InFlight));

      // A burst goes on until its last beat has been taken.
      assert (u_rules.reading_q[0] == (reading || read_burst));
      if (u_rules.reading_q[0]) begin
        assert (u_rules.left_q[0] == (read_burst ? u_dut.read_burst_q.left + burst_t'(reading)
                                                 : '0));
      end
      if (read_burst && reading) assert (u_dut.read_burst_q.left != '1);
      if (reading) assert (u_dut.read_last_q[watched_q] == !read_burst);
      assert (u_rules.writing_q[0] == (writing || write_burst));
      assert (u_rules.written_q[0] == (writing && !write_burst));
      if (writing) assert (u_dut.write_last_q[watched_q] == !write_burst);
      if (w_here != '0 || a_here != '0) assert (u_dut.write_last_q[watched_q]);

      // B says whether a beat was lost.
      if (response.b_valid && response.b_id == watched_q) assert (response.b_error == lost_q);
      if (writing || write_burst) begin
        assert (lost_q == (u_dut.lost_q[watched_q] || lost_waits));
      end

      // The burst whose data still comes.
      assert (u_rules.known_q == u_dut.write_burst_q.active && !u_rules.data_ended_q);
      if (u_rules.known_q) begin
        assert (u_rules.id_q == u_dut.write_burst_q.id);
        assert (u_rules.beat_q != '0 && u_rules.beat_q <= u_rules.len_q);
        assert (u_rules.len_q - u_rules.beat_q == u_dut.write_burst_q.left);
      end else assert (u_rules.beat_q == '0);

      // What was offered and not taken is still the one to be offered.
      if (u_rules.r_waits_q) begin
        assert (r_count != '0);
        assert ({u_rules.response_q.r_error, u_rules.response_q.r_id, u_rules.response_q.r_data}
                == u_dut.u_r.words_q[u_dut.u_r.read_q]);
        if (u_rules.response_q.r_id == watched_q) begin
          assert (u_rules.response_q.r_last == u_dut.read_last_q[watched_q]);
        end
      end
      assert (u_rules.b_waits_q == u_dut.b_busy_q);
      if (u_dut.b_busy_q) begin
        assert (u_dut.b_acked_q ? a_count != '0 : w_count != '0);
        if (u_rules.response_q.b_id == watched_q) begin
          assert (u_dut.b_acked_q ? a_here[0] : w_here[0]);
          assert (u_rules.response_q.b_error == (u_dut.lost_q[watched_q] || (u_dut.b_acked_q
                  && !u_dut.u_acked.words_q[u_dut.u_acked.read_q][IdBits])));
        end
      end
    end
  end

endmodule
