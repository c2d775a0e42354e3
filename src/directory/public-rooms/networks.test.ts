import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { alice, RoomsUnderTest } from '../../../test/support/rooms/rooms.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import { directoryMigrations } from '../migrations.ts';
import { RoomStats } from '../room-stats/room-stats.ts';
import { type ListRequest, PublicRooms } from './public-rooms.ts';
import { instanceId, Publication } from './publication.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('PublicRooms', () => {
    const opened = async () => {
      const fixture = await RoomsUnderTest.open(open, directoryMigrations);
      const { engine, database, streams, clock, rooms } = fixture;
      const stats = new RoomStats({
        engine,
        database,
        streams,
        clock,
        log: silentLogger,
        serverName: 'test',
      });
      await stats.start();
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
        fixture,
        stats,
        lists,
        remoteRequests: remoteRequests,
        make,
        names,
        publication: new Publication(engine, rooms.published),
      };
    };

    it('lists rooms per network of an application service', async () => {
      const { stats, make, names, publication } = await opened();
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

    it('lists only federated rooms for remote servers', async () => {
      const { stats, make, names } = await opened();
      await make('Everywhere', { visibility: 'public' });
      await make('Here only', { visibility: 'public', creation_content: { 'm.federate': false } });
      assert.equal((await names({})).length, 2);
      assert.deepEqual(await names({}, true), ['Everywhere']);
      await stats.stop();
    });

    it('requests the list of a remote server', async () => {
      const { stats, lists, remoteRequests } = await opened();
      const request = { limit: 5, filter: { generic_search_term: 'tea' } };
      assert.deepEqual(await lists.list('far.example', request), { chunk: [] });
      assert.deepEqual(remoteRequests, [['far.example', request]]);
      await stats.stop();
    });

    it('lists after a restart the rooms whose rows were not written before it', async () => {
      const { fixture, stats, make } = await opened();
      await stats.stop();
      const roomId = await make('Late', { visibility: 'public' });
      const again = await fixture.restart(open);
      const { engine, database, streams, clock, rooms } = again;
      const deps = { engine, database, streams, clock, log: silentLogger, serverName: 'test' };
      const restarted = new RoomStats(deps);
      await restarted.start();
      const options = { enable_room_list_search: true };
      const parts = { database, published: rooms.published, stats: restarted, serverName: 'test' };
      const { chunk } = await new PublicRooms(parts, options).listOwn({});
      assert.deepEqual(
        (chunk as { room_id: string }[]).map(({ room_id }) => room_id),
        [roomId],
      );
      await restarted.stop();
    });

    it('writes the row of a room once for many changes at the same time', async () => {
      const { fixture, stats, make } = await opened();
      const roomId = await make('Busy', { visibility: 'public' });
      await stats.caughtUp();
      const before = fixture.database.statistics.transactions;
      await Promise.all(
        Array.from({ length: 200 }, (_, index) => fixture.join(`@user${index}:test`, roomId)),
      );
      await stats.caughtUp();
      const { transactions } = fixture.database.statistics;
      assert.ok(transactions - before < 50, `${transactions - before} transactions for 200 joins`);
      await stats.stop();
    });
  });
});
