"""Mutants of the edges of a link."""

from flow.mutants.checks import bench, proof

# A long trace of the Rust model, a slot a cycle.
RX = "tb/em_phy_rx -k models and 100-fair"
TX = "tb/em_phy_tx -k models and 100-fair"

MUTANTS = [
    (
        "phy/em_scrambler.sv",
        "localparam int unsigned NearTap = 39;",
        "localparam int unsigned NearTap = 38;",
        [bench("em_scrambler"), proof("em_descrambler")],
    ),
    (
        "phy/em_descrambler.sv",
        "else if (valid_i) history_q",
        "else history_q",
        [bench("em_descrambler"), proof("em_descrambler")],
    ),
    (
        "phy/em_control_decode.sv",
        "is_edm && is_sub_type && !is_crc;",
        "is_edm && !is_crc;",
        [bench("em_control_decode")],
    ),
    (
        "phy/em_link_faults.sv",
        "localparam logic [1:0] SignalRepeats = 2'd3;",
        "localparam logic [1:0] SignalRepeats = 2'd2;",
        [RX],
    ),
    (
        "phy/em_link_faults.sv",
        "fault_heard == wanted.failure;\n        end",
        "1'b1;\n        end",
        [RX],
    ),
    (
        "phy/em_message_verdict.sv",
        "framed_corrupt = count_i > 1 || (count_i == 1 && !crc32_i);",
        "framed_corrupt = count_i == 1 && !crc32_i;",
        [RX],
    ),
    (
        "phy/em_message_verdict.sv",
        "(octets >> tail) != '0)",
        "(octets >> tail) > 8'd1)",
        [RX],
    ),
    (
        "phy/em_rx_message.sv",
        "octets32  = data ? 4'd8 : is_start ? 4'd5 : 4'd1;",
        "octets32  = data ? 4'd8 : is_start ? 4'd4 : 4'd1;",
        [RX, bench("em_phy_rx") + " -k golden"],
    ),
    (
        "phy/em_rx_message.sv",
        "if (!open_q && !is_start) begin",
        "if (!open_q) begin",
        [RX, bench("em_phy_rx") + " -k golden"],
    ),
    (
        "phy/em_rx_message.sv",
        "else if (failed_i || corrupt_o) open_q <= 1'b0;",
        "else if (corrupt_o) open_q <= 1'b0;",
        [RX],
    ),
    (
        "phy/em_frame_buffer.sv",
        "gap_i && gap_q != '0 && whole_q != '0;",
        "gap_i && whole_q != '0;",
        [RX],
    ),
    (
        "phy/em_frame_buffer.sv",
        "assign at    = drop_i ? start_q : write_q;",
        "assign at    = write_q;",
        [RX],
    ),
    (
        "phy/em_rx_frame.sv",
        "assign upper_half = lane4_q && data;",
        "assign upper_half = 1'b0;",
        [RX],
    ),
    (
        "phy/em_rx_frame.sv",
        "if (!in_frame_q) covered_octets",
        "if (!in_frame_q || terminate) covered_octets",
        [RX],
    ),
    (
        "phy/em_rx_frame.sv",
        "assign sound     = preamble_d && crc_d == Residue",
        "assign sound     = crc_d == Residue",
        [RX],
    ),
    (
        "phy/em_phy_rx.sv",
        ".idle_i     (no_news),",
        ".idle_i     (1'b0),",
        [RX],
    ),
    (
        "phy/em_tx_buffer.sv",
        "'{frame: block_i != Idle, block: block_i};",
        "'{frame: 1'b1, block: block_i};",
        [TX],
    ),
    (
        "phy/em_tx_buffer.sv",
        "ready_q <= left + asked < count_t'(Depth);",
        "ready_q <= count + asked < count_t'(Depth);",
        [TX, proof("em_tx_buffer")],
    ),
    (
        "phy/em_tx_buffer.sv",
        "if (pop && i + 1 < Depth) entries_q[i]",
        "if (pop && i + 2 < Depth) entries_q[i]",
        [TX, proof("em_tx_buffer")],
    ),
    (
        "phy/em_tx_arbiter.sv",
        "localparam logic [1:0] GapSlots = 2'd2;",
        "localparam logic [1:0] GapSlots = 2'd1;",
        [TX],
    ),
    (
        "phy/em_tx_arbiter.sv",
        "memory_was_last_q <= memory_o;",
        "memory_was_last_q <= memory_o && memory_framed_i;",
        [TX, proof("em_tx_arbiter")],
    ),
    (
        "phy/em_phy_tx.sv",
        "localparam logic [2:0] FirstIdles = 3'd4;",
        "localparam logic [2:0] FirstIdles = 3'd3;",
        [TX],
    ),
    (
        "phy/em_phy_tx.sv",
        "cut_q <= silent || (cut_q",
        "cut_q <= cut_q && (cut_q",
        [TX],
    ),
    (
        "phy/em_phy_tx.sv",
        "chosen = memory_i.valid ? memory_i.block : Abort;",
        "chosen = memory_i.block;",
        [bench("em_phy_tx") + " -k faults"],
    ),
    (
        "phy/em_tx_buffer.sv",
        "assign overrun_o = slot_i && valid_i && asked_q == '0;",
        "assign overrun_o = 1'b0;",
        [bench("em_phy_tx") + " -k faults", proof("em_tx_buffer")],
    ),
    (
        "phy/em_xgmii_pkg.sv",
        "8'h7c:      return '{known: 1'b1, code: 7'h4b};",
        "8'h7c:      return '{known: 1'b1, code: 7'h4c};",
        [bench("em_xgmii_pair")],
    ),
    (
        "phy/em_xgmii_enc.sv",
        "(coded & Behind) == Behind;",
        "1'b1;",
        [bench("em_xgmii_pair")],
    ),
    (
        "phy/em_xgmii_dec.sv",
        "end else if (!known[i]) begin",
        "end else if (!known[0]) begin",
        [bench("em_xgmii_pair")],
    ),
    (
        "phy/em_block_sync.sv",
        "(!lock_q || wrongs == WrongMax);",
        "wrongs == WrongMax;",
        [bench("em_block_sync")],
    ),
    (
        "phy/em_block_sync.sv",
        "hi_ber_q <= errors == BerWidth'(BerHeaders);",
        "hi_ber_q <= 1'b0;",
        [bench("em_block_sync")],
    ),
    (
        "phy/em_phy.sv",
        "else if (crosses) tx_state_q <= crossed;",
        "else if (crosses) tx_state_q.up <= crossed.up;",
        [bench("em_phy")],
    ),
]
