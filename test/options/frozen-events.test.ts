import assert from 'node:assert/strict';
import { it } from 'node:test';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import { alice, RoomsUnderTest } from '../support/rooms/rooms.ts';
import { startTestServer } from '../support/servers/server.ts';

forSelectedDatabases(import.meta.url, (open) => {
  it('freezes cached events at every depth only when the option is on [option: use_frozen_dicts]', async () => {
    for (const use_frozen_dicts of [true, false]) {
      const { engine, ...fixture } = await RoomsUnderTest.open(open, [], { options: { use_frozen_dicts } });
      const roomId = await fixture.rooms.creation.create(alice, {});
      const content = { msgtype: 'm.text', body: 'x', nested: { list: [{}] } };
      const draft = { type: 'm.room.message', sender: alice, content };
      const written = await engine.timeline.append(roomId, draft);
      engine.events.forget(written);
      const read = await engine.events.get(written.nid);
      for (const { event } of [written, read!]) {
        const { list } = event.content['nested'] as { list: object[] };
        const parts = [event, event.content, event.pdu, list, list[0]];
        assert.deepEqual(parts.map(Object.isFrozen), Array(5).fill(use_frozen_dicts));
      }
      await engine.close();
    }
  });
});

it('a homeserver with use_frozen_dicts creates, sends, redacts, syncs and leaves without errors', async () => {
  const server = await startTestServer({ database: 'sqlite', config: { rooms: { use_frozen_dicts: true } } });
  const [alice, bob] = [await server.register('alice'), await server.register('bob')];
  const call = async (method: string, path: string, { token }: { token: string }, body?: object) => {
    const answer = await server.api(method, `/_matrix/client/v3${path}`, { token, ...(body && { body }) });
    assert.equal(answer.status, 200, answer.raw);
    return answer.body;
  };
  const created = await call('POST', '/createRoom', alice, { invite: [bob.userId], name: 'A', topic: 'B' });
  const room = `/rooms/${encodeURIComponent(String(created['room_id']))}`;
  await call('POST', `${room}/join`, bob);
  const body = { msgtype: 'm.text', body: 'x' };
  const { event_id } = await call('PUT', `${room}/send/m.room.message/1`, bob, body);
  await call('PUT', `${room}/redact/${encodeURIComponent(String(event_id))}/2`, bob, { reason: 'none' });
  await call('PUT', `${room}/state/m.room.name/`, alice, { name: 'C' });
  for (const user of [alice, bob]) {
    await call('GET', '/sync', user);
    await call('GET', `${room}/messages?dir=b`, user);
    await call('GET', `${room}/state`, user);
  }
  await call('POST', `${room}/leave`, bob);
  await server.stop();
});
