// What the benches that replay traces of crates/cxl share: numbers and lines in a trace's text.

#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace cxl_trace {

using Line = std::array<uint32_t, 16>;

[[noreturn]] inline void fail(uint64_t cycle, const std::string& what) {
  std::printf("cycle %llu: %s\n", static_cast<unsigned long long>(cycle), what.c_str());
  std::exit(1);
}

// Hexadecimal; `-` is nothing.
inline uint64_t number(const std::string& text) {
  return text == "-" ? 0 : std::stoull(text, nullptr, 16);
}

// The byte at the highest address is written first.
inline Line line_of(const std::string& text) {
  Line line = {};
  if (text == "-") return line;
  for (unsigned i = 0; i < 16; i++) {
    line[15 - i] = static_cast<uint32_t>(std::stoul(text.substr(8 * i, 8), nullptr, 16));
  }
  return line;
}

}  // namespace cxl_trace
