/*
 * Proving a lake (spec 4.4): what every part of `verify` shares. Windows come in order of k; whatever doesn't hold is a
 * fault, told in one line as it is found, and the proof goes on.
 *
 * Memory: eight bytes for each object's key, and with --deep a partition's name and where it stands; records are never
 * collected. That no record is twice follows: within an object from its order, across windows from the ranges of
 * offsets, since a partition's offsets grow with time.
 */
#ifndef SUPERVISOR_COMMANDS_PROOF_H
#define SUPERVISOR_COMMANDS_PROOF_H

#include "supervisor/commands/bucket.h"
#include "supervisor/commands/partition_table.h"

struct key_set;

/* An object that is still to be looked for. */
struct proof_object {
    char *key;
    uint64_t bytes;
};

struct proof;
/* Told of a manifest; nonzero ends the proof. */
typedef int proof_each(struct proof *proof, const struct manifest *manifest);

struct proof {
    struct bucket *bucket;
    const char *queue;
    char escaped[LAKE_NAME_SIZE];
    bool deep;
    uint64_t faults;
    /* What was found. */
    uint64_t windows;
    uint64_t records;
    uint64_t bytes;
    uint64_t objects;
    uint64_t lost; /* records */
    int64_t first_k;
    int64_t last_k; /* 0: none yet */
    struct broker_us start;
    struct broker_us end;  /* of the last window */
    char *sink;            /* whose lake it is */
    struct key_set *named; /* keys: the manifests that were read, and what they name */
    /* Objects whose HEAD is put off, so that many are asked for at once. */
    struct proof_object *waiting;
    size_t waiting_count;
    size_t waiting_capacity;
    struct partition_table partitions; /* deep */
    proof_each *each;                  /* of proof_lake() */
    void *argument;                    /* the caller's */
    struct window_bounds pending;      /* a window that is begun: its objects need no manifest yet. k 0: none */
    struct error failure;              /* of the bucket: the proof can't be ended */
};

void proof_begin(struct proof *proof, struct bucket *bucket, const char *queue, bool deep);
void proof_end(struct proof *proof);

/* `fault: subject: …` on standard output, counted. */
void proof_fault(struct proof *proof, const char *subject, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The manifests alone: k without a hole from 1 on, windows that tile, sums that add up, keys as they must be. All the
 * windows of the queue; 0, or negative where the bucket failed (proof->failure). each: called after a manifest was
 * found to be one; may be NULL. */
int proof_manifests(struct proof *proof, proof_each *each);

/* What an object's HEAD has answered: 1 where it is there with the expected size, 0 where that is told as a fault,
 * negative where the bucket failed (proof->failure). */
int proof_size(struct proof *proof, const char *key, uint64_t expected, const struct error *error, uint64_t size);
/* Looks for each object of the manifest, its size, now or once enough are put off; proof_objects_end() for the rest.
 * 0, or negative where the bucket failed. */
int proof_objects(struct proof *proof, const struct manifest *manifest);
int proof_objects_end(struct proof *proof);
/* Objects below queue=…/ that no manifest names, names that don't belong there, checkpoints beyond the last window. */
int proof_strays(struct proof *proof);

/* All of the above, each window's objects by proof_objects() or, deep, proof_records(); an empty lake is a fault. each: as
 * for proof_manifests(), may be NULL. 0: all was looked at, faults says what came of it. Negative: the bucket failed, or
 * nobody reads what is printed. */
int proof_lake(struct proof *proof, proof_each *each);
/* One line on standard output: how it ended. */
void proof_print_verdict(const struct proof *proof);

/* Reads each object of the manifest: sha256, records, order, bounds, counts. 0, or negative where the bucket failed. */
int proof_records(struct proof *proof, const struct manifest *manifest);

#endif
