import { loadSigningKey } from '../../src/composition/signing-key.ts';
import { buildEvent, type JsonObject, selectAuthEventKeys } from '../../src/protocol/index.ts';
import type { SimulatedServer } from './server.ts';
import { unlessCrashed } from './server-process.ts';
import type { World } from './world.ts';

/** Has a server put many events into a room that all follow the same one, as no server does that means well. */
export async function makeFan(world: World, server: SimulatedServer, roomId: string): Promise<void> {
  const { run } = server;
  const head = await run?.rooms.engine.heads.get(roomId);
  const sender = server.users.find((userId) => head?.membership(userId) === 'join');
  if (!run || !head || !sender) return;
  const { engine } = run.rooms;
  const key = await loadSigningKey(run.kernel);
  const prev = head.extremities.map(({ eventId }) => eventId).slice(0, 10);
  const depth = Math.max(...head.extremities.map((one) => one.depth)) + 1;
  const state = new Map([...head.state].map(([name, { eventId }]) => [name, eventId]));
  world.trace.note(server.name, `${sender} makes ${world.plan.fan} events after ${prev.join(' ')}`);
  for (let index = 0; index < world.plan.fan; index++) {
    const isState = index % 20 === 0;
    const content: JsonObject = { body: `fan ${index}`, msgtype: 'm.text' };
    const subject = {
      type: isState ? 'sim.fan' : 'm.room.message',
      sender,
      content,
      stateKey: isState ? String(index % 3) : undefined,
    };
    const built = buildEvent(
      {
        ...subject,
        roomId,
        depth,
        originServerTs: run.kernel.clock.now(),
        prevEventIds: prev,
        authEventIds: selectAuthEventKeys(subject, head.version)
          .map((name) => state.get(name))
          .filter((id) => id !== undefined),
      },
      head.version,
      { serverName: server.name, key },
    );
    const placed = await unlessCrashed(run, engine.placement.append(roomId, built));
    if (!placed) return;
  }
}
