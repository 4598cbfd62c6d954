"""Mutants of packages and common parts."""

from flow.mutants.checks import SCHEDULER, bench, proof

MUTANTS = [
    (
        "pkg/em_pkg.sv",
        "logic [14:0] index;\n    logic last;",
        "logic last;\n    logic [14:0] index;",
        ["tb/em_pkg -k holds_what"],
    ),
    (
        "common/em_fifo_sync.sv",
        "assign ready_o = count_q != CountWidth'(Depth);",
        "assign ready_o = 1'b1;",
        [bench("em_fifo_sync"), proof("em_fifo_sync")],
    ),
    (
        "common/em_fifo_sync.sv",
        "if (pop) read_q <= next(read_q);",
        "if (pop && !push) read_q <= next(read_q);",
        [bench("em_fifo_sync"), proof("em_fifo_sync")],
    ),
    (
        "common/em_fifo_async.sv",
        "{~read_gray_seen[IndexWidth-:2],",
        "{~read_gray_seen[IndexWidth], read_gray_seen[IndexWidth-1],",
        [bench("em_fifo_async"), proof("em_fifo_async")],
    ),
    (
        "common/em_fifo_async.sv",
        "write_gray_q <= gray(write_d);",
        "write_gray_q <= gray(write_d + 1'b1);",
        [bench("em_fifo_async"), proof("em_fifo_async")],
    ),
    (
        "common/em_sync.sv",
        "assign data_o = second_q;",
        "assign data_o = first_q;",
        [bench("em_fifo_async") + " -k 66-8"],
    ),
    (
        "common/em_arb_prio.sv",
        "(~request_i + 1'b1)",
        "(~request_i - 1'b1)",
        [bench("em_arb_prio"), proof("em_arb_rr")],
    ),
    (
        "common/em_arb_rr.sv",
        "above_q <= ~(grant_o | (grant_o - 1'b1));",
        "above_q <= ~(grant_o - 1'b1);",
        [bench("em_arb_rr"), proof("em_arb_rr")],
    ),
    (
        "common/em_min_tree.sv",
        "key[2*n+1] < key[2*n])",
        "key[2*n+1] <= key[2*n])",
        [bench("em_min_tree"), proof("em_min_tree")],
    ),
    (
        "common/em_ordered_list.sv",
        "elements_q[i].key > insert_key_i;",
        "elements_q[i].key >= insert_key_i;",
        [bench("em_ordered_list"), proof("em_ordered_list")],
    ),
    (
        "common/em_ordered_list.sv",
        "? (Top || after[Up]) : after[i]",
        "? after[i] : after[i]",
        [bench("em_ordered_list"), proof("em_ordered_list")],
    ),
    (
        "common/em_crc.sv",
        "if (octets_i != '0) begin",
        "if (octets_i[CountWidth-1:1] != '0) begin",
        [bench("em_crc")],
    ),
    (
        "common/em_crc.sv",
        "assign rest    = crc_i >> bits;",
        "assign rest    = '0;",
        [bench("em_crc")],
    ),
    (
        "common/em_crc8.sv",
        "({content_i, sub_type_i})",
        "({sub_type_i, content_i})",
        [bench("em_crc8"), bench("em_control_decode")],
    ),
    (
        "common/em_crc16.sv",
        "16'h1021",
        "16'h8005",
        [bench("em_crc")],
    ),
    (
        "common/em_crc32c.sv",
        "32'h1edc6f41",
        "32'h04c11db7",
        [bench("em_crc")],
    ),
    (
        "common/em_crc32.sv",
        "32'h04c11db7",
        "32'h1edc6f41",
        [bench("em_crc")],
    ),
    (
        "common/em_stage.sv",
        "data_q <= data_i;",
        "data_q <= data_q | data_i;",
        [SCHEDULER],
    ),
    (
        "common/em_ram.sv",
        "if (read_i) data_q",
        "data_q",
        [bench("em_fifo_ram"), proof("em_fifo_ram")],
    ),
    (
        "common/em_fifo_ram.sv",
        "if (direct) words_q[behind] <= data_i;",
        "if (direct) words_q[next_q] <= data_i;",
        [bench("em_fifo_ram"), proof("em_fifo_ram")],
    ),
]
