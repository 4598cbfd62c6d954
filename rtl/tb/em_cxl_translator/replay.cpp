// Replays what the Rust model's translator does on the Verilated em_cxl_translator: the same
// operations in the same order must lead to the same lines, by as many reads of the table, and each
// translation must take its cycles. Reads a trace of `translator_trace` from the standard input.

#include <cstdint>
#include <cstdio>
#include <map>
#include <random>
#include <string>

#include "../coverage.h"
#include "../cxl_trace.h"
#include "Vem_cxl_translator.h"
#include "verilated.h"

namespace {

using cxl_trace::fail;

class Bench {
 public:
  Bench() {
    dut_.clk_i = dut_.rst_ni = 0;
    dut_.valid_i = 0;
    for (int half = 0; half < 6; half++) {
      dut_.eval();
      dut_.clk_i = !dut_.clk_i;
    }
    dut_.rst_ni = 1;
  }

  void low() {
    dut_.clk_i = 0;
    dut_.eval();
  }

  void high() {
    dut_.clk_i = 1;
    dut_.eval();
    now_++;
  }

  Vem_cxl_translator dut_;
  em::Coverage coverage_;
  uint64_t now_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  Verilated::commandArgs(argc, argv);
  Bench bench;
  auto& dut = bench.dut_;
  std::mt19937 draws(1);
  std::map<std::string, uint64_t> counts;
  unsigned op, found, full, reads;
  unsigned long long node, line, frame, result;
  while (std::scanf("%u %llx %llx %llx %u %u %llx %x", &op, &node, &line, &frame, &found, &full,
                    &result, &reads) == 8) {
    for (unsigned gap = draws() % 3; gap > 0; gap--) {
      bench.low();
      bench.high();
    }
    dut.valid_i = 1;
    dut.op_i = static_cast<uint8_t>(op);
    dut.node_i = node;
    dut.line_i = line;
    dut.frame_i = static_cast<uint32_t>(frame);
    bench.low();
    for (unsigned waits = 0; !dut.ready_o; waits++) {
      if (waits > 100'000) fail(bench.now_, "it is never ready");
      bench.high();
      bench.low();
    }
    const uint64_t taken = bench.now_;
    bench.high();
    dut.valid_i = 0;
    bench.low();
    while (!dut.done_o) {
      if (bench.now_ > taken + 100) fail(bench.now_, "an operation does not end");
      bench.high();
      bench.low();
    }
    if (dut.found_o != found || dut.full_o != full) fail(bench.now_, "found, or full, or not");
    if (op != 1 && found && dut.line_o != result) fail(bench.now_, "another line");
    if (op == 0) {
      if (dut.reads_o != reads) {
        fail(bench.now_, std::to_string(dut.reads_o) + " reads, not " + std::to_string(reads));
      }
      // Two cycles, and one for each bucket that is read.
      if (bench.now_ - taken != 2 + reads) fail(bench.now_, "other cycles");
      counts["reads_" + std::to_string(reads)]++;
    }
    const char* names[] = {"translate", "map", "unmap"};
    counts[std::string(names[op % 3]) + (found ? "_found" : full ? "_full" : "_none")]++;
    bench.high();
  }
  std::printf("cycles=%llu", static_cast<unsigned long long>(bench.now_));
  for (const auto& [name, count] : counts) {
    std::printf(" %s=%llu", name.c_str(), static_cast<unsigned long long>(count));
  }
  std::printf("\n");
  return 0;
}
