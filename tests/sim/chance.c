/* splitmix64: small, whole period, and good enough to pick schedules with. */
#include "tests/sim/chance.h"

void chance_seed(struct chance *chance, uint64_t seed)
{
    chance->state = seed;
}

uint64_t chance_next(struct chance *chance)
{
    uint64_t mixed = (chance->state += 0x9e3779b97f4a7c15u);
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return mixed ^ (mixed >> 31);
}

uint64_t chance_below(struct chance *chance, uint64_t limit)
{
    return limit > 0 ? chance_next(chance) % limit : 0;
}

int64_t chance_between(struct chance *chance, int64_t low, int64_t high)
{
    return low + (int64_t)chance_below(chance, (uint64_t)(high - low) + 1);
}

int64_t chance_spread(struct chance *chance, int64_t low, int64_t high)
{
    int doublings = 0;
    while (doublings < 62 && (low << doublings) < high)
        doublings++;
    int64_t from = low << chance_below(chance, (uint64_t)doublings + 1);
    if (from > high)
        from = high;
    return chance_between(chance, from, from * 2 < high ? from * 2 : high);
}

bool chance_of(struct chance *chance, uint64_t per_mille)
{
    return chance_below(chance, 1000) < per_mille;
}
