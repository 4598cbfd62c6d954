/// em_ordered_list shows the least eligible element, equal keys in order of arrival, and removes by
/// identity.
///
/// The proof watches any two identities. Beside the list it records where each is, what it carries
/// and which came first. What the list shows must be one that is there, as it came; and it
/// is never the worse of the two while the better is eligible. Others come and go as they like.
module em_ordered_list_proof #(
    parameter int unsigned Depth = 3,
    parameter int unsigned KeyWidth = 2,
    parameter int unsigned IdWidth = 2,
    parameter int unsigned Groups = 2
) (
    input logic                clk_i,
    input logic                insert_i,
    input logic [KeyWidth-1:0] insert_key_i,
    input logic [IdWidth-1:0]  insert_id_i,
    input logic                insert_group_i,
    input logic                remove_i,
    input logic [IdWidth-1:0]  remove_id_i,
    input logic [Groups-1:0]   eligible_i,
    input logic [IdWidth-1:0]  watched_i[2]
);

  typedef struct packed {
    logic                there;
    logic [KeyWidth-1:0] key;
    logic                group;
  } seen_t;

  logic rst_n = 1'b0;
  logic [IdWidth-1:0] watched_q[2];
  logic ready, missed, least_valid, least_group, insert;
  logic [KeyWidth-1:0] least_key;
  logic [IdWidth-1:0] least_id;
  seen_t seen_q[2];
  // The first of the two came before the second.
  logic first_q;
  int unsigned count_q = 0;

  em_ordered_list #(
      .Depth   (Depth),
      .KeyWidth(KeyWidth),
      .IdWidth (IdWidth),
      .Groups  (Groups)
  ) u_dut (
      .clk_i,
      .rst_ni         (rst_n),
      .insert_valid_i (insert_i),
      .insert_ready_o (ready),
      .insert_key_i,
      .insert_id_i,
      .insert_group_i,
      .remove_i,
      .remove_id_i,
      .remove_missed_o(missed),
      .eligible_i,
      .least_valid_o  (least_valid),
      .least_key_o    (least_key),
      .least_id_o     (least_id),
      .least_group_o  (least_group)
  );

  assign insert = insert_i && ready;

  logic [1:0] eligible, better;
  for (genvar w = 0; w < 2; w++) begin : gen_watched
    assign eligible[w] = seen_q[w].there && eligible_i[seen_q[w].group];

    always_ff @(posedge clk_i) begin
      if (!rst_n) seen_q[w] <= '0;
      else begin
        // Identities differ, as the list demands.
        if (insert && insert_id_i == watched_q[w]) begin
          assume (!seen_q[w].there);
          seen_q[w] <= '{there: 1'b1, key: insert_key_i, group: insert_group_i};
        end
        if (remove_i && remove_id_i == watched_q[w]) begin
          assert (missed == !seen_q[w].there);
          if (seen_q[w].there) seen_q[w].there <= 1'b0;
        end
        if (eligible[w]) assert (least_valid);
        if (least_valid && least_id == watched_q[w]) begin
          assert (eligible[w]);
          assert (least_key == seen_q[w].key && least_group == seen_q[w].group);
          assert (!(eligible[1-w] && better[1-w]));
        end
      end
    end
  end

  assign better[0] = seen_q[0].key < seen_q[1].key || (seen_q[0].key == seen_q[1].key && first_q);
  assign better[1] = !better[0];

  always_ff @(posedge clk_i) begin
    rst_n <= 1'b1;
    if (!rst_n) begin
      watched_q <= watched_i;
      assume (watched_i[0] != watched_i[1]);
    end else begin
      if (insert && insert_id_i == watched_q[0]) first_q <= 1'b0;
      if (insert && insert_id_i == watched_q[1]) first_q <= 1'b1;
      count_q <= count_q + 32'(insert) - 32'(remove_i && !missed);
      // It takes an element as long as there is room for one, and no longer.
      assert (ready == (count_q < Depth));
    end
  end

endmodule
