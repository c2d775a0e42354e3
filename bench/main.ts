/** Command line of the bench: see `options.ts`. */
import { writeFile } from 'node:fs/promises';
import { cpus } from 'node:os';
import { isReached } from './goals.ts';
import { type Options, readOptions, usage } from './options.ts';
import { describeFinding, describeGoals } from './report.ts';
import { type Finding, runScenario } from './run.ts';
import type { Scenario } from './scenario.ts';
import { scenarios } from './scenarios/index.ts';
import type { Target, TargetKind } from './target.ts';
import { startCeiling } from './targets/ceiling.ts';
import { startHearth } from './targets/hearth.ts';
import { peer } from './targets/peer.ts';

// Exits explicitly, because the package that starts PostgreSQL would end the process with code 0.
process.exit(await main(process.argv.slice(2)));

async function main(args: readonly string[]): Promise<number> {
  try {
    const options = readOptions(args);
    if (!options.help) return (await bench(selectedScenarios(options), options)) ? 0 : 1;
    process.stdout.write(usage);
    return 0;
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    process.stderr.write(`${error.message}\n`);
    return 2;
  }
}

/** Runs scenarios and prints their results. @returns whether all scenarios could be measured, even if goals are missed */
async function bench(scenarios: readonly Scenario[], options: Options): Promise<boolean> {
  const findings: Finding[] = [];
  let complete = true;
  for (const scenario of scenarios) {
    try {
      for (const finding of await runOnFreshTargets(scenario, options)) {
        findings.push(finding);
        print(`${describeFinding(finding)}\n`);
      }
    } catch (error) {
      complete = false;
      print(`${scenario.name} failed: ${error instanceof Error ? error.stack : error}\n`);
    }
  }
  print(describeGoals(findings));
  if (options.json)
    await writeFile(options.json, `${JSON.stringify(asJson(findings, options), undefined, 2)}\n`);
  return complete;
}

/** Returns the scenarios that the options name; without names, all except long ones. @throws TypeError for an unknown name */
function selectedScenarios({ scenarios: names }: Options): readonly Scenario[] {
  const known = scenarios.map(({ name }) => name);
  for (const name of names) {
    if (!known.includes(name)) throw new TypeError(`no scenario "${name}"; there are ${known.join(', ')}`);
  }
  return names.length === 0
    ? scenarios.filter(({ isLong }) => !isLong)
    : scenarios.filter(({ name }) => names.includes(name));
}

/** Runs a scenario on new servers, so that its results do not depend on the scenarios before it. */
async function runOnFreshTargets(scenario: Scenario, options: Options): Promise<Finding[]> {
  const targets: Target[] = [];
  try {
    for (const kind of scenario.targets.filter((kind) => !options.without.includes(kind))) {
      const target = await startTarget(kind, options);
      if (target) targets.push(target);
    }
    if (targets.length === 0) return [];
    return await runScenario(scenario, targets, options);
  } finally {
    for (const target of targets) await target.close();
  }
}

/** @returns `undefined` for a peer when the options name none */
async function startTarget(kind: TargetKind, options: Options): Promise<Target | undefined> {
  if (kind === 'hearth') return startHearth(options.postgres);
  if (kind === 'ceiling') return startCeiling();
  return options.peer && peer(options.peer.url, options.peer.secret);
}

function asJson(findings: readonly Finding[], { rounds, seconds, postgres, peer }: Options): object {
  return {
    machine: { cpus: cpus().map(({ model }) => model), node: process.version, platform: process.platform },
    options: { rounds, seconds, postgres, peer: peer?.url },
    loads: findings.map(({ load, results }) => ({
      name: load.name,
      title: load.title,
      operation: load.operation,
      results,
      goals: load.goals.map((goal) => {
        const figure = goal.figure(results);
        const { unit, atLeast, atMost } = goal;
        return { unit, atLeast, atMost, figure, reached: isReached(goal, figure) };
      }),
    })),
  };
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}
