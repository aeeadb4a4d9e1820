// The compiled library, lotus::lotus. A program that does not link it can contain a file like this
// one instead; all its files must then define LOTUS_COMPILED.
#define LOTUS_IMPLEMENTATION
#include <lotus/lotus.hpp>
