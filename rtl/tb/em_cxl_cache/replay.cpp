// Replays what the Rust model's cache does on the Verilated em_cxl_cache: the same operations in
// the same order, and each step, fetch, victim and response must come in its cycle, as it was.
// Reads a trace of `cache_trace` from the standard input; the argument is the share of cycles, in
// percent, in which an operation or room is offered.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "../coverage.h"
#include "../cxl_trace.h"
#include "Vem_cxl_cache.h"
#include "verilated.h"

namespace {

// Cycles from the one in which an operation is taken.
constexpr uint64_t kStep = 2, kVictimData = 4, kWritten = 4, kRead = 6;

using cxl_trace::fail;
using cxl_trace::Line;
using cxl_trace::line_of;
using cxl_trace::number;

const std::vector<std::string> kSteps = {"hit",     "miss",    "merged", "allocated", "replaced",
                                         "stalled", "cleaned", "kept",   "filled"};

struct Answer {
  uint32_t id = 0;
  bool good = false;
  Line data = {};
};

struct Row {
  char op = 0;
  bool again = false, flag = false, fetches = false, victim = false;
  uint64_t line = 0, mask = 0, victim_line = 0, victim_mask = 0;
  uint32_t id = 0, step = 0, fetch = 0;
  Line data = {}, victim_data = {};
  std::vector<Answer> answers;
};

template <typename T>
struct Due {
  uint64_t cycle;
  T what;
};

bool parse(Row* row) {
  std::string text;
  if (!std::getline(std::cin, text)) return false;
  std::istringstream words(text);
  std::vector<std::string> fields;
  for (std::string word; words >> word;) fields.push_back(word);
  if (fields.size() < 11) fail(0, "not a row: " + text);
  *row = Row();
  row->again = fields[0][0] >= 'a';
  row->op = static_cast<char>(std::toupper(fields[0][0]));
  row->line = number(fields[1]);
  row->id = static_cast<uint32_t>(number(fields[2]));
  row->mask = number(fields[3]);
  row->data = line_of(fields[4]);
  row->flag = fields[5] == "1";
  while (row->step < kSteps.size() && kSteps[row->step] != fields[6]) row->step++;
  row->fetches = fields[7] != "-";
  row->fetch = static_cast<uint32_t>(number(fields[7]));
  row->victim = fields[8] != "-";
  row->victim_line = number(fields[8]);
  row->victim_mask = number(fields[9]);
  row->victim_data = line_of(fields[10]);
  for (size_t i = 11; i + 2 < fields.size(); i += 3) {
    row->answers.push_back({static_cast<uint32_t>(number(fields[i])), fields[i + 1] == "1",
                            line_of(fields[i + 2])});
  }
  return true;
}

class Bench {
 public:
  Bench(uint64_t first, uint64_t last, unsigned share) : share_(share) {
    dut_.range_first_i = first;
    dut_.range_last_i = last;
    dut_.clk_i = dut_.rst_ni = 0;
    dut_.access_valid_i = dut_.fill_valid_i = 0;
    for (int half = 0; half < 6; half++) {
      dut_.eval();
      dut_.clk_i = !dut_.clk_i;
    }
    dut_.rst_ni = 1;
    more_ = parse(&row_);
  }

  bool waits() const {
    return more_ || !steps_.empty() || !reads_.empty() || !written_.empty() || !victims_.empty();
  }

