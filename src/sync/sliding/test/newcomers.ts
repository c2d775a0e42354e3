import { Person } from '../../../../test/support/people/person.ts';
import type { TestServer } from '../../../../test/support/servers/server.ts';

/** @returns a function that registers users whom no other test has */
export function newcomersOn(server: () => TestServer) {
  let count = 0;
  return (...names: readonly string[]) =>
    Promise.all(names.map((name) => Person.register(server(), `${name}${count++}`)));
}
