// A plugin that is loaded while the program runs. It contains its own copy of the library, and
// allocates in a scope.
#include <cstdlib>

#include "lotus/lotus.hpp"

extern "C" __attribute__((visibility("default"))) void allocate_in_a_scope() {
  LOTUS_SCOPE("Plugin");
  void* block = std::malloc(123);
  asm volatile("" : "+r"(block)::"memory");
  std::free(block);
}
