import assert from 'node:assert/strict';
import { InteropSuite } from './interop-suite.ts';
import { enc, type Json } from './interop-user.ts';

InteropSuite.onSharedServers('discovery', ({ bothWays }) => {
  bothWays(
    'lists public rooms for the other server',
    async ({ host, guest }) => {
      const name = `Listed ${host.id}`;
      await host.createRoom({ visibility: 'public', name });
      const list = `/publicRooms?server=${enc(host.server.name)}`;
      const { chunk } = (await guest.do('GET', list)) as { chunk: Json[] };
      assert.ok(chunk.some((room) => room['name'] === name));
      const filtered = await guest.do('POST', list, { filter: { generic_search_term: name } });
      assert.deepEqual(
        (filtered['chunk'] as Json[]).map((room) => room['name']),
        [name],
      );
    },
    { endsWithoutSharedRoom: true },
  );

  bothWays('returns a space hierarchy with rooms of the other server', async ({ host, guest }) => {
    const space = await host.createRoom({ creation_content: { type: 'm.space' }, name: 'space' });
    const child = await host.createRoom({ name: 'child' });
    await host.setState(space, 'm.space.child', { via: [host.server.name] }, child);
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
