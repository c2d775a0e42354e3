import type { PostgresOptions } from './options.ts';

/**
 * What the connections of a pool are for. `main`: transactions and short reads; `scanning`: long reads; `claiming`: the
 * lease, which must not wait for other work; `upkeep`: `VACUUM` and `REINDEX`.
 */
export type Purpose = 'main' | 'scanning' | 'claiming' | 'upkeep';

/** Maximum number of concurrent scans. */
const maxScanners = 2;

/** The bounds of the pool `main` when the options have none. */
export const defaultConnections = { min: 1, max: 10 };

/** Returns the maximum number of connections of each pool. */
export const poolSizes = ({
  connections = defaultConnections,
}: PostgresOptions): Record<Purpose, number> => ({
  main: connections.max,
  scanning: maxScanners,
  claiming: 1,
  upkeep: 1,
});

/** Returns the maximum number of connections that a server opens to a database, in all pools. */
export const maxConnections = (options: PostgresOptions): number =>
  Object.values(poolSizes(options)).reduce((sum, size) => sum + size, 0);
