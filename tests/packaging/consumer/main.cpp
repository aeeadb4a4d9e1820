// What every consumer project compiles: records two scopes into the log that it is told.
#include <lotus/lotus.hpp>

void second();

int main(int argc, char** argv) {
  if (argc != 2 || !lotus::start(argv[1])) return 1;
  {
    LOTUS_SCOPE("Consumer");
    second();
  }
  lotus::stop();
}
