"""Corrupts each module and shows that its tests see it: `make rtl-mutate`.

A mutant is a copy of rtl/ with one change. Every check named beside it must fail on it, by a test
or a proof and not because it does not compile. With an argument, only checks that have it in them.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from flow import mutate_classes, mutate_switch, tools

HOST = "tb/em_host_pair/test_em_host_pair.py -k 3"
HOST_FAULTS = "tb/em_host_pair/test_em_host_faults.py"
HOST_GRANTS = "tb/em_host_grants"
SCHEDULER = "tb/em_scheduler -k golden and -4"
# A long trace of the Rust model, a slot a cycle.
RX = "tb/em_phy_rx -k models and 100-fair"
TX = "tb/em_phy_tx -k models and 100-fair"


def bench(module):
    """The bench of a module."""
    return f"tb/{module}"


def proof(module):
    """The proof of a module."""
    return f"formal -k {module}_proof"


# File, what it says, what the mutant says, the checks that must see it.
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
        "host/em_encode_control.sv",
        "{payload: control, header: SyncControl}",
        "{payload: control, header: SyncData}",
        [bench("em_encode_request"), bench("em_encode_chunk")],
    ),
    (
        "host/em_encode_request.sv",
        "covered[4+:NodeBits]   = '0;",
        "",
        [bench("em_encode_request")],
    ),
    (
        "host/em_encode_chunk.sv",
        "(left > bytes_t'(i))",
        "(left >= bytes_t'(i))",
        [bench("em_encode_chunk")],
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
    (
        "host/em_host_ram.sv",
        "is_forward_q <= write_i && write_address_i == read_address_i;",
        "is_forward_q <= 1'b0;",
        ["tb/em_host_ram"],
    ),
    (
        "host/em_host_ring.sv",
        "write_q <= kept_q;",
        "write_q <= write_q;",
        [HOST_FAULTS],
    ),
    (
        "host/em_host_timers.sv",
        "&& !late[TimeBits-1];",
        "&& late[TimeBits-1];",
        [HOST_FAULTS],
    ),
    (
        "host/em_host_write_data.sv",
        "if (hold_i) released[hold_slot_i] = 1'b0;",
        "",
        [HOST],
    ),
    (
        "host/em_host_check.sv",
        "|| request_i.bytes > bytes_t'(MessageBytes)",
        "",
        [HOST_FAULTS],
    ),
    (
        "host/em_host_rows.sv",
        ": destination_i.writes_active == '0);",
        ": 1'b1);",
        [HOST],
    ),
    (
        "host/em_host_rows.sv",
        "GenerationBits'(!close_exposed_i);",
        "GenerationBits'(1'b0);",
        [HOST_FAULTS],
    ),
    (
        "host/em_host_entries.sv",
        "~ended_q & ~cancelled_q & ~posted_q;",
        "~ended_q & ~cancelled_q;",
        [HOST_FAULTS],
    ),
    (
        "host/em_host_choice.sv",
        "op_o   = sent ? OpSent : OpExpired;",
        "op_o   = OpSent;",
        [HOST_FAULTS],
    ),
    (
        "host/em_host_destinations.sv",
        "forgotten.down = !resetting_q;",
        "forgotten.down = 1'b0;",
        [HOST_FAULTS],
    ),
    (
        "host/em_host_effects.sv",
        "does_o.cancel = state_i.open && !state_i.write;",
        "does_o.cancel = 1'b0;",
        [HOST_FAULTS],
    ),
    (
        "host/em_host_core.sv",
        "? StPump : StIdle;\n      StPump:",
        "? StIdle : StIdle;\n      StPump:",
        [HOST],
    ),
    (
        "host/em_host_chunk.sv",
        "(item_q.kind == ItemRequest || item_q.bytes == due);",
        "1'b1;",
        [HOST_FAULTS],
    ),
    (
        "host/em_host_chunk.sv",
        "if (!sent_q_valid) state_d",
        "if (1'b1) state_d",
        [HOST_FAULTS],
    ),
    (
        "host/em_host_chunk.sv",
        "assign sent_valid_o  = sent_q_valid && (sent_started_q || down_i);",
        "assign sent_valid_o  = sent_q_valid;",
        [HOST],
    ),
    (
        "host/em_host_responses.sv",
        "phase: word_i.phase, words:",
        "phase: '0, words:",
        [HOST],
    ),
    (
        "host/em_host_mux.sv",
        "assign second = open_q ? second_q : choice;",
        "assign second = choice;",
        [HOST],
    ),
    (
        "host/em_host_data.sv",
        "(is_response ? response_data : write_data),",
        "(response_data),",
        [HOST],
    ),
    (
        "host/em_host_tx.sv",
        "assign reply_ready_o = down_i || (control_ready && !core_valid && !refusal_valid);",
        "assign reply_ready_o = down_i || control_ready;",
        [HOST],
    ),
    (
        "host/em_host_parse.sv",
        "if (memory_i.ending != EndSound)",
        "if (memory_i.ending == EndAborted)",
        [HOST_FAULTS],
    ),
    (
        "host/em_host_peers.sv",
        "is_new        = !served.seen || is_after(id.generation, served.generation);",
        "is_new        = 1'b1;",
        [HOST_FAULTS],
    ),
    (
        "host/em_host_peers.sv",
        "if (offset != stored_d.received) stored_d.broken = 1'b1;",
        "",
        [HOST_FAULTS],
    ),
    (
        "host/em_host_reads.sv",
        "offset == read.moved &&",
        "1'b1 &&",
        [HOST_FAULTS],
    ),
    (
        "host/em_host_reads.sv",
        "&& !is_data && out.is_event && !flush_i\n      && (!valid_q || read_tready_i);",
        "&& out.is_event && !flush_i;",
        [HOST],
    ),
    (
        "host/em_host_memory.sv",
        "command_valid && is_read && write_quiet && !rmw_busy;",
        "command_valid && is_read && !rmw_busy;",
        [HOST],
    ),
    (
        "host/em_host_acks.sv",
        "assign failed        = done_q.error || (kept && !done_q.first);",
        "assign failed        = done_q.error;",
        [HOST_FAULTS],
    ),
    (
        "host/em_axi_write.sv",
        "|| beat_q[BeatBits-1:0] == '1;",
        ";",
        [HOST],
    ),
    (
        "host/em_axi_read.sv",
        "swallow        = lane != '0 && beat_q == '0 && job_beats != count_t'(1);",
        "swallow        = lane != '0 && beat_q == '0;",
        [HOST],
    ),
    (
        "host/em_rmw.sv",
        "stores_o = old_i == operands_i[0];",
        "stores_o = 1'b1;",
        [HOST],
    ),
    (
        "host/em_host_rmw.sv",
        "if (m_axi_rresp_i != '0) code_q <= StatusBadAddress;",
        "",
        [HOST_FAULTS],
    ),
    (
        "host/em_host_grants.sv",
        "assign crossing    = waits ? waiting : item_i;",
        "assign crossing    = item_i;",
        [HOST_GRANTS],
    ),
    (
        "host/em_host_link.sv",
        "StForget: if (!forgetting_i && quiet_i && flushed_i)",
        "StForget: if (!forgetting_i && quiet_i)",
        [HOST_FAULTS],
    ),
    (
        "host/em_host_rx.sv",
        "remote: arrival.code != StatusOk, code: arrival.code};",
        "remote: 1'b1, code: arrival.code};",
        [HOST],
    ),
    (
        "host/em_host.sv",
        ".read_ready_i (1'b1),",
        ".read_ready_i (!down_tx),",
        [HOST_FAULTS],
    ),
    (
        "sched/em_sched_matcher.sv",
        "assign asks[d] = request_q[d] && asked_q[d] == PortWidth'(s);",
        "assign asks[d] = request_q[d];",
        [SCHEDULER, proof("em_sched_matcher")],
    ),
    (
        "sched/em_sched_matcher.sv",
        "request_response_q[d] <= response_i[asked[d]][d];",
        "request_response_q[d] <= response_i[d][d];",
        [SCHEDULER, proof("em_sched_matcher")],
    ),
    (
        "sched/em_sched_hold.sv",
        "assign mutual[p] = enable_i &&",
        "assign mutual[p] = !enable_i &&",
        [SCHEDULER],
    ),
    (
        "sched/em_sched_flow.sv",
        "assign head_late      = left != '0 &&",
        "assign head_late      = 1'b0 &&",
        [SCHEDULER],
    ),
    (
        "sched/em_sched_pair.sv",
        "reverse_time_i < write.arrival",
        "reverse_time_i > write.arrival",
        [SCHEDULER],
    ),
    (
        "sched/em_sched_port.sv",
        "if (end_d.left > 0) end_d = charge(end_d, in_mark_q, config_i);",
        "",
        [SCHEDULER],
    ),
    (
        "sched/em_sched_pkg.sv",
        "return (bytes + bytes_t'(7)) >> 3;",
        "return bytes >> 3;",
        [SCHEDULER],
    ),
    (
        "sched/em_scheduler.sv",
        "assign granted[p]  = last[p] ? remaining[p][d] : Chunk;",
        "assign granted[p]  = Chunk;",
        [SCHEDULER],
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
    *mutate_switch.MUTANTS,
    *mutate_classes.MUTANTS,
]


def sees(folder, check):
    """Whether a check fails on a mutant as it should: a test ran and failed."""
    path, _, expression = check.partition(" -k ")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    command += [str(folder / "rtl" / path)]
    command += ["-k", expression] if expression else []
    cache = os.environ.get("CCACHE_DIR", str(tools.OUT / "ccache"))
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ
        | {
            "CCACHE_DIR": cache,
            "MODEL_ROOT": str(tools.ROOT),
            "PYTHONPATH": str(folder / "rtl"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    (folder / "last.log").write_text(done.stdout + done.stderr, encoding="utf-8")
    compiles = "%Error" not in done.stdout and ": ERROR: " not in done.stdout
    return done.returncode == 1 and compiles


def make(number, path, old, new):
    """A copy of rtl/ and of what its tests read, with one change."""
    folder = tools.OUT / "mutants" / f"{number:02}"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(tools.RTL, folder / "rtl", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "golden").symlink_to(tools.GOLDEN, target_is_directory=True)
    changed = folder / "rtl" / path
    text = changed.read_text(encoding="utf-8")
    if text.count(old) != 1:
        raise SystemExit(f"{path}: {old!r} is there {text.count(old)} times, not once")
    changed.write_text(text.replace(old, new), encoding="utf-8")
    return folder


def main(word=""):
    """Runs the checks that have `word` in them on their mutants; gives the exit code."""
    killed, survived = 0, 0
    for number, (path, old, new, checks) in enumerate(MUTANTS):
        folder = make(number, path, old, new)
        for check in checks:
            if word not in check:
                continue
            if sees(folder, check):
                killed += 1
                print(f"killed   {path}: {new!r} by {check}", flush=True)
            else:
                survived += 1
                kept = (folder / "last.log").rename(folder.with_suffix(f".{survived}.log"))
                print(f"SURVIVED {path}: {new!r}, {check}: {kept}", flush=True)
        shutil.rmtree(folder)
    modules = {Path(path).stem for path, *_ in MUTANTS}
    print(f"{len(modules)} modules, {killed} killed, {survived} survived", flush=True)
    return 1 if survived or not killed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
