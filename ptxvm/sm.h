/* The SMs that ptxvm knows, by their limits (sm.def). */
#ifndef PTXVM_SM_H
#define PTXVM_SM_H

typedef struct sm_traits {
    int sm, threads, blocks, shared, shared_optin, double_ratio;
} sm_traits;

/* Null for an SM that is not in the table. */
const sm_traits *pvm_sm_traits(int sm);
/* The SM itself or the next later one that is in the table, or the last one. */
const sm_traits *pvm_sm_traits_near(int sm);

#endif
