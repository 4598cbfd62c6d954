// Replays what the Rust model's Responder does on the Verilated em_cxl_responder: the same steps in
// the same order, and every packet, issued request and arrival must be the model's. Reads a trace
// of `responder_trace` from the standard input; the argument is the share of cycles, in percent, in
// which a step is done.

#include <cstdint>
#include <cstdio>
#include <iostream>
#include <map>
#include <random>
#include <sstream>
#include <string>

#include "../coverage.h"
#include "../cxl_trace.h"
#include "Vem_cxl_responder.h"
#include "verilated.h"

namespace {

using cxl_trace::equal;
using cxl_trace::fail;
using cxl_trace::number;
using cxl_trace::Request;
using cxl_trace::request_of;
using cxl_trace::Response;
using cxl_trace::response_of;
using cxl_trace::word;

struct Step {
  bool polls = false, responds = false, negates = false, issues = false, issued = false;
  bool completes = false, arrives = false, response_data = false, issued_data = false;
  uint32_t response_sequence = 0, nak = 0, sack = 0, issued_place = 0, complete_place = 0;
  uint32_t sequence = 0, arrival = 0;
  Response response, complete;
  Request issue, request;
};

Step parse(const std::string& text) {
  Step step;
  std::istringstream in(text);
  for (std::string part; in >> part;) {
    if (part == "P") {
      step.polls = true;
      step.responds = word(in) == "1";
      step.response_sequence = static_cast<uint32_t>(number(word(in)));
      step.response = response_of(in, &step.response_data);
      step.negates = word(in) == "1";
      step.nak = static_cast<uint32_t>(number(word(in)));
      step.sack = static_cast<uint32_t>(number(word(in)));
    } else if (part == "I") {
      step.issues = true;
      step.issued = word(in) == "1";
      step.issued_place = static_cast<uint32_t>(number(word(in)));
      step.issue = request_of(in, &step.issued_data);
    } else if (part == "C") {
      bool has_data = false;
      step.completes = true;
      step.complete_place = static_cast<uint32_t>(number(word(in)));
      step.complete = response_of(in, &has_data);
    } else {
      bool has_data = false;
      step.arrives = true;
      step.arrival = static_cast<uint32_t>(number(word(in)));
      step.sequence = static_cast<uint32_t>(number(word(in)));
      step.request = request_of(in, &has_data);
    }
  }
  return step;
}

class Bench {
 public:
  Bench() {
    dut_.clk_i = dut_.rst_ni = 0;
    idle();
    for (int half = 0; half < 6; half++) {
      dut_.eval();
      dut_.clk_i = !dut_.clk_i;
    }
    dut_.rst_ni = 1;
  }

  bool ready() {
    dut_.clk_i = 0;
    idle();
    dut_.eval();
    return dut_.poll_ready_o && dut_.request_ready_o;
  }

  // A cycle with what a step does, or with nothing.
  void cycle(const Step& step) {
    dut_.clk_i = 0;
    dut_.poll_i = step.polls;
    dut_.issue_i = step.issues;
    dut_.complete_i = step.completes;
    dut_.complete_place_i = step.complete_place % WINDOW;
    dut_.request_valid_i = step.arrives;
    dut_.request_sequence_i = step.sequence;
    for (unsigned i = 0; i < 17; i++) dut_.complete_response_i[i] = step.complete.words[i];
    for (unsigned i = 0; i < 20; i++) dut_.request_i[i] = step.request.words[i];
    dut_.eval();
    if (step.issues && dut_.issuable_o != step.issued) fail(now_, "a request waits, or not");
    if (step.arrives && dut_.arrival_o != step.arrival) {
      fail(now_, "arrival " + std::to_string(dut_.arrival_o) + ", not " +
                     std::to_string(step.arrival));
    }
    if (step.arrives) counts_["arrival_" + std::to_string(step.arrival)]++;
    dut_.clk_i = 1;
    dut_.eval();
    check(step);
    now_++;
  }

  void print() const {
    std::printf("cycles=%llu", static_cast<unsigned long long>(now_));
    for (const auto& [name, count] : counts_) {
      std::printf(" %s=%llu", name.c_str(), static_cast<unsigned long long>(count));
    }
    std::printf("\n");
  }

 private:
  void idle() { dut_.poll_i = dut_.issue_i = dut_.complete_i = dut_.request_valid_i = 0; }

  // Behind the edge: what was sent and issued.
  void check(const Step& step) {
    if (dut_.response_valid_o != step.responds) fail(now_, "a response, or none");
    if (dut_.negative_valid_o != step.negates) fail(now_, "a SACK + NAK, or none");
    if (dut_.issued_o != step.issued) fail(now_, "issued, or not");
    if (step.responds) {
      // Data without meaning is not compared.
      if (dut_.response_sequence_o != step.response_sequence ||
          !equal(dut_.response_o, step.response, step.response_data ? 0 : 512)) {
        fail(now_, "the response is another");
      }
      counts_[step.negates ? "merged" : "responses"]++;
    } else if (step.negates) {
      counts_["negatives"]++;
    }
    if (step.negates && (dut_.nak_o != step.nak || dut_.sack_o != step.sack)) {
      fail(now_, "the SACK + NAK is another");
    }
    if (step.issued) {
      if (dut_.issued_place_o != step.issued_place % WINDOW ||
          !equal(dut_.issued_request_o, step.issue, step.issued_data ? 0 : 512)) {
        fail(now_, "the request is another");
      }
      counts_["issued"]++;
    }
  }

  Vem_cxl_responder dut_;
  em::Coverage coverage_;
  uint64_t now_ = 0;
  std::map<std::string, uint64_t> counts_;
};

}  // namespace

int main(int argc, char** argv) {
  Verilated::commandArgs(argc, argv);
  Bench bench;
  std::mt19937 draws(1);
  const unsigned share = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 100;
  for (std::string text; std::getline(std::cin, text);) {
    const Step step = parse(text);
    for (unsigned waits = 0; !bench.ready() || draws() % 100 >= share; waits++) {
      if (waits > 100'000) fail(0, "it is never ready");
      bench.cycle(Step());
    }
    bench.cycle(step);
  }
  bench.print();
  return 0;
}
