// A processor, a network and a memory around a compute node with its cache and a memory node with
// its translator. The AXI4 slave takes one beat a cycle, so the handshakes are an order: a load
// must bring its line as it was at one instant between its handshake and its response. When a flush
// ends, the memory must hold what was stored before it began. In the end it must hold all that was
// stored, in the frames of the mapped pages and nowhere else. The rules of AXI4 are watched on both
// sides.
//
// Arguments: accesses, loss, duplicates and damage of 10,000 frames, jitter in cycles, lines, 1 if
// some accesses go to pages that are not mapped or are mapped to memory that fails, seed.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "../coverage.h"
#include "../cxl_axi.h"
#include "../cxl_network.h"
#include "../cxl_trace.h"
#include "Vem_cxl_node.h"
#include "verilated.h"

namespace {

using cxl_trace::AxiMemory;
using cxl_trace::AxiRequest;
using cxl_trace::AxiResponse;
using cxl_trace::fail;
using cxl_trace::Faults;
using cxl_trace::Line;
using cxl_trace::store;

constexpr uint64_t kPageLines = 1 << 14;
constexpr uint64_t kComputeMac = 0x0c0000000002;
constexpr uint64_t kTranslate = 0, kMap = 1, kUnmap = 2;
// Pages, as the first line of each, and the frames that hold them.
constexpr uint64_t kPageLow = 0, kPageHigh = uint64_t{1} << 38;
constexpr uint64_t kPageUnmapped = uint64_t{1} << 37, kPageFailing = uint64_t{1} << 36;
constexpr uint64_t kPageOther = uint64_t{1} << 35;
constexpr uint64_t kFrameLow = 7, kFrameHigh = 3, kFrameFailing = 9, kFrameOther = 5;
constexpr uint64_t kMemoryLatencyCyclesMax = 40;

struct TableRequest {
  static constexpr unsigned kWords = 4;
  uint64_t frame = 0, line = 0, node = kComputeMac, op = kTranslate;
  bool valid = false;

  template <typename Each>
  void each(Each&& fields) {
    fields.field(frame, 26);
    fields.field(line, 40);
    fields.field(node, 48);
    fields.field(op, 2);
    fields.field(valid, 1);
  }
};

bool fails(uint64_t line) {
  const uint64_t page = line & ~(kPageLines - 1);
  return page == kPageUnmapped || page == kPageFailing;
}

// A line of the memory that holds a line of the compute node.
uint64_t held_by(uint64_t line) {
  return (line & kPageHigh ? kFrameHigh : kFrameLow) * kPageLines | line % kPageLines;
}

class Bench {
 public:
  Bench(uint64_t accesses, const Faults& faults, uint64_t lines, bool failing, uint64_t seed)
      : left_(accesses), lines_(lines), failing_(failing), draws_(seed),
        network_(faults, seed + 1), memory_(seed + 2, kMemoryLatencyCyclesMax) {
    memory_.broken_from = kFrameFailing * kPageLines;
    memory_.broken_end = memory_.broken_from + kPageLines;
    dut_.clk_i = dut_.rst_ni = 0;
    dut_.clean_i = dut_.clean_drop_i = 0;
    dut_.beat_valid_i = dut_.beat_ready_i = dut_.error_i = 0;
    cxl_trace::pack(request_, dut_.axi_i);
    cxl_trace::pack(AxiResponse{}, dut_.memory_i);
    cxl_trace::pack(TableRequest{}, dut_.table_i);
    for (int half = 0; half < 6; half++) {
      dut_.eval();
      dut_.clk_i = !dut_.clk_i;
    }
    dut_.rst_ni = 1;
    map();
  }

  bool busy() const { return left_ > 0 || !loads_.empty() || !stores_.empty(); }

