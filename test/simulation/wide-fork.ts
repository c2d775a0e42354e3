import { loadSigningKey } from '../../src/composition/signing-key.ts';
import { buildEvent, type JsonObject, selectAuthEventKeys } from '../../src/protocol/index.ts';
import type { SimulatedServer } from './server.ts';
import { unlessEnded } from './server-process.ts';
import type { World } from './world.ts';

/** Makes one server append many events that all have the same prev_events, as a hostile server could. */
export async function makeWideFork(world: World, server: SimulatedServer, roomId: string): Promise<void> {
  const { run } = server;
  const head = await run?.rooms.engine.heads.get(roomId);
  const sender = server.users.find((userId) => head?.membership(userId) === 'join');
  if (!run || !head || !sender) return;
  const { engine } = run.rooms;
  const key = await loadSigningKey(run.kernel);
  const prev = head.extremities.map(({ eventId }) => eventId).slice(0, 10);
  const depth = Math.max(...head.extremities.map((extremity) => extremity.depth)) + 1;
  const state = new Map([...head.state].map(([name, { eventId }]) => [name, eventId]));
  world.trace.note(server.name, `${sender} makes ${world.plan.forkWidth} events after ${prev.join(' ')}`);
  for (let index = 0; index < world.plan.forkWidth; index++) {
    const isState = index % 20 === 0;
    const content: JsonObject = { body: `fork ${index}`, msgtype: 'm.text' };
    const subject = {
      type: isState ? 'sim.fork' : 'm.room.message',
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
    const placed = await unlessEnded(run, engine.placement.place(roomId, built));
    if (!placed) return;
  }
}
