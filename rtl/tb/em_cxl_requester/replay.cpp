// Replays what the Rust model's Requester does on the Verilated em_cxl_requester: the same steps in
// the same order, and every packet, delivery and receipt must be the model's. Reads a trace of
// `requester_trace` from the standard input; the argument is the share of cycles, in percent, in
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
#include "Vem_cxl_requester.h"
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
  uint32_t now = 0;
  bool sends = false, sent = false, delivers = false, delivered = false, submits = false;
  bool responds = false, negates = false, ticks = false, sent_data = false, delivered_data = false;
  uint32_t why = 0, sent_sequence = 0, delivered_origin = 0, origin = 0, receipt = 0;
  uint32_t response_sequence = 0, nak = 0, sack = 0;
  uint64_t delivered_line = 0;
  Request packet, request;
  Response delivery, response;
};

uint32_t small(std::istream& in) { return static_cast<uint32_t>(number(word(in))); }

Step parse(const std::string& text) {
  Step step;
  std::istringstream in(text);
  step.now = small(in);
  bool has_data = false;
  for (std::string part; in >> part;) {
    if (part == "S") {
      step.sends = true;
      step.sent = word(in) == "1";
      step.why = small(in);
      step.sent_sequence = small(in);
      step.packet = request_of(in, &step.sent_data);
    } else if (part == "D") {
      step.delivers = true;
      step.delivered = word(in) == "1";
      step.delivered_origin = small(in);
      step.delivered_line = number(word(in));
      step.delivery = response_of(in, &step.delivered_data);
    } else if (part == "Q") {
      step.submits = true;
      step.origin = small(in);
      step.request = request_of(in, &has_data);
    } else if (part == "R") {
      step.responds = true;
      step.receipt = small(in);
      step.response_sequence = small(in);
      step.response = response_of(in, &has_data);
    } else if (part == "N") {
      step.negates = true;
      step.receipt = small(in);
      step.nak = small(in);
      step.sack = small(in);
    } else {
      step.ticks = true;
    }
  }
  return step;
}

class Bench {
 public:
  Bench() {
    dut_.clk_i = dut_.rst_ni = 0;
    drive(Step());
    for (int half = 0; half < 6; half++) {
      dut_.eval();
      dut_.clk_i = !dut_.clk_i;
    }
    dut_.rst_ni = 1;
  }

  // Time stands still in a walk, as it does in a call of the model.
  bool ready() {
    dut_.clk_i = 0;
    drive(last_);
    dut_.eval();
    return dut_.ready_o;
  }

  void wait() { cycle(last_); }

  // A cycle with what a step does, or with nothing.
  void cycle(const Step& step) {
    dut_.clk_i = 0;
    drive(step);
    dut_.eval();
    if (step.sends && dut_.sendable_o != step.sent) fail(now_, "a packet waits, or not");
    const uint32_t kind = dut_.send_ask_o;
    if (step.delivers && dut_.deliverable_o != step.delivered) fail(now_, "a delivery, or none");
    if (step.submits && !dut_.room_o) fail(now_, "no room");
    if ((step.responds || step.negates) && dut_.receipt_o != step.receipt) {
      fail(now_, "receipt " + std::to_string(dut_.receipt_o) + ", not " +
                     std::to_string(step.receipt));
    }
    if (step.responds) counts_["response_" + std::to_string(step.receipt)]++;
    if (step.negates) counts_["negative_" + std::to_string(step.receipt)]++;
    dut_.clk_i = 1;
    dut_.eval();
    if (step.sent && kind != (step.packet.words[19] >> 16 & 3)) {
      fail(now_, "kind " + std::to_string(kind) + " of " + std::to_string(dut_.sent_sequence_o));
    }
    check(step);
    const uint32_t time = step.now;
    last_ = Step();
    last_.now = time;
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
  void drive(const Step& step) {
    dut_.now_i = step.now;
    dut_.send_i = step.sends;
    dut_.deliver_i = step.delivers;
    dut_.submit_i = step.submits;
    dut_.origin_i = static_cast<uint8_t>(step.origin);
    dut_.response_i = step.responds;
    dut_.response_sequence_i = step.response_sequence;
    dut_.negative_i = step.negates;
    dut_.nak_i = step.nak;
    dut_.sack_i = step.sack;
    dut_.tick_i = step.ticks;
    for (unsigned i = 0; i < 17; i++) dut_.response_word_i[i] = step.response.words[i];
    for (unsigned i = 0; i < 20; i++) dut_.request_i[i] = step.request.words[i];
  }

  // Behind the edge: what was sent and delivered. Data without meaning is not compared.
  void check(const Step& step) {
    if (dut_.sent_o != step.sent) fail(now_, "sent, or not");
    if (dut_.delivered_o != step.delivered) fail(now_, "delivered, or not");
    if (step.sent) {
      if (dut_.sent_sequence_o != step.sent_sequence || dut_.sent_why_o != step.why ||
          !equal(dut_.sent_request_o, step.packet, step.sent_data ? 0 : 512)) {
        fail(now_, "the packet is another");
      }
      counts_["why_" + std::to_string(step.why)]++;
    }
    if (step.delivered) {
      // Status and kind; the identifier is not part of the model's delivery.
      const uint32_t differ = dut_.delivered_response_o[16] ^ step.delivery.words[16];
      bool same = (differ & 3) == 0 && (differ >> 10 & 1) == 0;
      for (unsigned i = 0; step.delivered_data && i < 16; i++) {
        same &= dut_.delivered_response_o[i] == step.delivery.words[i];
      }
      if (!same || dut_.delivered_line_o != step.delivered_line ||
          dut_.delivered_origin_o != step.delivered_origin) {
        fail(now_, "the delivery is another");
      }
      counts_["delivered"]++;
    }
  }

  Vem_cxl_requester dut_;
  em::Coverage coverage_;
  Step last_;
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
      bench.wait();
    }
    bench.cycle(step);
  }
  bench.print();
  return 0;
}
