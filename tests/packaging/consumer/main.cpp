// The program that each test project builds; the projects use the library through CMake, Meson,
// Conan and in other ways. It records two scopes. Its argument is the path of the log.
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
