#include <iostream>

#include "cli.hpp"

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  return lotus::tool::run_cli(argc, argv, std::cout, std::cerr);
}
