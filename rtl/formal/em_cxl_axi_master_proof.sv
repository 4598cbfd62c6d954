/// em_cxl_axi_master keeps the rules of AXI4 as a master, whatever a memory does that keeps them
/// too; it ends each request once, under its place and with its identifier; and two accesses of one
/// line are never under way together if one of them writes.
///
/// By induction with two slots, for any place. What is asserted of the inner state makes the
/// promise hold from any state that satisfies it.
module em_cxl_axi_master_proof
  import em_cxl_axi_pkg::*;
  import em_cxl_pkg::*;
#(
    parameter int unsigned PlaceBits = 4
) (
    input logic                 clk_i,
    input logic [PlaceBits-1:0] watched_i,
    input logic                 valid_i,
    input logic [PlaceBits-1:0] place_i,
    input request_t             request_i,
    input axi_response_t        axi_i
);

  localparam int unsigned Slots = 2;

  logic rst_n = 1'b0;
  logic [PlaceBits-1:0] watched_q, complete_place;
  logic ready, complete, request_broken, response_broken, shared_broken;
  axi_request_t axi;
  response_t response;
  id_t watch[Slots];

  em_cxl_axi_master #(
      .Slots    (Slots),
      .PlaceBits(PlaceBits)
  ) u_dut (
      .clk_i,
      .rst_ni             (rst_n),
      .valid_i,
      .ready_o            (ready),
      .place_i,
      .request_i,
      .axi_o              (axi),
      .axi_i,
      .complete_o         (complete),
      .complete_place_o   (complete_place),
      .complete_response_o(response)
  );

  assign watch[0] = 8'd0;
  assign watch[1] = 8'd1;
  em_axi_rules #(
      .Watches(Slots),
      .Asserts(1'b0)
  ) u_rules (
      .clk_i,
      .rst_ni           (rst_n),
      .request_i        (axi),
      .response_i       (axi_i),
      .watch_i          (watch),
      .request_broken_o (request_broken),
      .response_broken_o(response_broken),
      .shared_broken_o  (shared_broken)
  );

  // The watched request, from when it was taken until it ends.
  logic pending_q = 1'b0, pending_reads_q, takes, ends;
  id_t pending_id_q;
  assign takes = valid_i && ready && place_i == watched_q;
  assign ends  = complete && complete_place == watched_q;

  // Slots that wait for an address, for data, or in the FIFO of writes that have ended.
  logic [Slots-1:0] asks_ar, asks_aw, asks_w, wrote, here, reads, writes;
  logic [1:0] count;
  assign count = u_dut.u_wrote.count_q;
  for (genvar s = 0; s < Slots; s++) begin : gen_slots
    logic [1:0] found;
    logic other;
    assign asks_ar[s] = u_dut.ar_valid_q && u_dut.slot_q == 1'(s);
    assign asks_aw[s] = u_dut.aw_valid_q && u_dut.slot_q == 1'(s);
    assign asks_w[s]  = u_dut.w_valid_q && u_dut.slot_q == 1'(s);
    assign reads[s]   = u_dut.busy_q[s] && !u_dut.accesses_q[s].writes;
    assign writes[s]  = u_dut.busy_q[s] && u_dut.accesses_q[s].writes;
    assign here[s]    = u_dut.busy_q[s] && u_dut.accesses_q[s].place == watched_q;
    assign other      = !u_dut.u_wrote.read_q;
    assign found[0]   = count != '0 && u_dut.u_wrote.words_q[u_dut.u_wrote.read_q][0] == 1'(s);
    assign found[1]   = count == 2'd2 && u_dut.u_wrote.words_q[other][0] == 1'(s);
    assign wrote[s]   = found != '0;
    always_ff @(posedge clk_i) if (rst_n) assert (found != '1);
  end

  always_ff @(posedge clk_i) begin
    if (!rst_n) pending_q <= 1'b0;
    else if (takes) begin
      pending_q       <= 1'b1;
      pending_reads_q <= request_i.ask == AskRead;
      pending_id_q    <= request_i.id;
    end else if (ends) pending_q <= 1'b0;
  end

  always_ff @(posedge clk_i) begin
    rst_n <= 1'b1;
    if (!rst_n) watched_q <= watched_i;
    else begin
      // The world: a memory that keeps the rules, and places that are under way once.
      assume (!response_broken);
      if (axi_i.r_valid) assume (axi_i.r_id < 8'(Slots));
      if (axi_i.b_valid) assume (axi_i.b_id < 8'(Slots));
      if (takes) assume (!pending_q);

      // The promise.
      assert (!request_broken && !shared_broken);
      if (ends) begin
        assert (pending_q && response.is_read == pending_reads_q && response.id == pending_id_q);
      end
      if (u_dut.busy_q == '1 && u_dut.accesses_q[0].line == u_dut.accesses_q[1].line) begin
        assert (writes == '0);
      end

      // One slot has the watched place while its request is under way.
      assert (here != '1 && pending_q == (here != '0));
      for (int unsigned s = 0; s < Slots; s++) begin
        if (here[s]) begin
          assert (u_dut.accesses_q[s].id == pending_id_q);
          assert (u_dut.accesses_q[s].writes == !pending_reads_q);
        end
        // What the rules know of a slot is what the slot waits for.
        assert (u_rules.reading_q[s] == (reads[s] && !asks_ar[s]));
        if (u_rules.reading_q[s]) assert (u_rules.left_q[s] == '0);
        assert (u_rules.writing_q[s] == (writes[s] && !asks_aw[s] && !wrote[s]));
        assert (u_rules.written_q[s] == (writes[s] && !asks_aw[s] && !asks_w[s] && !wrote[s]));
        if (asks_ar[s]) assert (reads[s]);
        if (asks_aw[s] || asks_w[s] || wrote[s]) assert (writes[s]);
        if (wrote[s]) assert (!asks_aw[s] && !asks_w[s]);
      end
      assert (count <= 2'd2 && (u_dut.u_wrote.write_q ^ u_dut.u_wrote.read_q) == count[0]);
      assert (u_rules.known_q == (u_dut.w_valid_q && !u_dut.aw_valid_q));
      assert (u_rules.data_ended_q == (u_dut.aw_valid_q && !u_dut.w_valid_q));
      assert (u_rules.beat_q == '0 && !u_rules.r_waits_q && !u_rules.b_waits_q);
      if (u_rules.known_q) begin
        assert (u_rules.len_q == '0 && u_rules.id_q == id_t'(u_dut.slot_q));
      end

      // What was offered and not taken is still offered.
      if (u_rules.ar_waits_q) begin
        assert (u_dut.ar_valid_q && u_rules.request_q.ar_id == axi.ar_id);
        assert (u_rules.request_q.ar_line == axi.ar_line && u_rules.request_q.ar_len == '0);
      end
      if (u_rules.aw_waits_q) begin
        assert (u_dut.aw_valid_q && u_rules.request_q.aw_id == axi.aw_id);
        assert (u_rules.request_q.aw_line == axi.aw_line && u_rules.request_q.aw_len == '0);
      end
      if (u_rules.w_waits_q) begin
        assert (u_dut.w_valid_q && u_rules.request_q.w_data == axi.w_data);
        assert (u_rules.request_q.w_strb == axi.w_strb && u_rules.request_q.w_last);
      end
    end
  end

endmodule
