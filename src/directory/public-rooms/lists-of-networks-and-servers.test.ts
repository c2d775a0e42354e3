import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { alice, RoomsUnderTest } from '../../../test/support/rooms/rooms.ts';
import { directoryMigrations } from '../migrations.ts';
import { startRoomStats } from '../test/started-room-stats.ts';
import { type ListRequest, PublicRooms } from './public-rooms.ts';
import { instanceId, Publication } from './publication.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('lists of public rooms of networks and servers', () => {
    const openLists = async () => {
      const fixture = await RoomsUnderTest.open(open, directoryMigrations);
      const { engine, database, rooms } = fixture;
      const stats = await startRoomStats(fixture);
      const remoteRequests: [string, ListRequest][] = [];
      const remote = {
        list: async (server: string, request: ListRequest) => {
          remoteRequests.push([server, request]);
          return { chunk: [] };
        },
      };
      const lists = new PublicRooms(
        { database, published: rooms.published, stats, serverName: 'test', remote },
        { enable_room_list_search: true },
      );
      const make = (name: string, more: object = {}) =>
        rooms.creation.create(alice, { name, preset: 'public_chat', ...more });
      const names = async (request: ListRequest, federatableOnly = false) => {
        const { chunk } = await lists.listOwn(request, federatableOnly);
        return (chunk as { name: string }[]).map(({ name }) => name);
      };
      return {
        stats,
        lists,
        remoteRequests,
        make,
        names,
        publication: new Publication(engine, rooms.published),
      };
    };

    it('lists rooms per network of an application service', async () => {
      const { stats, make, names, publication } = await openLists();
      await make('Own', { visibility: 'public' });
      const bridged = await make('Bridged');
      await publication.setForNetwork('irc-bridge', 'libera', bridged, true);
      const libera = { third_party_instance_id: instanceId('irc-bridge', 'libera') };
      assert.deepEqual(await names({}), ['Own']);
      assert.deepEqual(await names(libera), ['Bridged']);
      assert.deepEqual(await names({ third_party_instance_id: instanceId('irc-bridge', 'other') }), []);
      assert.deepEqual((await names({ include_all_networks: true })).sort(), ['Bridged', 'Own']);
      assert.equal(await publication.isPublished(bridged), false);
      await publication.setForNetwork('irc-bridge', 'libera', bridged, false);
      assert.deepEqual(await names(libera), []);
      await assert.rejects(publication.setForNetwork('irc-bridge', 'libera', '!unknown:test', true), {
        errcode: 'M_NOT_FOUND',
      });
      await stats.stop();
    });

    it('lists for remote servers only the rooms without "m.federate": false', async () => {
      const { stats, make, names } = await openLists();
      await make('Everywhere', { visibility: 'public' });
      await make('Here only', { visibility: 'public', creation_content: { 'm.federate': false } });
      assert.equal((await names({})).length, 2);
      assert.deepEqual(await names({}, true), ['Everywhere']);
      await stats.stop();
    });

    it('requests the list of a remote server', async () => {
      const { stats, lists, remoteRequests } = await openLists();
      const request = { limit: 5, filter: { generic_search_term: 'tea' } };
      assert.deepEqual(await lists.list('far.example', request), { chunk: [] });
      assert.deepEqual(remoteRequests, [['far.example', request]]);
      await stats.stop();
    });
  });
});
