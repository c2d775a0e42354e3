import type { CheckedStores, CheckFindings, DatabaseCheck } from './database-check.ts';

/** The result of one check. */
export interface CheckResult extends CheckFindings {
  readonly problem: string;
  /**
   * `none`: nothing found; `mended`: found and repaired; `mendable`: can be repaired while no server runs; `open`: an
   * operator must decide, or the repair has left some findings.
   */
  readonly outcome: 'none' | 'mended' | 'mendable' | 'open';
}

/**
 * Runs all checks, one after the other, without blocking the event loop or a running server.
 * @param mends whether to repair the problems whose repair loses no data; requires that no server uses the databases
 */
export async function checkDatabase(
  stores: CheckedStores,
  checks: readonly DatabaseCheck[],
  mends: boolean,
): Promise<CheckResult[]> {
  const results: CheckResult[] = [];
  for (const check of checks) {
    const { problem } = check;
    const found = await check.find(stores);
    if (found.count === 0) results.push({ problem, ...found, outcome: 'none' });
    else if (!check.mend) results.push({ problem, ...found, outcome: 'open' });
    else if (!mends) results.push({ problem, ...found, outcome: 'mendable' });
    else {
      await stores[check.store ?? 'main'].transaction(async (writer) => check.mend?.(writer));
      const left = await check.find(stores);
      if (left.count === 0) results.push({ problem, ...found, outcome: 'mended' });
      else results.push({ problem, ...left, outcome: 'open' });
    }
  }
  return results;
}
