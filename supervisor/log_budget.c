/*
 * See log_budget.h.
 */
#include "supervisor/log_budget.h"

/* When the line that is `back` lines after the oldest one stops to count. */
static struct mono_ms expiry(const struct log_budget *budget, size_t back)
{
    return (struct mono_ms){budget->times[(budget->next + back) % LOG_BUDGET_LINES].v + LOG_BUDGET_MS};
}

bool log_budget_open(struct log_budget *budget, struct mono_ms now)
{
    if (budget->used < LOG_BUDGET_LINES) {
        return true;
    }
    if (budget->spent) {
        budget->spent = now.v < log_budget_reopens(budget).v;
    } else {
        budget->spent = now.v < expiry(budget, 0).v;
    }
    return !budget->spent;
}

void log_budget_take(struct log_budget *budget, struct mono_ms now)
{
    budget->times[budget->next] = now;
    budget->next = (budget->next + 1) % LOG_BUDGET_LINES;
    if (budget->used < LOG_BUDGET_LINES) {
        budget->used++;
    }
}

struct mono_ms log_budget_reopens(const struct log_budget *budget)
{
    return expiry(budget, LOG_BUDGET_LINES / 2 - 1);
}
