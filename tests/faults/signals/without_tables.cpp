// Records scopes in functions without unwind tables.
#include "signals/without_tables.hpp"

#include "lotus/lotus.hpp"

namespace {

__attribute__((noinline)) void record_deep(int depth) {
  volatile char room[3000];
  room[0] = static_cast<char>(depth);
  if (depth > 1) {
    record_deep(depth - 1);
  } else {
    LOTUS_SCOPE("Deep");
  }
  room[1] = room[0];
}

}  // namespace

void record_without_tables(int depth) {
  if (depth > 0) return record_deep(depth);
  LOTUS_SCOPE("Shallow");
}
