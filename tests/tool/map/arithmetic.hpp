// Provides work for probe programs: only arithmetic, so that no other functions appear in profiles.
#ifndef LOTUS_TESTS_ARITHMETIC_HPP
#define LOTUS_TESTS_ARITHMETIC_HPP

template <int Id>
__attribute__((always_inline)) inline double arithmetic(int rounds) {
  double x = Id;
  for (int i = 0; i < rounds; ++i) {
    x = x * 1.0000001 + Id;
    __asm__ volatile("" : "+x"(x));
  }
  return x;
}

#endif  // LOTUS_TESTS_ARITHMETIC_HPP
