import { CommandFailure } from '../failure.ts';
import type { Session } from './session.ts';

/** Returns the user id of a name: `ann`, `@ann` and `@ann:example.org` are the same on `example.org`. */
export function userIdOf(name: string, { serverName }: Session): string {
  if (name === '') throw new CommandFailure('the user name is empty');
  const withSign = name.startsWith('@') ? name : `@${name}`;
  return withSign.includes(':') ? withSign : `${withSign}:${serverName}`;
}

/** Returns the id of a room that is given by its id or by an alias. @throws CommandFailure for an unknown alias */
export async function roomIdOf(name: string, session: Session): Promise<string> {
  if (name.startsWith('!')) return name;
  if (!name.startsWith('#')) {
    throw new CommandFailure(`${name} is neither a room id (!…) nor an alias (#…); quote it for the shell`);
  }
  const alias = name.includes(':') ? name : `${name}:${session.serverName}`;
  const found = await session.find(`/_matrix/client/v3/directory/room/${encodeURIComponent(alias)}`);
  if (found === undefined) throw new CommandFailure(`there is no room with the alias ${alias}`);
  return String(found['room_id']);
}

/** Returns the parts of a URI `mxc://server/id`. @throws CommandFailure for anything else */
export function mediaOf(uri: string): { readonly server: string; readonly id: string } {
  const found = /^mxc:\/\/([^/]+)\/([^/]+)$/.exec(uri);
  if (!found) throw new CommandFailure(`${uri} is not the address of media; expected mxc://server/id`);
  return { server: found[1]!, id: found[2]! };
}
