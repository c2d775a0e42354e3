import { databaseChecks } from '../../composition/database-checks.ts';
import { type CheckResult, checkDatabase } from '../../kernel/database/index.ts';
import type { ConfigFlags } from '../configuration-files.ts';
import { configuredDatabases, openStores } from './configured-database.ts';

export interface CheckFlags extends ConfigFlags {
  /** Repairs the problems that can be repaired without a loss of data; the server must be stopped. */
  readonly mend?: boolean;
  readonly json?: boolean;
}

/**
 * `hearth database check`: reports inconsistencies of the database. The exit code is 1 if inconsistencies remain.
 */
export async function checkConfiguredDatabase(flags: CheckFlags): Promise<void> {
  const options = configuredDatabases(flags);
  const mends = flags.mend ?? false;
  const stores = await openStores(options, mends);
  try {
    const results = await checkDatabase(stores, databaseChecks(options.main.kind), mends);
    const problems = results.filter(({ outcome }) => outcome !== 'none');
    process.stdout.write(
      flags.json ? `${JSON.stringify({ checks: results })}\n` : report(results.length, problems),
    );
    if (problems.some(({ outcome }) => outcome !== 'mended')) process.exitCode = 1;
  } finally {
    await stores.close();
  }
}

function report(checks: number, problems: readonly CheckResult[]): string {
  if (problems.length === 0) return `${checks} checks, nothing found.\n`;
  const lines = problems.map(({ problem, count, examples, outcome }) => {
    const ellipsis = count > examples.length ? ', …' : '';
    return `${labels[outcome]} ${count} ${problem}\n  ${examples.join(', ')}${ellipsis}\n`;
  });
  return `${lines.join('')}${checks} checks, ${problems.length} with findings.\n`;
}

const labels: Readonly<Record<CheckResult['outcome'], string>> = {
  none: '',
  mended: '[mended]',
  mendable: '[--mend mends it]',
  open: '[needs a decision]',
};
