import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import type { AccountTables } from '../tables.ts';
import { dummy, RegistrationServer } from './test/registration-server.ts';

forSelectedDatabases(import.meta.url, (open) => {
  const server = new RegistrationServer(open);

  describe('limits of registration', () => {
    it('GET /register/available responds 429 M_LIMIT_EXCEEDED to a client address that tries many names', async () => {
      await server.start();
      const check = (name: string) => server.accounts.call('GET', `/register/available?username=${name}`);
      const answers = [];
      for (let index = 0; index < 12; index++) answers.push((await check(`name${index}`)).status);
      assert.deepEqual(answers, [...Array(10).fill(200), 429, 429]);
      server.accounts.clock.advance(1_000);
      assert.equal((await check('later')).status, 200);
    });

    it('GET /register/available lets a client address check three names for each registration in the burst of rc_registration', async () => {
      await server.start({ burst: 20 });
      const check = (name: string) => server.accounts.call('GET', `/register/available?username=${name}`);
      for (let index = 0; index < 60; index++) assert.equal((await check(`name${index}`)).status, 200);
      assert.equal((await check('last')).status, 429);
    });

    it('POST /register responds 429 M_LIMIT_EXCEEDED to a client address that tries many taken user names', async () => {
      await server.start();
      await server.accounts.register('alice');
      for (let index = 0; index < 10; index++)
        await server.refuses(400, 'M_USER_IN_USE', { username: 'alice' });
      await server.refuses(429, 'M_LIMIT_EXCEEDED', { username: 'alice' });
      await server.refuses(429, 'M_LIMIT_EXCEEDED', { username: 'free' });
    });

    it('POST /register responds 429 M_LIMIT_EXCEEDED to a client address that requests many challenges', async () => {
      await server.start();
      const statusOf = async (body: Record<string, unknown> = {}) => (await server.register(body)).status;
      for (let index = 0; index < 50; index++) assert.equal(await statusOf({ auth: null }), 401);
      await server.refuses(429, 'M_LIMIT_EXCEEDED', {});
      await server.refuses(429, 'M_LIMIT_EXCEEDED', { auth: { ...dummy, session: 'unknown' } });
      assert.equal(await statusOf({ username: 'alice', password: 'password', auth: dummy }), 200);
      server.accounts.clock.advance(2_000);
      assert.equal(await statusOf(), 401);
    });

    it('POST /register stores only known fields of a request, and rejects more than 4 kB of them with 413 M_TOO_LARGE', async () => {
      await server.start();
      const rows = () =>
        server.accounts.database.reader<AccountTables>().selectFrom('interactive_sessions').selectAll();
      const request = { username: 'alice', password: 'password', junk: 'x'.repeat(50_000) };
      const { body } = await server.register(request);
      const [row] = await rows().execute();
      assert.ok(row && row.sealed_body.length < 100);
      const created = await server.register({ ...request, auth: { ...dummy, session: body['session'] } });
      assert.equal(created.status, 200);
      await server.refuses(413, 'M_TOO_LARGE', { username: 'bob', refresh_token: 'x'.repeat(5_000) });
      const stored = await rows().execute();
      assert.deepEqual(
        stored.map(({ answered }) => answered),
        [1],
      );
      assert.ok(stored[0]!.sealed_body.length < 300);
    });

    it('POST /register stores no session for a request that completes a flow at once', async () => {
      await server.start();
      const { transactions } = server.accounts.database.statistics;
      await server.accounts.register('alice');
      assert.equal(server.accounts.database.statistics.transactions, transactions + 1);
    });

    it('POST /register stores at most 100 sessions of one client address', async () => {
      await server.start();
      const first = (await server.register({})).body['session'];
      for (let index = 0; index < 110; index++) {
        server.accounts.clock.advance(2_000);
        await server.register({});
      }
      const rows = await server.accounts.database
        .reader<AccountTables>()
        .selectFrom('interactive_sessions')
        .select('id_hash')
        .execute();
      assert.equal(rows.length, 100);
      const answer = await server.register({ auth: { ...dummy, session: first } });
      assert.equal(answer.body['error'], 'Unknown authentication session');
    });

    it('POST /register deletes the oldest sessions when more than 10,000 are stored for all client addresses together, and stores another session', async () => {
      await server.start();
      const row = {
        user_id: null,
        operation: 'POST /register',
        body_digest: '',
        sealed_body: new Uint8Array(),
        completed: '{}',
      };
      const createdAt = server.accounts.clock.now();
      await server.accounts.database.transaction<AccountTables, void>(async (writer) => {
        for (let start = 0; start < 10_050; start += 1_005) {
          const values = Array.from({ length: 1_005 }, (_, index) => ({
            ...row,
            id_hash: `${start + index}`,
            created_at: createdAt + start + index,
          }));
          await writer.insertInto('interactive_sessions').values(values).execute();
        }
      });
      server.accounts.clock.advance(20_000);
      await server.register({});
      const rows = await server.accounts.database
        .reader<AccountTables>()
        .selectFrom('interactive_sessions')
        .select('id_hash')
        .execute();
      assert.equal(rows.length, 10_001);
      assert.ok(
        !rows.some(({ id_hash }) => id_hash === '49') && rows.some(({ id_hash }) => id_hash === '50'),
      );
    });

    it('limits the rate of registrations from one client address with 429 M_LIMIT_EXCEEDED', async () => {
      await server.start({ burst: 2 });
      await server.accounts.register('alice');
      await server.accounts.register('bob');
      const answer = await server.register({ username: 'carol' });
      assert.deepEqual([answer.status, answer.body['errcode']], [429, 'M_LIMIT_EXCEEDED']);
    });

    it('refuses request bodies of more than 64 KiB, and malformed auth objects', async () => {
      await server.start();
      await server.refuses(413, 'M_TOO_LARGE', { username: 'alice', more: 'x'.repeat(70_000) });
      await server.refuses(400, 'M_BAD_JSON', { username: 'alice', auth: 'dummy' });
      await server.refuses(400, 'M_BAD_JSON', { username: 'alice', auth: { ...dummy, session: 5 } });
    });
  });
});
