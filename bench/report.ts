import { isReached } from './goals.ts';
import type { Finding } from './run.ts';
import type { Goal, Result, Results } from './scenario.ts';

const mebibyte = 2 ** 20;
/** Above this share of the time, the load generator may have been the bottleneck instead of the server. */
const maxGeneratorShare = 0.85;

/** Formats the numbers of one load, one line for each target. */
export function describeFinding({ load, results }: Finding): string {
  const header = [
    load.title,
    `${load.operation}/s`,
    'p50 ms',
    'p95 ms',
    'p99 ms',
    'cpu s/1000',
    'MiB',
    'generator',
  ];
  const rows = Object.entries(results).map(([kind, result]) => [`  ${kind}`, ...numbersOf(result)]);
  const isOverloaded = Object.values(results).some(({ generatorBusy }) => generatorBusy > maxGeneratorShare);
  const warning = isOverloaded
    ? [
        `! the load generator may have been the bottleneck where its share is above ${inPercent(maxGeneratorShare)}`,
      ]
    : [];
  return [...table([header, ...rows]), ...warning].join('\n');
}

function numbersOf(result: Result): string[] {
  const { throughput, p50, p95, p99, cpuPerThousand, residentBytes, generatorBusy } = result;
  const memory = residentBytes === undefined ? Number.NaN : residentBytes / mebibyte;
  const cpu = cpuPerThousand ?? Number.NaN;
  return [...[throughput, p50, p95, p99, cpu, memory].map(short), inPercent(generatorBusy)];
}

/** Formats Hearth's figures and the goals they are compared with. */
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

function inPercent(share: number): string {
  return `${Math.round(100 * share)} %`;
}

/** Formats three significant digits. */
function short(value: number): string {
  if (Number.isNaN(value)) return '-';
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString('en');
  return value.toPrecision(3);
}

/** Pads the columns; the first column and those from `leftFrom` on are left-aligned. */
function table(rows: readonly (readonly string[])[], leftFrom = Number.POSITIVE_INFINITY): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const pad = (cell: string, column: number) => {
    const width = widths[column] ?? 0;
    return column === 0 || column >= leftFrom ? cell.padEnd(width) : cell.padStart(width);
  };
  return rows.map((row) => row.map(pad).join('  ').trimEnd());
}
