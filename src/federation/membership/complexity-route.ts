import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import { historyVisibilityOf, notFound } from '../../protocol/index.ts';
import type { RoomHead, RoomReader } from '../../room-engine/index.ts';
import { complexityOf } from '../../room-federation/index.ts';
import type { HandshakeDeps } from './handshake-deps.ts';

/**
 * Serves the complexity of a room, which is a measure of the size of its current state. Servers that limit the
 * complexity of rooms request it before they join. A server outside the room receives it only if the room is public or
 * world-readable.
 */
export function complexityRoute({ access, engine }: Pick<HandshakeDeps, 'access' | 'engine'>): Route {
  return route(
    {
      method: 'GET',
      path: '/_proto/federation/unstable/rooms/:roomId/complexity',
      auth: 'server',
      response: Type.Object({ v1: Type.Number() }),
    },
    async ({ params, origin }) => {
      const head = await access.check(origin, params.roomId);
      if (!head.servers.has(origin) && !(await isOpen(engine, head))) throw notFound('Unknown room');
      return { v1: complexityOf(head) };
    },
  );
}

async function isOpen(engine: RoomReader, head: RoomHead): Promise<boolean> {
  const content = async (type: string) => {
    const entry = head.entry(type, '');
    return entry && (await engine.events.get(entry.nid))?.event.content;
  };
  if ((await content('m.room.join_rules'))?.['join_rule'] === 'public') return true;
  return historyVisibilityOf(await content('m.room.history_visibility')) === 'world_readable';
}
