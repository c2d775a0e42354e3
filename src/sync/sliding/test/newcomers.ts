import type { TestServer } from '../../../../test/support/servers/server.ts';
import { TestClient } from '../../../../test/support/users/test-client.ts';

/** @returns a function that registers users with new names */
export function newcomersOn(server: () => TestServer) {
  let count = 0;
  return (...names: readonly string[]) =>
    Promise.all(names.map((name) => TestClient.register(server(), `${name}${count++}`)));
}
