/* The SMs that ptxvm knows (sm.def). */
#ifndef PTXVM_SM_H
#define PTXVM_SM_H

typedef struct sm_traits {
    int sm, threads, blocks, shared, shared_optin, double_ratio, cluster;
} sm_traits;

/* Null for an SM that is not in the table. */
const sm_traits *pvm_sm_traits(int sm);
/* The SM itself or the next later one that is in the table, or the last one. */
const sm_traits *pvm_sm_traits_near(int sm);

/* A target, which may be older than the SMs: the first .version * 10 that has it, with a and with f, and its family. */
typedef struct sm_target {
    int sm, version, a_version, f_version, family;
} sm_target;
/* Null for a number that .target does not take. */
const sm_target *pvm_sm_target(int sm);

#endif
