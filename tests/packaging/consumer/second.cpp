// Another file of it, which records a scope too.
#include <lotus/lotus.hpp>

void second() {
  LOTUS_SCOPE("Second");
}
