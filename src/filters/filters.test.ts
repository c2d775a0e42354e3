import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../test/support/databases/databases.ts';
import { AccountsServer } from '../../test/support/servers/accounts-server.ts';
import { OwnedRows } from '../kernel/slices/index.ts';
import { Filters } from './filters.ts';
import { filtersManifest } from './manifest.ts';
import { filterMigrations } from './migrations.ts';
import { filterRoutes } from './routes.ts';

forSelectedDatabases(import.meta.url, (open) => {
  let server: AccountsServer;
  let filters: Filters;
  let token: string;
  afterEach(() => server.stop());
  const start = async () => {
    server = await AccountsServer.start(open, {
      migrations: filterMigrations,
      extensions: (environment) => {
        filters = new Filters(environment);
        return { lifecycleHooks: [new OwnedRows([filtersManifest])] };
      },
      routes: () => filterRoutes(filters),
    });
    token = (await server.register('alice')).token;
  };
  const define = (body: unknown, user = '@alice:test') =>
    server.call('POST', `/user/${user}/filter`, { token, body });
  const get = (id: unknown, user = '@alice:test') =>
    server.call('GET', `/user/${user}/filter/${id}`, { token });
  const codeOf = ({ status, body }: { status: number; body: Record<string, unknown> }) => [
    status,
    body['errcode'],
  ];

  describe('stored filters', () => {
    it('returns a filter as it was sent, and the same id for the same content', async () => {
      await start();
      const filter = { room: { timeline: { limit: 10, types: ['m.*'] } }, 'org.example.unknown': { x: 1.5 } };
      const { body } = await define(filter);
      assert.match(body['filter_id'] as string, /^[\w-]+$/);
      assert.deepEqual((await get(body['filter_id'])).body, filter);
      const { room, ...rest } = filter;
      assert.deepEqual((await define({ ...rest, room })).body, body);
      assert.notDeepEqual((await define({})).body, body);
    });

    it('lets users create and read only their own filters, and rejects unknown ids and malformed filters', async () => {
      await start();
      assert.deepEqual(codeOf(await define({}, '@bob:test')), [403, 'M_FORBIDDEN']);
      assert.deepEqual(codeOf(await get('x', '@bob:test')), [403, 'M_FORBIDDEN']);
      assert.deepEqual(codeOf(await get('unknown')), [404, 'M_NOT_FOUND']);
      assert.deepEqual(codeOf(await get('a%00b')), [404, 'M_NOT_FOUND']);
      assert.deepEqual(codeOf(await define({ room: 5 })), [400, 'M_BAD_JSON']);
      const id = (await define({})).body['filter_id'] as string;
      await assert.rejects(filters.resolve('@bob:test', id), { errcode: 'M_INVALID_PARAM' });
    });

    it('resolves the query parameter filter, which is inline JSON or the id of a stored filter, reads a stored filter from the database only once, and rejects other texts', async () => {
      await start();
      const id = (await define({ room: { timeline: { limit: 3 } } })).body['filter_id'] as string;
      assert.equal((await filters.resolve('@alice:test', id)).room.timeline.limit, 3);
      const reads = server.database.statistics.reads;
      assert.equal((await filters.resolve('@alice:test', id)).room.timeline.limit, 3);
      assert.equal(server.database.statistics.reads, reads);
      const inline = await filters.resolve('@alice:test', '{"room":{"timeline":{"limit":4}}}');
      assert.equal(inline.room.timeline.limit, 4);
      assert.equal((await filters.resolve('@alice:test', undefined)).room.timeline.limit, undefined);
      await assert.rejects(filters.resolve('@alice:test', '{"room"'), { errcode: 'M_NOT_JSON' });
      await assert.rejects(filters.resolve('@alice:test', '{"room":1}'), { errcode: 'M_BAD_JSON' });
      await assert.rejects(filters.resolve('@alice:test', 'unknown'), { errcode: 'M_INVALID_PARAM' });
      const deep = `{"a":${'['.repeat(50)}${']'.repeat(50)}}`;
      await assert.rejects(filters.resolve('@alice:test', deep), { errcode: 'M_BAD_JSON' });
    });

    it('compiles and caches an inline filter once for all users, unless it is long', async () => {
      await start();
      const short = '{"room":{"timeline":{"limit":4}}}';
      assert.equal(filters.peek('@alice:test', short), undefined);
      const compiled = await filters.resolve('@alice:test', short);
      assert.equal(await filters.resolve('@bob:test', short), compiled);
      assert.equal(filters.peek('@carol:test', short), compiled);
      assert.notEqual(await filters.resolve('@alice:test', short.replace('4', '5')), compiled);
      const long = JSON.stringify({ room: { timeline: { limit: 4, not_senders: ['@x:test'.repeat(500)] } } });
      assert.equal((await filters.resolve('@alice:test', long)).room.timeline.limit, 4);
      assert.equal(filters.peek('@alice:test', long), undefined);
    });

    it('caches long stored filters by their size: only the filters used last stay in memory', async () => {
      await start();
      const ids: string[] = [];
      for (let index = 0; index < 6; index++) {
        const senders = Array.from(
          { length: 1_000 },
          (_, user) => `@${index}_${user}_${'x'.repeat(180)}:test`,
        );
        ids.push(String((await define({ room: { timeline: { senders } } })).body['filter_id']));
        await filters.resolve('@alice:test', ids.at(-1));
      }
      const isCached = ids.map((id) => filters.peek('@alice:test', id) !== undefined);
      assert.deepEqual(isCached, [false, false, false, false, true, true]);
    });

    it('never returns the stored filter of another user, whatever the query parameter is', async () => {
      await start();
      const id = (await define({ room: { timeline: { limit: 3 } } })).body['filter_id'] as string;
      await filters.resolve('@alice:test', id);
      for (const parameter of [`@alice:test ${id}`, id, ` ${id}`, '{"room":{}} x']) {
        assert.equal(filters.peek('@bob:test', parameter), undefined);
        await assert.rejects(filters.resolve('@bob:test', parameter));
      }
    });

    it('deletes the oldest filters of a user beyond the maximum, and all filters when the account is deactivated', async () => {
      await start();
      const first = await filters.define('@alice:test', { event_fields: ['first'] });
      server.clock.advance(1);
      for (let i = 0; i < 500; i++) await filters.define('@alice:test', { event_fields: [`${i}`] });
      await assert.rejects(filters.get('@alice:test', first), { errcode: 'M_NOT_FOUND' });
      const last = await filters.define('@alice:test', { event_fields: ['499'] });
      await server.slice.accounts.deactivate('@alice:test', { erase: false, byAdmin: false });
      await assert.rejects(filters.get('@alice:test', last), { errcode: 'M_NOT_FOUND' });
    });
  });
});
