// Collectives in the manner of the OSU benchmarks: mean latency of each, by size, and the sum of
// all that was received. `mpicc -O2 collectives.c -o collectives`.

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { WARM_UP = 3, KINDS = 4 };

static const char *const NAMES[KINDS] = {"allreduce", "alltoall", "gather", "broadcast"};

static void call(int kind, double *from, double *to, int count) {
    switch (kind) {
    case 0:
        MPI_Allreduce(from, to, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        break;
    case 1:
        MPI_Alltoall(from, count, MPI_DOUBLE, to, count, MPI_DOUBLE, MPI_COMM_WORLD);
        break;
    case 2:
        MPI_Gather(from, count, MPI_DOUBLE, to, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        break;
    default:
        MPI_Bcast(from, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank = 0, ranks = 0, sized = argc > 2 ? argc - 2 : 0;
    int calls = argc > 1 ? atoi(argv[1]) : 100;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int size = 0; size < sized; size++) {
        int count = atoi(argv[2 + size]) / (int)sizeof(double);
        size_t most = (size_t)count * ranks;
        double *from = calloc(most, sizeof *from), *to = calloc(most, sizeof *to);
        if (!from || !to) MPI_Abort(MPI_COMM_WORLD, 1);
        for (int kind = 0; kind < KINDS; kind++) {
            // Small whole numbers: their sums are exact in any order.
            for (size_t at = 0; at < most; at++)
                from[at] = (double)(rank * 1009 + (at * 31 + kind) % 997);
            for (int turn = 0; turn < WARM_UP; turn++) call(kind, from, to, count);
            // Calls with large buffers are fewer.
            int turns = count > 10000 ? calls / 10 + 1 : calls;
            MPI_Barrier(MPI_COMM_WORLD);
            double start = MPI_Wtime();
            for (int turn = 0; turn < turns; turn++) call(kind, from, to, count);
            MPI_Barrier(MPI_COMM_WORLD);
            double each_us = (MPI_Wtime() - start) / turns * 1e6, own = 0, all = 0;
            for (size_t at = 0; at < most; at++) own += (to[at] + from[at]) * (double)(at % 89 + 1);
            MPI_Reduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
            if (rank == 0) printf("%s %d %.3f %.0f\n", NAMES[kind], count * 8, each_us, all);
        }
        free(from);
        free(to);
    }
    MPI_Finalize();
    return 0;
}
