// A second source file of the consumer project, which also records a scope.
#include <lotus/lotus.hpp>

void second() {
  LOTUS_SCOPE("Second");
}
