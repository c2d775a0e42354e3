import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import {
  AccountsServer,
  type AccountsServerOptions,
  type LoggedInUser,
  passwordLogin,
} from '../../../test/support/servers/accounts-server.ts';
import { type JsonObject, MatrixError } from '../../protocol/index.ts';
import type { AccountTables } from '../tables.ts';
import { AuthSessions } from './auth-sessions.ts';
import { Challenge } from './challenge.ts';

forSelectedDatabases(import.meta.url, (open) => {
  let server: AccountsServer;
  afterEach(() => server.stop());
  const start = async (setup: AccountsServerOptions = {}) => {
    server = await AccountsServer.start(open, setup);
  };
  const countStoredSessions = async () => {
    const { count } = await server.database
      .reader<AccountTables>()
      .selectFrom('interactive_sessions')
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .executeTakeFirstOrThrow();
    return Number(count);
  };

  /** Inserts sessions of many addresses into the database, because beginning them by requests would take long. */
  const insertSessions = (count: number) => {
    const firstCreatedAt = server.clock.now() + 1;
    server.clock.advance(count);
    return server.database.transaction<AccountTables, void>(async (writer) => {
      for (let first = 0; first < count; first += 1_000) {
        const values = Array.from({ length: Math.min(1_000, count - first) }, (_, index) => ({
          id_hash: `${first + index}`,
          user_id: null,
          created_at: firstCreatedAt + first + index,
          operation: '',
          body_digest: '',
          sealed_body: new Uint8Array(),
          completed: '{}',
        }));
        await writer.insertInto('interactive_sessions').values(values).execute();
      }
    });
  };

  describe('stored sessions of interactive authentication', () => {
    it('stores about 10,000 sessions at most when more addresses begin registrations and complete none, and releases the registration tokens that deleted sessions have reserved', async () => {
      await start({
        options: { registration_requires_token: true, enable_registration_without_verification: false },
      });
      const { registration, registrationTokens } = server.slice;
      await registrationTokens.create({ token: 'welcome', uses_allowed: 50 });
      const begin = async (index: number) => {
        const ip = `10.0.${index >> 8}.${index & 255}`;
        const auth = index < 50 ? { auth: { type: 'm.login.registration_token', token: 'welcome' } } : {};
        const body = { username: `user${index}`, password: 'password', ...auth };
        await assert.rejects(registration.register(body, { ip }), Challenge);
      };
      await Promise.all(Array.from({ length: 50 }, (_, index) => begin(index)));
      assert.equal((await registrationTokens.find('welcome'))?.pending, 50);
      await insertSessions(9_900);
      for (let index = 50; index < 650; index += 50) {
        server.clock.advance(10);
        await Promise.all(Array.from({ length: 50 }, (_, offset) => begin(index + offset)));
      }
      const stored = await countStoredSessions();
      assert.ok(stored >= 10_000 && stored <= 10_200, `${stored} sessions`);
      assert.equal((await registrationTokens.find('welcome'))?.pending, 0);
      server.clock.advance(25 * 3_600_000);
      await begin(20_000);
      assert.equal(await countStoredSessions(), 1);
    });

    it('rejects with 403 M_FORBIDDEN a session that another user continues, or that is used for another operation or with other parameters', async () => {
      await start();
      const alice = await server.register('alice');
      const bob = await server.register('bob');
      const second = await server.login('alice');
      const remove = (user: LoggedInUser, device: string, body: object) =>
        server.call('DELETE', `/devices/${device}`, { token: user.token, body });
      const begun = await remove(alice, second.deviceId, {});
      const { session } = begun.body;
      const proof = { ...passwordLogin('alice'), session };
      const assertForbidden = async (answer: Promise<{ status: number; body: Record<string, unknown> }>) => {
        const { status, body } = await answer;
        assert.deepEqual([status, body['errcode']], [403, 'M_FORBIDDEN']);
      };
      const call = (method: string, path: string, user: LoggedInUser, body: object) =>
        server.call(method, path, { token: user.token, body });
      await assertForbidden(remove(bob, second.deviceId, { auth: proof }));
      await assertForbidden(remove(alice, alice.deviceId, { auth: proof }));
      await assertForbidden(call('POST', '/account/deactivate', alice, { auth: proof }));
      await assertForbidden(call('POST', '/account/password', alice, { new_password: 'mine', auth: proof }));
      await assertForbidden(
        call('POST', '/delete_devices', alice, { devices: [second.deviceId], auth: proof }),
      );
      await assertForbidden(
        server.call('POST', '/register', { body: { auth: { type: 'm.login.dummy', session } } }),
      );

      const registration = await server.call('POST', '/register', {
        body: { username: 'carol', password: 'password' },
      });
      const authOfRegistration = { ...passwordLogin('alice'), session: registration.body['session'] };
      await assertForbidden(call('POST', '/account/deactivate', alice, { auth: authOfRegistration }));

      const change = await call('POST', '/account/password', alice, { new_password: 'mine' });
      const wrongAuth = { ...passwordLogin('alice', 'wrong'), session: change.body['session'] };
      assert.equal(
        (await call('POST', '/account/password', alice, { new_password: 'mine', auth: wrongAuth })).status,
        401,
      );
      assert.equal((await remove(alice, second.deviceId, { auth: proof })).status, 200);
      assert.equal((await server.login('alice')).userId, alice.userId);
    });

    it('stores at most 100 sessions of IPv6 addresses with the same first 64 bits', async () => {
      await start();
      for (let index = 0; index < 101; index++) {
        server.clock.advance(60_000);
        const body = { username: `user${index}`, password: 'password' };
        const begun = server.slice.registration.register(body, { ip: `2001:db8:0:1:${index}::1` });
        await assert.rejects(begun, Challenge);
      }
      assert.equal(await countStoredSessions(), 100);
    });

    it('keeps a session when the result of its operation cannot be stored, and carries out the operation again when the request is repeated', async (test) => {
      await start();
      let count = 0;
      const run = (auth?: object) =>
        server.slice.interactiveAuth.run(
          {
            operation: 'POST /test',
            body: { ...(auth && { auth }) } as JsonObject,
            requester: undefined,
            ip: '::1',
            flows: [['m.login.dummy']],
          },
          async () => ++count,
        );
      const begun: unknown = await run().catch((error: unknown) => error);
      assert.ok(begun instanceof Challenge);
      const session = begun.toJSON()['session'];
      const answer = test.mock.method(AuthSessions.prototype, 'answer', async () => {
        throw new Error('disk full');
      });
      await assert.rejects(run({ type: 'm.login.dummy', session }), /disk full/);
      answer.mock.restore();
      assert.equal(await run({ session }), 2);
      assert.equal(await run({ session }), 2, 'the stored result');
    });

    it('rejects interactive authentication sessions of an account while it is locked, and after it is deactivated', async () => {
      await start();
      const alice = await server.register('alice');
      const second = await server.login('alice');
      const { token } = alice;
      const path = `/devices/${second.deviceId}`;
      const { session } = (await server.call('DELETE', path, { token, body: {} })).body as {
        session: string;
      };
      await server.slice.accounts.setLocked(alice.userId, true);
      const attempt = (password: string) =>
        server.slice.browserStages.attempt(session, 'm.login.password', { password }, '::1');
      await assert.rejects(attempt('password'), { errcode: 'M_USER_LOCKED' });
      await server.slice.accounts.setLocked(alice.userId, false);
      await server.slice.accounts.deactivate(alice.userId, { erase: true, byAdmin: false });
      await assert.rejects(attempt('password'), (error) => {
        assert.ok(error instanceof MatrixError);
        assert.equal(error.errcode, 'M_FORBIDDEN');
        return true;
      });
    });

    it('does not reveal in registration sessions whether a user name is taken when inhibit_user_in_use_error is true', async () => {
      await start({
        options: {
          inhibit_user_in_use_error: true,
          registration_requires_token: true,
          enable_registration_without_verification: false,
        },
      });
      await server.slice.registration.create({ userId: '@alice:test' as never, password: 'password' });
      const answers = await Promise.all(
        ['alice', 'free'].map(async (username) => {
          const challenge = await server.call('POST', '/register', {
            body: { username, password: 'password' },
          });
          const auth = {
            type: 'm.login.registration_token',
            token: 'guess',
            session: challenge.body['session'],
          };
          const guessed = await server.call('POST', '/register', { body: { auth } });
          const available = await server.call('GET', `/register/available?username=${username}`);
          return [challenge, guessed, available].map(({ status, body }) => ({
            status,
            ...body,
            session: undefined,
          }));
        }),
      );
      assert.deepEqual(answers[0], answers[1]);
    });
  });
});
