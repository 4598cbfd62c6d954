// Writes what a run covered into the folder that RTL_COVERAGE names, if the model counts it.
//
// As a member behind the model, so that it ends before the model does, whose counters it reads.

#pragma once

#include <unistd.h>

#include <cstdlib>
#include <string>

#include "verilated.h"
#if VM_COVERAGE
#include "verilated_cov.h"
#endif

namespace em {

struct Coverage {
  ~Coverage() {
#if VM_COVERAGE
    const char* folder = std::getenv("RTL_COVERAGE");
    if (folder == nullptr) return;
    const std::string file = std::string(folder) + "/" + std::to_string(getpid()) + ".dat";
    Verilated::threadContextp()->coveragep()->write(file.c_str());
#endif
  }
};

}  // namespace em
