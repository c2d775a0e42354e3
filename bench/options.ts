import { parseArgs } from 'node:util';
import type { TargetKind } from './target.ts';

/** The options of the command line. */
export interface Options {
  /** Names of scenarios; an empty list selects all except long ones. */
  readonly scenarios: readonly string[];
  /** Number of rounds of each load. */
  readonly rounds: number;
  /** Duration of each round. */
  readonly seconds: number;
  /** Whether Hearth runs on PostgreSQL. */
  readonly postgres: boolean;
  /** Kinds of targets to leave out. */
  readonly without: readonly string[];
  readonly peer: { readonly url: string; readonly secret: string } | undefined;
  /** Path of a file for the results as JSON. */
  readonly json: string | undefined;
  readonly help: boolean;
}

export const usage = `npm run bench -- [options]

Starts Hearth and the ceiling, runs the same load on both in alternating rounds, and reports how Hearth compares.

  --scenario NAME      runs only this scenario; may be given several times. The scenario
                       memory takes seven minutes and runs only when it is named
  --rounds N           number of rounds of each load (default 3)
  --seconds N          duration of each round in seconds (default 4)
  --quick              one round of one second, to check that everything works
  --postgres           runs Hearth on a PostgreSQL that the bench starts, instead of SQLite
  --peer URL           also runs the load on another homeserver that is already running
  --peer-secret TEXT   registration_shared_secret of the peer
  --without KIND       leaves out hearth, ceiling or peer; may be given several times
  --json FILE          also writes the results as JSON
`;

const targetKinds: readonly string[] = ['hearth', 'ceiling', 'peer'] satisfies TargetKind[];

/** Reads the command line. @throws TypeError that names the wrong option */
export function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      scenario: { type: 'string', multiple: true, default: [] },
      rounds: { type: 'string' },
      seconds: { type: 'string' },
      quick: { type: 'boolean', default: false },
      postgres: { type: 'boolean', default: false },
      peer: { type: 'string' },
      'peer-secret': { type: 'string', default: '' },
      without: { type: 'string', multiple: true, default: [] },
      json: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  for (const kind of values.without) {
    if (!targetKinds.includes(kind)) {
      throw new TypeError(`--without must be one of ${targetKinds.join(', ')}, not "${kind}"`);
    }
  }
  return {
    scenarios: values.scenario,
    rounds: positive('rounds', values.rounds ?? (values.quick ? '1' : '3')),
    seconds: positive('seconds', values.seconds ?? (values.quick ? '1' : '4')),
    postgres: values.postgres,
    peer: values.peer === undefined ? undefined : { url: values.peer, secret: values['peer-secret'] },
    without: values.without,
    json: values.json,
    help: values.help,
  };
}

function positive(name: string, text: string): number {
  const number = Number(text);
  if (!(number > 0)) throw new TypeError(`--${name} must be a number above zero, not "${text}"`);
  return number;
}
