// The compiled library, lotus::lotus: what any program has that does without it and defines
// LOTUS_COMPILED everywhere and LOTUS_IMPLEMENTATION in one file.
#define LOTUS_IMPLEMENTATION
#include <lotus/lotus.hpp>
