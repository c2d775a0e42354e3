import { isReached } from './goals.ts';
import type { Finding } from './run.ts';
import type { Goal, Result, Results } from './scenario.ts';

const mebibyte = 2 ** 20;
/** From this share of the time on, the load and not the server may set the pace. */
const busy = 0.85;

/** The numbers of one load, a line for each target. */
export function describeFinding({ load, results }: Finding): string {
  const header = [
    load.title,
    `${load.operation}/s`,
    'p50 ms',
    'p95 ms',
    'p99 ms',
    'cpu s/1000',
    'MiB',
    'load',
  ];
  const rows = Object.entries(results).map(([kind, result]) => [`  ${kind}`, ...numbersOf(result)]);
  const wide = Object.values(results).some(({ generatorBusy }) => generatorBusy > busy);
  const warning = wide ? ['  ! the load itself was the bottleneck where it was busy for so long'] : [];
  return [...table([header, ...rows]), ...warning].join('\n');
}

function numbersOf(result: Result): string[] {
  const { throughput, p50, p95, p99, cpuPerThousand, residentBytes, generatorBusy } = result;
  const memory = residentBytes === undefined ? Number.NaN : residentBytes / mebibyte;
  const cpu = cpuPerThousand ?? Number.NaN;
  return [...[throughput, p50, p95, p99, cpu, memory].map(short), `${Math.round(100 * generatorBusy)} %`];
}

/** Hearth's ratios and the goals they are held against. */
export function describeGoals(findings: readonly Finding[]): string {
  const rows = findings.flatMap(({ load, results }) =>
    load.goals.flatMap((goal) => {
      const figure = goal.figure(results);
      return figure === undefined
        ? []
        : [[load.title, short(figure), goal.unit, limit(goal), verdict(goal, results)]];
    }),
  );
  return table([['work', 'measured', '', 'goal', ''], ...rows], 2).join('\n');
}

function limit({ atLeast, atMost }: Goal): string {
  if (atLeast !== undefined) return `at least ${atLeast}`;
  return atMost === undefined ? '' : `at most ${atMost}`;
}

function verdict(goal: Goal, results: Results): string {
  const reached = isReached(goal, goal.figure(results));
  if (reached === undefined) return '';
  return reached ? 'reached' : 'MISSED';
}

/** Three digits that matter. */
function short(value: number): string {
  if (Number.isNaN(value)) return '-';
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString('en');
  return value.toPrecision(3);
}

/** Pads the columns; the ones from the second on stand on the right, except those from `leftFrom` on. */
function table(rows: readonly (readonly string[])[], leftFrom = Number.POSITIVE_INFINITY): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const pad = (cell: string, column: number) => {
    const width = widths[column] ?? 0;
    return column === 0 || column >= leftFrom ? cell.padEnd(width) : cell.padStart(width);
  };
  return rows.map((row) => row.map(pad).join('  ').trimEnd());
}
