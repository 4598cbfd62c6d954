// A processor, a memory and a bad network around a compute node with its cache and the packet
// manager of a memory node. The slave takes one access a cycle, so the handshakes are an order: a
// load must bring its line as it was at one instant between its handshake and its response. What R
// and B offer stays until it is taken. At the end the cache is flushed, and the memory must hold
// what was stored.
//
// Arguments: accesses, loss, duplicates and damage of 10,000 frames, jitter in cycles, lines, seed.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "../coverage.h"
#include "../cxl_network.h"
#include "../cxl_trace.h"
#include "Vem_cxl_node.h"
#include "verilated.h"

namespace {

using cxl_trace::fail;
using cxl_trace::Faults;
using cxl_trace::Line;
using cxl_trace::Response;
using cxl_trace::store;

class Bench {
 public:
  Bench(uint64_t accesses, const Faults& faults, uint64_t lines, uint64_t seed)
      : left_(accesses), lines_(lines), draws_(seed), network_(faults, seed + 1) {
    dut_.clk_i = dut_.rst_ni = 0;
    dut_.ar_valid_i = dut_.aw_valid_i = dut_.w_valid_i = dut_.r_ready_i = dut_.b_ready_i = 0;
    dut_.clean_i = dut_.clean_drop_i = dut_.complete_i = 0;
    dut_.beat_valid_i = dut_.beat_ready_i = dut_.error_i = 0;
    for (int half = 0; half < 6; half++) {
      dut_.eval();
      dut_.clk_i = !dut_.clk_i;
    }
    dut_.rst_ni = 1;
  }

  bool busy() const { return left_ > 0 || !loads_.empty() || !stores_.empty(); }