  void cycle() {
    dut_.clk_i = 0;
    // An access that comes again is offered by the cache itself.
    const bool is_fill = row_.op == 'F';
    const bool offered = more_ && !row_.again && (offered_ || (chance() && !(is_fill && early())));
    dut_.access_valid_i = offered && !is_fill;
    dut_.fill_valid_i = offered && is_fill;
    dut_.room_i = chance();
    if (offered) offer();
    dut_.eval();
    check();
    offered_ = offered;
    const bool taken = offered && (is_fill ? dut_.fill_ready_o : dut_.access_ready_o);
    if (taken) {
      offered_ = false;
      expect(now_);
    }
    idle_ = taken ? 0 : idle_ + 1;
    if (idle_ > 100'000) fail(now_, "an operation is never taken");
    dut_.clk_i = 1;
    dut_.eval();
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
  bool chance() { return draws_() % 100 < share_; }

  // The fetch of a fill has not been asked for yet.
  bool early() const {
    for (const Due<Row>& step : steps_) {
      if (step.what.fetches && step.what.fetch == row_.id) return true;
    }
    return false;
  }

  void offer() {
    dut_.access_op_i = row_.op == 'R' ? 0 : row_.op == 'W' ? 1 : 2;
    dut_.access_line_i = row_.line;
    dut_.access_id_i = static_cast<uint8_t>(row_.id);
    dut_.access_mask_i = row_.mask;
    dut_.access_drop_i = row_.flag;
    dut_.fill_fetch_i = static_cast<uint8_t>(row_.id);
    dut_.fill_good_i = row_.flag;
    for (unsigned i = 0; i < 16; i++) dut_.access_data_i[i] = dut_.fill_data_i[i] = row_.data[i];
  }

  // What the operation that was taken in a cycle leads to, and when.
  void expect(uint64_t taken) {
    const char* again = row_.again ? "again_" : "";
    counts_[again + std::string(1, row_.op) + "_" + kSteps.at(row_.step)]++;
    counts_["victims"] += row_.victim;
    counts_["partial"] += row_.victim && row_.victim_mask != ~uint64_t{0};
    counts_["answers"] += row_.answers.size();
    steps_.push_back({taken + kStep, row_});
    if (row_.victim) victims_.push_back({taken + kVictimData, row_});
    if (row_.op == 'W' && kSteps[row_.step] != "stalled") {
      written_.push_back({taken + kWritten, row_});
    }
    uint64_t at = taken + kRead;
    for (const Answer& answer : row_.answers) reads_.push_back({at++, answer});
    more_ = parse(&row_);
  }

  template <typename T>
  bool due(const std::deque<Due<T>>& queue, bool comes, const char* what) {
    const bool is_due = !queue.empty() && queue.front().cycle == now_;
    if (is_due != comes) fail(now_, std::string(comes ? "too early: " : "not there: ") + what);
    return is_due;
  }

  void check() {
    // An access that stalled comes again in its own time; what it leads to is then counted from it.
    const bool told = dut_.step_valid_o && dut_.step_op_o != 4;
    if (told && more_ && row_.again && steps_.empty()) expect(now_ - kStep);
    if (due(steps_, told, "a step")) {
      check_step(steps_.front().what);
      steps_.pop_front();
    } else if (dut_.fetch_valid_o || dut_.victim_valid_o) {
      fail(now_, "a fetch or a victim without a step");
    }
    if (due(victims_, dut_.victim_data_valid_o, "a victim's data")) {
      const Row& row = victims_.front().what;
      for (unsigned i = 0; i < 64; i++) {
        const uint32_t differ = dut_.victim_data_o[i / 4] ^ row.victim_data[i / 4];
        if ((row.victim_mask >> i & 1) && (differ >> 8 * (i % 4) & 0xff)) {
          fail(now_, "victim's data");
        }
      }
      victims_.pop_front();
    }
    if (due(written_, dut_.written_valid_o, "the response of a write")) {
      const Row& row = written_.front().what;
      if (dut_.written_id_o != row.id || dut_.written_replaced_o != row.victim) {
        fail(now_, "the response of a write is another");
      }
      written_.pop_front();
    }
    if (due(reads_, dut_.read_valid_o, "the response of a read")) {
      const Answer& answer = reads_.front().what;
      bool equal = dut_.read_id_o == answer.id && dut_.read_good_o == answer.good;
      for (unsigned i = 0; answer.good && i < 16; i++) {
        equal &= dut_.read_data_o[i] == answer.data[i];
      }
      if (!equal) fail(now_, "the response of a read is another");
      reads_.pop_front();
    }
  }

  void check_step(const Row& row) {
    bool equal = dut_.step_o == row.step && dut_.fetch_valid_o == row.fetches &&
                 dut_.victim_valid_o == row.victim;
    if (row.op == 'R' || row.op == 'W') equal &= dut_.step_id_o == row.id;
    if (row.fetches) equal &= dut_.fetch_o == row.fetch && dut_.fetch_line_o == row.line;
    if (row.victim) {
      equal &= dut_.victim_line_o == row.victim_line && dut_.victim_mask_o == row.victim_mask;
    }
    if (!equal) {
      const char* step = dut_.step_o < kSteps.size() ? kSteps[dut_.step_o].c_str() : "none";
      fail(now_, std::string(1, row.op) + " is " + step + ", not " + kSteps[row.step]);
    }
  }

  Vem_cxl_cache dut_;
  em::Coverage coverage_;
  std::mt19937 draws_{1};
  unsigned share_;
  Row row_;
  bool more_ = false, offered_ = false;
  uint64_t now_ = 0, idle_ = 0;
  std::deque<Due<Row>> steps_, victims_, written_;
  std::deque<Due<Answer>> reads_;
  std::map<std::string, uint64_t> counts_;
};

}  // namespace

int main(int argc, char** argv) {
  Verilated::commandArgs(argc, argv);
  std::string text;
  std::getline(std::cin, text);
  const auto space = text.find(' ');
  Bench bench(number(text.substr(0, space)), number(text.substr(space + 1)),
              argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 100);
  while (bench.waits()) bench.cycle();
  bench.print();
  return 0;
}
