// A host, a memory and a bad network around the packet managers of a compute node and a memory
// node. Whatever is lost, doubled, damaged or overtaken, each request must be executed once, in the
// order in which the host made it and as it was, and each response must be delivered once, in that
// order, with what the line held then.
//
// Arguments: requests, loss, duplicates and damage of 10,000 frames, jitter in cycles, shares of
// cycles in percent in which a MAC takes a beat and in which the memory node takes a request from
// its FIFO, seed.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "../coverage.h"
#include "../cxl_network.h"
#include "../cxl_trace.h"
#include "Vem_cxl_pair.h"
#include "verilated.h"

namespace {

using cxl_trace::equal;
using cxl_trace::fail;
using cxl_trace::Line;
using cxl_trace::Request;
using cxl_trace::Response;
using cxl_trace::store;

constexpr uint64_t kLines = 24;
// The longest time between two tries of a request is 32 times 5,000 cycles. A network that loses a
// fifth of all frames spoils a dozen of them in a row once in 10^5 requests.
constexpr uint64_t kPatienceCycles = 12 * 32 * 5'000;

struct Setup {
  uint64_t requests;
  cxl_trace::Faults faults;
  uint64_t drain_share, seed;
};

struct Access {
  Request request;
  unsigned ask = 0, id = 0;
  uint64_t line = 0;
  Line expected = {};
};

class Bench {
 public:
  explicit Bench(const Setup& setup)
      : setup_(setup), draws_(setup.seed), network_(setup.faults, setup.seed + 1) {
    dut_.clk_i = dut_.rst_ni = 0;
    dut_.submit_i = dut_.deliver_i = dut_.drain_i = dut_.issue_i = dut_.complete_i = dut_.pfc_i = 0;
    dut_.beat_valid_i = dut_.beat_ready_i = dut_.error_i = 0;
    for (int half = 0; half < 6; half++) {
      dut_.eval();
      dut_.clk_i = !dut_.clk_i;
    }
    dut_.rst_ni = 1;
    offered_ = access();
  }

  bool waits() const { return delivered_ < setup_.requests; }

  void cycle() {
    dut_.clk_i = 0;
    dut_.submit_i = submitted_ < setup_.requests;
    for (unsigned i = 0; i < 20; i++) dut_.request_i[i] = offered_.request.words[i];
    dut_.origin_i = static_cast<uint16_t>(submitted_);
    dut_.deliver_i = draws_() % 100 < 80;
    dut_.drain_i = draws_() % 100 < setup_.drain_share;
    dut_.issue_i = draws_() % 100 < 90;
    complete();
    network_.offer(now_, &dut_);
    signal();
    dut_.eval();
    look();
    dut_.clk_i = 1;
    dut_.eval();
    if (++now_ - progress_ > kPatienceCycles) fail(now_, "nothing is delivered any more");
  }

  void finish() {
    if (executed_ != setup_.requests) fail(now_, "executed more or less than was asked");
    std::printf("cycles=%llu", static_cast<unsigned long long>(now_));
    for (const auto& [name, count] : counts_) {
      std::printf(" %s=%llu", name.c_str(), static_cast<unsigned long long>(count));
    }
    std::printf("\n");
  }

 private:
  // The next access of the host, and what it must bring, as all before it are executed first.
  Access access() {
    Access made;
    made.ask = draws_() % 3;
    made.id = draws_() % 256;
    made.line = draws_() % kLines | (draws_() % 2 ? uint64_t{1} << 39 : 0);
    uint64_t mask = made.ask == 2 ? uint64_t{draws_()} << 32 | draws_() : 0;
    Line data = {};
    if (made.ask != 0) {
      for (uint32_t& each : data) each = static_cast<uint32_t>(draws_());
    }
    made.request.put(data);
    made.request.put(mask, 64);
    made.request.put(made.line, 40);
    made.request.put(made.id, 8);
    made.request.put(made.ask, 2);
    made.expected = truth_[made.line];
    if (made.ask != 0) store(&truth_[made.line], data, made.ask == 1 ? ~uint64_t{0} : mask);
    return made;
  }