  void cycle(bool cleans = false) {
    dut_.clk_i = 0;
    offer();
    network_.offer(now_, &dut_);
    const AxiResponse from_memory = memory_.offer(now_);
    cxl_trace::pack(from_memory, dut_.memory_i);
    dut_.clean_i = cleans;
    dut_.clean_drop_i = draws_() & 1;
    request_.r_ready = draws_() % 100 < 70;
    request_.b_ready = draws_() % 100 < 70;
    cxl_trace::pack(request_, dut_.axi_i);
    dut_.eval();
    if (dut_.broken_o) fail(now_, "rules of AXI are broken: " + std::to_string(dut_.broken_o));
    const auto response = cxl_trace::unpacked<AxiResponse>(dut_.axi_o);
    handshakes(response);
    responses(response);
    network_.take(now_, dut_, &counts_);
    memory_.take(now_, cxl_trace::unpacked<AxiRequest>(dut_.memory_o), from_memory);
    cleaned_ = dut_.cleaned_o;
    table_ = dut_.table_o;
    if (dut_.lost_o && !failing_) fail(now_, "a line is lost");
    counts_["lines_lost"] += dut_.lost_o;
    dut_.clk_i = 1;
    dut_.eval();
    // What was taken is offered no longer.
    if (response.ar_ready) request_.ar_valid = false;
    if (response.aw_ready) request_.aw_valid = false;
    if (request_.w_valid && response.w_ready) next_beat();
    if (++now_ - progress_ > 300'000) fail(now_, "nothing ends any more");
  }

  // Flushes; meanwhile accesses go on. Then another page comes or goes.
  void clean() {
    held_.clear();
    for (const auto& [line, data] : truth_) held_[line] = {data};
    cycle(true);
    while (!cleaned_) cycle();
    for (const auto& [line, values] : held_) {
      if (!fails(line) && !contains(values, memory_.lines[held_by(line)])) {
        fail(now_, "a flush has ended before what was stored is in memory");
      }
    }
    counts_["flushes"]++;
    table(other_ ? kUnmap : kMap, kPageOther, kFrameOther, other_);
    other_ = !other_;
  }

  void finish() {
    clean();
    for (const auto& [line, data] : truth_) {
      if (!fails(line) && memory_.lines[held_by(line)] != data) {
        fail(now_, "the memory has other bytes than were stored");
      }
    }
    for (const auto& [line, data] : memory_.lines) {
      const uint64_t frame = line / kPageLines;
      if (frame != kFrameLow && frame != kFrameHigh) fail(now_, "a frame that has no page");
    }
    counts_["fetches"] = memory_.reads;
    counts_["lines_back"] = memory_.whole_writes;
    counts_["parts_back"] = memory_.masked_writes;
    counts_["most_waiting"] = memory_.most_waiting;
    std::printf("cycles=%llu", static_cast<unsigned long long>(now_));
    for (const auto& [name, count] : counts_) {
      std::printf(" %s=%llu", name.c_str(), static_cast<unsigned long long>(count));
    }
    std::printf("\n");
  }

 private:
  // The burst whose data is offered.
  struct Data {
    unsigned id = 0;
    uint64_t line = 0;
    unsigned len = 0;
  };
  // A load, and what each of its lines has held since it was taken.
  struct Load {
    uint64_t line = 0;
    size_t beats = 1, done = 0;
    std::vector<std::vector<Line>> values;
  };

  static bool contains(const std::vector<Line>& values, const Line& line) {
    return std::find(values.begin(), values.end(), line) != values.end();
  }

  // Maps or unmaps a page, and checks whether it was there.
  void table(uint64_t op, uint64_t line, uint64_t frame, bool found) {
    TableRequest asked;
    asked.op = op;
    asked.line = line;
    asked.frame = frame;
    asked.valid = true;
    cxl_trace::pack(asked, dut_.table_i);
    do cycle();
    while (!(table_ & 8));
    cxl_trace::pack(TableRequest{}, dut_.table_i);
    do cycle();
    while (!(table_ & 4));
    if (((table_ & 2) != 0) != found) fail(now_, "a page is mapped, or not");
    if (table_ & 1) fail(now_, "the table is full");
  }

  void map() {
    std::swap(left_, kept_);
    table(kMap, kPageLow + 5, kFrameLow, false);
    table(kMap, kPageHigh, kFrameHigh, false);
    table(kMap, kPageFailing, kFrameFailing, false);
    // It is there, and stays where it is.
    table(kMap, kPageLow, kFrameOther, true);
    table(kUnmap, kPageOther, 0, false);
    std::swap(left_, kept_);
  }

  // The first line of a burst, and its beats, which stay among the lines.
  uint64_t burst(unsigned* len) {
    const uint64_t at = draws_() % lines_;
    *len = 0;
    const uint64_t most = std::min<uint64_t>(16, lines_ - at);
    if (draws_() % 4 == 0) *len = static_cast<unsigned>(draws_() % most);
    if (failing_ && draws_() % 8 == 0) return at | (draws_() % 2 ? kPageUnmapped : kPageFailing);
    return at | (draws_() % 2 ? kPageHigh : kPageLow);
  }

  void offer() {
    if (!request_.ar_valid && left_ > 0 && draws_() % 4 == 0) {
      request_.ar_valid = true;
      request_.ar_id = draws_() % 12;
      request_.ar_line = burst(&request_.ar_len);
    }
    // The address of the next burst can come while data of the last one still does.
    if (!request_.aw_valid && !aw_waits_ && left_ > 0 && draws_() % 4 == 0) {
      aw_at_ = now_ + draws_() % 4;
      aw_waits_ = true;
      request_.aw_id = draws_() % 12;
      request_.aw_line = burst(&request_.aw_len);
      if (!write_waits_) begin_data();
    }
    // Address and data come in either order.
    if (aw_waits_ && now_ >= aw_at_) {
      request_.aw_valid = true;
      aw_waits_ = false;
    }
    if (write_waits_ && now_ >= w_at_) request_.w_valid = true;
  }

  void begin_data() {
    data_ = {request_.aw_id, request_.aw_line, request_.aw_len};
    beat_ = 0;
    draw_beat();
  }

  void draw_beat() {
    write_waits_ = true;
    w_at_ = now_ + draws_() % 4;
    request_.w_strb =
        draws_() % 3 == 0 ? cxl_trace::kEveryByte : uint64_t{draws_()} << 32 | draws_();
    for (uint32_t& word : request_.w_data) word = static_cast<uint32_t>(draws_());
    request_.w_last = beat_ == data_.len;
  }

  void next_beat() {
    request_.w_valid = write_waits_ = false;
    beat_++;
    if (!request_.w_last) {
      draw_beat();
    } else if (request_.aw_valid || aw_waits_) {
      begin_data();
    }
  }

  void handshakes(const AxiResponse& response) {
    const bool loads = request_.ar_valid && response.ar_ready;
    const bool stores = request_.w_valid && response.w_ready;
    if (loads && stores) fail(now_, "two accesses in a cycle");
    if (loads) {
      Load load = {request_.ar_line, request_.ar_len + 1, 0, {}};
      for (size_t i = 0; i < load.beats; i++) load.values.push_back({truth_[load.line + i]});
      if (!loads_.emplace(request_.ar_id, load).second) fail(now_, "an id twice");
      counts_["read_bursts"] += load.beats > 1;
    }
    if (request_.aw_valid && response.aw_ready) {
      if (!stores || beat_ != 0) fail(now_, "address without data");
      if (!stores_.emplace(request_.aw_id, request_.aw_len + 1).second) fail(now_, "an id twice");
      counts_["write_bursts"] += request_.aw_len > 0;
      counts_["addresses_ahead"] += ahead_;
      ahead_ = false;
    }
    if (stores) {
      const uint64_t line = data_.line + beat_;
      if (stores_.find(data_.id) == stores_.end()) fail(now_, "data without an address");
      std::vector<Line>& held = held_[line];
      if (held.empty()) held.push_back(truth_[line]);
      store(&truth_[line], request_.w_data, request_.w_strb);
      held.push_back(truth_[line]);
      for (auto& [id, load] : loads_) {
        if (line >= load.line + load.done && line < load.line + load.beats) {
          load.values[line - load.line].push_back(truth_[line]);
        }
      }
    }
    ahead_ |= request_.aw_valid && beat_ > 0;
    left_ -= std::min<uint64_t>(left_, loads + stores);
  }

  void responses(const AxiResponse& response) {
    if (response.r_valid && request_.r_ready) brought(response);
    if (response.b_valid && request_.b_ready) {
      if (stores_.erase(response.b_id) == 0) fail(now_, "a response of no store");
      if (response.b_error && !failing_) fail(now_, "a store has an error");
      counts_["store_errors"] += response.b_error;
      counts_["stores"]++;
      progress_ = now_;
    }
  }

  void brought(const AxiResponse& response) {
    const auto found = loads_.find(response.r_id);
    if (found == loads_.end()) fail(now_, "a response of no load");
    Load& load = found->second;
    if (response.r_error) {
      if (!fails(load.line)) fail(now_, "a load has an error");
      counts_["load_errors"]++;
    } else {
      if (!contains(load.values[load.done], response.r_data)) {
        fail(now_, "a load brings other bytes");
      }
    }
    if (response.r_last != (++load.done == load.beats)) fail(now_, "another number of beats");
    if (response.r_last) {
      loads_.erase(found);
      counts_["loads"]++;
    }
    progress_ = now_;
  }

  Vem_cxl_node dut_;
  em::Coverage coverage_;
  uint64_t left_, kept_ = 0, lines_;
  bool failing_;
  std::mt19937 draws_;
  cxl_trace::Network<Vem_cxl_node> network_;
  AxiMemory memory_;
  AxiRequest request_;
  bool aw_waits_ = false, write_waits_ = false, cleaned_ = false, other_ = false;
  bool ahead_ = false;
  Data data_;
  unsigned beat_ = 0, table_ = 0;
  uint64_t now_ = 0, progress_ = 0, aw_at_ = 0, w_at_ = 0;
  std::map<uint64_t, Line> truth_;
  // What each line has held since the last flush began.
  std::map<uint64_t, std::vector<Line>> held_;
  std::map<unsigned, Load> loads_;
  // Beats by identifier.
  std::map<unsigned, unsigned> stores_;
  cxl_trace::Counts counts_;
};

}  // namespace

int main(int argc, char** argv) {
  Verilated::commandArgs(argc, argv);
  if (argc != 9) fail(0, "eight arguments");
  const auto argument = [&](int at) { return std::strtoull(argv[at], nullptr, 10); };
  const Faults faults = {argument(2), argument(3), argument(4), argument(5)};
  Bench bench(argument(1), faults, argument(6), argument(7) != 0, argument(8));
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
