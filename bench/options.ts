import { parseArgs } from 'node:util';

export interface Options {
  /** Names of scenarios; all when empty. */
  readonly scenarios: readonly string[];
  readonly rounds: number;
  readonly seconds: number;
  readonly postgres: boolean;
  /** Kinds of targets that are left out. */
  readonly without: readonly string[];
  readonly peer: { readonly url: string; readonly secret: string } | undefined;
  /** Path of the file for the results. */
  readonly json: string | undefined;
  readonly help: boolean;
}

export const usage = `npm run bench -- [options]

Starts Hearth and the ceiling, puts both to the same work in turns, and tells how Hearth does.

  --scenario NAME      only this one; may be given several times
  --rounds N           rounds of each load (3)
  --seconds N          seconds of each round (4)
  --quick              one round of one second: to see that all of it works
  --postgres           Hearth on a PostgreSQL that the bench starts, instead of on SQLite
  --peer URL           puts another homeserver that runs already to the same work
  --peer-secret TEXT   its registration_shared_secret
  --without KIND       leaves out hearth, ceiling or peer; may be given several times
  --json FILE          writes the results as JSON as well
`;

/** @throws TypeError that says which option is wrong. */
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
  if (!(number > 0)) throw new TypeError(`--${name} wants a number above zero, not "${text}"`);
  return number;
}
