export const KiB = 1024;
export const MiB = 1024 * KiB;

/**
 * Bytes that all caches of a process may hold together at factor 1. The server starts only if the caches that it
 * creates request at most this number of bytes together. At the default factor of 0.5, full caches hold 296 MiB, in
 * addition to the about 100 MiB of an idle server.
 */
export const maxCacheBytes = 592 * MiB;
