import type { Route } from '../src/kernel/http/index.ts';
import { startTestServer } from '../test/support/servers/server.ts';

/** Starts a server with the options of the tests, and returns its routes. */
export async function routesOfServer(): Promise<readonly Route[]> {
  const server = await startTestServer({ database: 'sqlite' });
  try {
    return server.homeserver.routes;
  } finally {
    await server.stop();
  }
}