  void cycle(bool cleans = false) {
    dut_.clk_i = 0;
    offer();
    complete();
    network_.offer(now_, &dut_);
    dut_.clean_i = cleans;
    dut_.clean_drop_i = draws_() & 1;
    dut_.r_ready_i = draws_() % 100 < 70;
    dut_.b_ready_i = draws_() % 100 < 70;
    dut_.eval();
    handshakes();
    responses();
    network_.take(now_, dut_, &counts_);
    if (dut_.issued_o) execute();
    cleaned_ = dut_.cleaned_o;
    if (dut_.lost_o) fail(now_, "a line is lost");
    dut_.clk_i = 1;
    dut_.eval();
    // What was taken is offered no longer.
    if (taken_.ar) dut_.ar_valid_i = 0;
    if (taken_.aw) dut_.aw_valid_i = dut_.w_valid_i = write_waits_ = 0;
    taken_ = {};
    if (++now_ - progress_ > 300'000) fail(now_, "nothing ends any more");
  }

  // Flushes; meanwhile accesses go on.
  void clean() {
    cycle(true);
    while (!cleaned_) cycle();
    counts_["flushes"]++;
  }

  void finish() {
    clean();
    for (const auto& [line, data] : truth_) {
      if (memory_[line] != data) fail(now_, "the memory has other bytes than were stored");
    }
    std::printf("cycles=%llu", static_cast<unsigned long long>(now_));
    for (const auto& [name, count] : counts_) {
      std::printf(" %s=%llu", name.c_str(), static_cast<unsigned long long>(count));
    }
    std::printf("\n");
  }

 private:
  uint64_t line() { return draws_() % lines_ | (draws_() % 2 ? uint64_t{1} << 38 : 0); }

  void offer() {
    if (!dut_.ar_valid_i && left_ > 0 && draws_() % 4 == 0) {
      dut_.ar_valid_i = 1;
      dut_.ar_id_i = static_cast<uint8_t>(draws_() % 12);
      dut_.ar_line_i = line();
    }
    if (!dut_.aw_valid_i && !dut_.w_valid_i && left_ > 0 && draws_() % 4 == 0) {
      aw_at_ = now_ + draws_() % 4;
      w_at_ = now_ + draws_() % 4;
      write_waits_ = true;
      dut_.aw_id_i = static_cast<uint8_t>(draws_() % 12);
      dut_.aw_line_i = line();
      dut_.w_strb_i = draws_() % 3 == 0 ? ~uint64_t{0} : uint64_t{draws_()} << 32 | draws_();
      for (unsigned i = 0; i < 16; i++) dut_.w_data_i[i] = static_cast<uint32_t>(draws_());
    }
    // Address and data come in either order.
    if (write_waits_) {
      if (now_ >= aw_at_) dut_.aw_valid_i = 1;
      if (now_ >= w_at_) dut_.w_valid_i = 1;
    }
  }

  void handshakes() {
    if (dut_.ar_valid_i && dut_.ar_ready_o) {
      const Load load = {dut_.ar_line_i, {truth_[dut_.ar_line_i]}};
      if (!loads_.emplace(dut_.ar_id_i, load).second) fail(now_, "an id twice");
      taken_.ar = true;
    }
    if (dut_.aw_ready_o != dut_.w_ready_o) fail(now_, "address without data");
    if (dut_.aw_valid_i && dut_.aw_ready_o) {
      if (!dut_.w_valid_i) fail(now_, "address without data");
      Line data;
      for (unsigned i = 0; i < 16; i++) data[i] = dut_.w_data_i[i];
      store(&truth_[dut_.aw_line_i], data, dut_.w_strb_i);
      for (auto& [id, load] : loads_) {
        if (load.line == dut_.aw_line_i) load.values.push_back(truth_[load.line]);
      }
      if (stores_[dut_.aw_id_i]++ != 0) fail(now_, "an id twice");
      taken_.aw = true;
    }
    if (taken_.ar && taken_.aw) fail(now_, "two accesses in a cycle");
    left_ -= std::min<uint64_t>(left_, taken_.ar + taken_.aw);
  }

  void responses() {
    stays(dut_.r_valid_o, dut_.r_ready_i, dut_.r_id_o, &r_);
    stays(dut_.b_valid_o, dut_.b_ready_i, dut_.b_id_o, &b_);
    if (dut_.r_valid_o && dut_.r_ready_i) {
      const auto load = loads_.find(dut_.r_id_o);
      if (load == loads_.end()) fail(now_, "a response of no load");
      if (dut_.r_error_o) fail(now_, "a load has an error");
      Line brought;
      for (unsigned i = 0; i < 16; i++) brought[i] = dut_.r_data_o[i];
      const auto& values = load->second.values;
      if (std::find(values.begin(), values.end(), brought) == values.end()) {
        fail(now_, "a load brings other bytes");
      }
      loads_.erase(load);
      counts_["loads"]++;
      progress_ = now_;
    }
    if (dut_.b_valid_o && dut_.b_ready_i) {
      const auto stored = stores_.find(dut_.b_id_o);
      if (stored == stores_.end()) fail(now_, "a response of no store");
      if (dut_.b_error_o) fail(now_, "a store has an error");
      stores_.erase(stored);
      counts_["stores"]++;
      progress_ = now_;
    }
  }

  // AXI: what is offered stays as it is until it is taken.
  void stays(bool valid, bool ready, unsigned id, std::pair<bool, unsigned>* offered) {
    if (offered->first && (!valid || id != offered->second)) fail(now_, "an offer is taken back");
    *offered = {valid && !ready, id};
  }

  void execute() {
    const auto& words = dut_.issued_request_o;
    const auto bits = [&](unsigned from, unsigned count) {
      uint64_t value = 0;
      for (unsigned i = 0; i < count; i++) {
        value |= static_cast<uint64_t>(words[(from + i) / 32] >> (from + i) % 32 & 1) << i;
      }
      return value;
    };
    const uint64_t mask = bits(512, 64), line = bits(576, 40);
    const uint64_t id = bits(616, 8), ask = bits(624, 2);
    Line& kept = memory_[line];
    Response response;
    response.put(ask == 0 ? kept : Line{});
    response.put(0, 2);
    response.put(id, 8);
    response.put(ask == 0, 1);
    Line data;
    for (unsigned i = 0; i < 16; i++) data[i] = words[i];
    if (ask != 0) store(&kept, data, ask == 1 ? ~uint64_t{0} : mask);
    counts_[ask == 0 ? "fetches" : ask == 1 ? "lines_back" : "parts_back"]++;
    executing_.push_back({dut_.issued_place_o, response});
  }

  void complete() {
    dut_.complete_i = !executing_.empty() && draws_() % 100 < 70;
    if (!dut_.complete_i) return;
    const size_t at = draws_() % std::min<size_t>(executing_.size(), 8);
    const auto [place, response] = executing_[at];
    executing_.erase(executing_.begin() + static_cast<long>(at));
    dut_.complete_place_i = static_cast<uint8_t>(place);
    for (unsigned i = 0; i < 17; i++) dut_.complete_response_i[i] = response.words[i];
  }

  // A load, and what its line has held since it was taken.
  struct Load {
    uint64_t line;
    std::vector<Line> values;
  };
  struct Taken {
    bool ar = false, aw = false;
  };

  Vem_cxl_node dut_;
  em::Coverage coverage_;
  uint64_t left_, lines_;
  std::mt19937 draws_;
  cxl_trace::Network<Vem_cxl_node> network_;
  Taken taken_;
  bool write_waits_ = false, cleaned_ = false;
  uint64_t now_ = 0, progress_ = 0, aw_at_ = 0, w_at_ = 0;
  std::map<uint64_t, Line> truth_, memory_;
  std::map<unsigned, Load> loads_;
  std::map<unsigned, unsigned> stores_;
  std::pair<bool, unsigned> r_, b_;
  std::vector<std::pair<unsigned, Response>> executing_;
  cxl_trace::Counts counts_;
};

}  // namespace

int main(int argc, char** argv) {
  Verilated::commandArgs(argc, argv);
  if (argc != 8) fail(0, "seven arguments");
  const auto argument = [&](int at) { return std::strtoull(argv[at], nullptr, 10); };
  const Faults faults = {argument(2), argument(3), argument(4), argument(5)};
  Bench bench(argument(1), faults, argument(6), argument(7));
  for (unsigned cycles = 1; bench.busy(); cycles++) {
    if (cycles % 4'000 == 0) {
      bench.clean();
    } else {
      bench.cycle();
    }
  }
  bench.finish();
  return 0;
}
