// The only source file of the compiled library (CMake target lotus::lotus). A program that does not
// link that library can compile a file with these two lines itself, and define LOTUS_COMPILED in
// all its files, so that the engine (the code that records) is compiled only here.
#define LOTUS_IMPLEMENTATION
#include <lotus/lotus.hpp>
