/// A list in order of keys, equal keys in order of arrival; it shows the least *eligible* element.
///
/// An element belongs to a group and is eligible while its group is. It is removed by its identity
/// and not as "the head": others may arrive between the look and the removal. One insertion and one
/// removal may happen per cycle, both at once if need be. Registers shift, so it costs a comparator
/// per element; the identities in the list must differ.
module em_ordered_list #(
    parameter int unsigned Depth = 24,
    parameter int unsigned KeyWidth = 16,
    parameter int unsigned IdWidth = 8,
    parameter int unsigned Groups = 8,
    localparam int unsigned GroupWidth = (Groups > 1) ? $clog2(Groups) : 1
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic                  insert_valid_i,
    /// A full list takes nothing, even while an element is removed.
    output logic                  insert_ready_o,
    input  logic [KeyWidth-1:0]   insert_key_i,
    input  logic [IdWidth-1:0]    insert_id_i,
    input  logic [GroupWidth-1:0] insert_group_i,

    input  logic               remove_i,
    input  logic [IdWidth-1:0] remove_id_i,
    /// The element to be removed is not in the list: nothing changes.
    output logic               remove_missed_o,

    input  logic [Groups-1:0]     eligible_i,
    output logic                  least_valid_o,
    output logic [KeyWidth-1:0]   least_key_o,
    output logic [IdWidth-1:0]    least_id_o,
    output logic [GroupWidth-1:0] least_group_o
);

  typedef struct packed {
    logic [KeyWidth-1:0]   key;
    logic [IdWidth-1:0]    id;
    logic [GroupWidth-1:0] group;
  } element_t;

  element_t elements_q[Depth];
  element_t inserted;
  logic [Depth-1:0] valid_q, valid_d, named, from_named, after, first;
  element_t left[Depth], elements_d[Depth];
  logic [Depth-1:0] left_valid, left_after;
  logic insert, remove;

  assign inserted       = '{key: insert_key_i, id: insert_id_i, group: insert_group_i};
  assign insert_ready_o = !valid_q[Depth-1];
  assign insert         = insert_valid_i && insert_ready_o;

  for (genvar i = 0; i < Depth; i++) begin : gen_compare
    assign named[i] = valid_q[i] && elements_q[i].id == remove_id_i;
    // What goes behind the inserted one: only what is greater, so that equals keep their order.
    assign after[i] = !valid_q[i] || elements_q[i].key > insert_key_i;
    assign from_named[i] = |named[i:0];
  end
  assign remove          = remove_i && from_named[Depth-1];
  assign remove_missed_o = remove_i && !from_named[Depth-1];

  // What is left without the removed one, then with the inserted one.
  for (genvar i = 0; i < Depth; i++) begin : gen_next
    localparam int unsigned Up = (i + 1 < Depth) ? i + 1 : i;
    localparam bit Top = i + 1 == Depth;
    logic gone;
    assign gone          = remove && from_named[i];
    assign left[i]       = gone ? elements_q[Up] : elements_q[i];
    assign left_valid[i] = gone ? (!Top && valid_q[Up]) : valid_q[i];
    assign left_after[i] = gone ? (Top || after[Up]) : after[i];

    if (i == 0) begin : gen_lowest
      assign elements_d[i] = (insert && left_after[i]) ? inserted : left[i];
      assign valid_d[i]    = insert || left_valid[i];
    end else begin : gen_upper
      always_comb begin
        elements_d[i] = left[i];
        valid_d[i]    = left_valid[i];
        if (insert && left_after[i]) begin
          elements_d[i] = left_after[i-1] ? left[i-1] : inserted;
          valid_d[i]    = left_valid[i-1];
        end
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) valid_q <= '0;
    else if (insert || remove) valid_q <= valid_d;
  end

  always_ff @(posedge clk_i) begin
    if (insert || remove) elements_q <= elements_d;
  end

  logic [Depth-1:0] eligible;
  for (genvar i = 0; i < Depth; i++) begin : gen_eligible
    assign eligible[i] = valid_q[i] && eligible_i[elements_q[i].group];
  end

  em_arb_prio #(
      .Requests(Depth)
  ) u_first (
      .request_i(eligible),
      .grant_o  (first)
  );

  assign least_valid_o = eligible != '0;

  always_comb begin
    {least_key_o, least_id_o, least_group_o} = '0;
    for (int unsigned i = 0; i < Depth; i++) begin
      {least_key_o, least_id_o, least_group_o} |= elements_q[i] & {$bits(element_t) {first[i]}};
    end
  end

endmodule
