import { type Homeserver, InteropNetwork } from './interop-network.ts';

export interface Servers<Server extends Homeserver = Homeserver> {
  readonly hearth: Server;
  readonly reference: Server;
}

/** Environment variable that names the running servers for all test files. */
const variable = 'HEARTH_INTEROP_SERVERS';

/** Passes the servers to the test files. Each test file is a process of its own. */
export function shareServers(servers: Servers): void {
  const address = ({ name, url, logFile }: Homeserver): Homeserver => ({ name, url, logFile });
  process.env[variable] = JSON.stringify({
    hearth: address(servers.hearth),
    reference: address(servers.reference),
  });
}

/** Returns the shared servers or, for a test file that is run alone, newly started ones. */
export async function sharedServers(): Promise<{ servers: Servers; release(): Promise<void> }> {
  const shared = process.env[variable];
  if (shared !== undefined) return { servers: JSON.parse(shared) as Servers, async release() {} };
  const network = await InteropNetwork.start();
  return { servers: network, release: () => network.stop() };
}
