import type { TestServer } from '../../../../test/support/servers/server.ts';
import { TestClient } from '../../../../test/support/users/test-client.ts';

/** Returns a function that registers users. It appends a number to each name, so that tests can use the same names. */
export function userRegistrationOn(server: () => TestServer) {
  let count = 0;
  return (...names: readonly string[]) =>
    Promise.all(names.map((name) => TestClient.register(server(), `${name}${count++}`)));
}
