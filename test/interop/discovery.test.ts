import assert from 'node:assert/strict';
import { Meeting } from './meeting.ts';
import { enc, type Json } from './someone.ts';

Meeting.of('discovery', ({ bothWays }) => {
  bothWays(
    'public rooms are listed for the other server',
    async ({ host, guest }) => {
      const name = `Listed ${host.id}`;
      await host.room({ visibility: 'public', name });
      const list = `/publicRooms?server=${enc(host.server.name)}`;
      const { chunk } = (await guest.do('GET', list)) as { chunk: Json[] };
      assert.ok(chunk.some((room) => room['name'] === name));
      const filtered = await guest.do('POST', list, { filter: { generic_search_term: name } });
      assert.deepEqual(
        (filtered['chunk'] as Json[]).map((room) => room['name']),
        [name],
      );
    },
    { endsApart: true },
  );

  bothWays('spaces are walked across servers', async ({ host, guest }) => {
    const space = await host.room({ creation_content: { type: 'm.space' }, name: 'space' });
    const child = await host.room({ name: 'child' });
    await host.set(space, 'm.space.child', { via: [host.server.name] }, child);
    await guest.join(space, host.server);
    const { rooms } = (await guest.do('GET', `/_matrix/client/v1/rooms/${enc(space)}/hierarchy`)) as {
      rooms: Json[];
    };
    assert.deepEqual(
      rooms.map(({ name }) => name),
      ['space', 'child'],
    );
  });
});