  // Requests complete in any order.
  void complete() {
    dut_.complete_i = !executing_.empty() && draws_() % 100 < 90;
    if (!dut_.complete_i) return;
    const size_t at = draws_() % std::min<size_t>(executing_.size(), 8);
    const auto [place, response] = executing_[at];
    executing_.erase(executing_.begin() + static_cast<long>(at));
    dut_.complete_place_i = static_cast<uint16_t>(place);
    for (unsigned i = 0; i < 17; i++) dut_.complete_response_i[i] = response.words[i];
  }

  // A PFC frame a microsecond while the memory node asks for it, and half of one later.
  void signal() {
    dut_.pfc_i = pfc_at_ != 0 && now_ == pfc_at_;
    if (dut_.pfc_i) counts_["pfc"]++;
    if (now_ >= pfc_at_ + 250) pfc_at_ = dut_.pfc_o ? now_ + cxl_trace::kFlightCycles : 0;
  }

  // What comes out in this cycle.
  void look() {
    if (dut_.submit_i && dut_.room_o) {
      made_.push_back(offered_);
      submitted_++;
      if (submitted_ < setup_.requests) offered_ = access();
    }
    network_.take(now_, dut_, &counts_);
    if (dut_.issued_o) execute();
    if (dut_.delivered_o) deliver();
    if (dut_.sent_o) counts_["why_" + std::to_string(dut_.sent_why_o)]++;
    if (dut_.arrived_o) counts_["arrival_" + std::to_string(dut_.arrival_o)]++;
    counts_["dropped"] += (dut_.dropped_o & 1) + (dut_.dropped_o >> 1);
  }

  void execute() {
    if (executed_ - delivered_ >= made_.size()) fail(now_, "a request that was never made");
    const Access& made = made_[executed_ - delivered_];
    if (!equal(dut_.issued_request_o, made.request, made.ask == 0 ? 512 : 0)) {
      fail(now_, "another request than the next one is executed");
    }
    Line& line = memory_[made.line];
    Response response;
    response.put(made.ask == 0 ? line : Line{});
    response.put(0, 2);
    response.put(made.id, 8);
    response.put(made.ask == 0, 1);
    if (made.ask != 0) {
      Line data;
      for (unsigned i = 0; i < 16; i++) data[i] = dut_.issued_request_o[i];
      const uint64_t mask = uint64_t{dut_.issued_request_o[17]} << 32 | dut_.issued_request_o[16];
      store(&line, data, made.ask == 1 ? ~uint64_t{0} : mask);
    }
    executing_.push_back({dut_.issued_place_o, response});
    executed_++;
  }

  void deliver() {
    if (delivered_ >= executed_) fail(now_, "a response before its request was executed");
    const Access& made = made_.front();
    if (dut_.delivered_origin_o != (delivered_ & 0xffff)) fail(now_, "another response");
    const bool is_read = (dut_.delivered_response_o[16] >> 10 & 1) != 0;
    if (is_read != (made.ask == 0)) fail(now_, "a response of another kind");
    for (unsigned i = 0; is_read && i < 16; i++) {
      if (dut_.delivered_response_o[i] != made.expected[i]) fail(now_, "a read brings other bytes");
    }
    made_.pop_front();
    delivered_++;
    progress_ = now_;
  }

  Setup setup_;
  Vem_cxl_pair dut_;
  em::Coverage coverage_;
  std::mt19937 draws_;
  cxl_trace::Network<Vem_cxl_pair> network_;
  Access offered_;
  // Made and not delivered, the oldest first.
  std::deque<Access> made_;
  std::map<uint64_t, Line> truth_, memory_;
  std::vector<std::pair<unsigned, Response>> executing_;
  uint64_t now_ = 0, progress_ = 0, pfc_at_ = 0, submitted_ = 0, executed_ = 0, delivered_ = 0;
  cxl_trace::Counts counts_;
};

}  // namespace

int main(int argc, char** argv) {
  Verilated::commandArgs(argc, argv);
  if (argc != 9) fail(0, "eight arguments");
  const auto argument = [&](int at) { return std::strtoull(argv[at], nullptr, 10); };
  const cxl_trace::Faults faults = {argument(2), argument(3), argument(4), argument(5),
                                    argument(6)};
  Bench bench({argument(1), faults, argument(7), argument(8)});
  while (bench.waits()) bench.cycle();
  // What is still on its way must change nothing.
  for (int after = 0; after < 5'000; after++) bench.cycle();
  bench.finish();
  return 0;
}
