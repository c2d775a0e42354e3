import { type Member, Network } from './network.ts';

export interface Servers<Server extends Member = Member> {
  readonly hearth: Server;
  readonly reference: Server;
}

/** The environment variable that names the servers that the suite started for all its files. */
const variable = 'HEARTH_INTEROP_SERVERS';

/** Tells the test files, each a process of its own, of servers that are there for all of them. */
export function share(servers: Servers): void {
  const address = ({ name, url, logFile }: Member): Member => ({ name, url, logFile });
  process.env[variable] = JSON.stringify({
    hearth: address(servers.hearth),
    reference: address(servers.reference),
  });
}

/** The servers of the suite or, for a file that is run by itself, some that are started now. */
export async function sharedServers(): Promise<{ servers: Servers; release(): Promise<void> }> {
  const known = process.env[variable];
  if (known !== undefined) return { servers: JSON.parse(known) as Servers, async release() {} };
  const network = await Network.start();
  return { servers: network, release: () => network.stop() };
}
