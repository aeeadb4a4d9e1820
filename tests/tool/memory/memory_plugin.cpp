// Is loaded while the program runs, and allocates in a scope of its own copy of the library.
#include <cstdlib>

#include "lotus/lotus.hpp"

extern "C" __attribute__((visibility("default"))) void allocate_in_a_scope() {
  LOTUS_SCOPE("Plugin");
  void* block = std::malloc(123);
  asm volatile("" : "+r"(block)::"memory");
  std::free(block);
}
