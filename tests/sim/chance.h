/*
 * The randomness of a run: one 64-bit seed decides everything, so a seed that fails can be run again.
 */
#ifndef TESTS_SIM_CHANCE_H
#define TESTS_SIM_CHANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct chance {
    uint64_t state;
};

void chance_seed(struct chance *chance, uint64_t seed);
uint64_t chance_next(struct chance *chance);
/* 0 … limit - 1; 0 where limit is 0. */
uint64_t chance_below(struct chance *chance, uint64_t limit);
/* Both ends included. */
int64_t chance_between(struct chance *chance, int64_t low, int64_t high);
/* Small values as likely as large ones of every order of magnitude; both ends included, low >= 1. */
int64_t chance_spread(struct chance *chance, int64_t low, int64_t high);
bool chance_of(struct chance *chance, uint64_t per_mille);

#endif
