import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import fc from 'fast-check';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import type { LoggedInUser } from '../../../test/support/servers/accounts-server.ts';
import { codeOf, E2eeServer } from '../../../test/support/servers/e2ee-server.ts';
import { type JsonObject, MatrixError } from '../../protocol/index.ts';
import { keyText, parseRooms, parseSession } from './room-keys.ts';

const algorithm = 'm.megolm_backup.v1.curve25519-aes-sha2';
const auth_data = { public_key: 'abc', signatures: {} };
const key = (first_message_index = 0, forwarded_count = 0, is_verified = false, text = 'x') => ({
  first_message_index,
  forwarded_count,
  is_verified,
  session_data: { ephemeral: 'a', ciphertext: text, mac: 'c' },
});

forSelectedDatabases(import.meta.url, (open) => {
  let server: E2eeServer;
  let alice: LoggedInUser;
  afterEach(() => server.stop());

  const call = (method: string, path: string, body?: unknown, as = alice) =>
    server.call(as, method, `/room_keys${path}`, body);
  async function start(backups = 1): Promise<void> {
    server = await E2eeServer.start(open);
    alice = await server.server.register('alice');
    for (let n = 0; n < backups; n++) await call('POST', '/version', { algorithm, auth_data });
  }
  const put = async (rooms: Record<string, object>, version = 1) =>
    (await call('PUT', `/keys?version=${version}`, { rooms })).body;
  const keysAt = async (path = '/!a:test/s1') => (await call('GET', `/keys${path}?version=1`)).body;

  describe('key backups', () => {
    it('creates, returns, updates and deletes a backup', async () => {
      await start(0);
      assert.deepEqual(codeOf(await call('GET', '/version')), [404, 'M_NOT_FOUND']);
      assert.deepEqual((await call('POST', '/version', { algorithm, auth_data })).body, { version: '1' });
      assert.deepEqual((await call('POST', '/version', { algorithm, auth_data })).body, { version: '2' });
      const second = { algorithm, auth_data, count: 0, etag: '0', version: '2' };
      assert.deepEqual((await call('GET', '/version')).body, second);
      assert.deepEqual((await call('GET', '/version/1')).body, { ...second, version: '1' });
      const changed = { public_key: 'def' };
      await call('PUT', '/version/1', { algorithm, auth_data: changed, version: '1' });
      assert.deepEqual((await call('GET', '/version/1')).body['auth_data'], changed);
      assert.deepEqual((await call('DELETE', '/version/2')).body, {});
      assert.deepEqual((await call('DELETE', '/version/2')).body, {});
      assert.equal((await call('GET', '/version')).body['version'], '1');
      assert.deepEqual((await call('POST', '/version', { algorithm, auth_data })).body, { version: '3' });
    });

    it('rejects an unknown version with 404, a changed algorithm or version with 400, and large auth_data with 413', async () => {
      await start();
      for (const version of ['2', '0', 'x', '1e0', '01', '99999999999999999']) {
        for (const [method, body] of [['GET'], ['DELETE'], ['PUT', { algorithm, auth_data }]] as const) {
          assert.deepEqual(codeOf(await call(method, `/version/${version}`, body)), [404, 'M_NOT_FOUND']);
        }
      }
      for (const body of [
        { algorithm: 'other', auth_data },
        { algorithm, auth_data, version: '2' },
      ]) {
        assert.deepEqual(codeOf(await call('PUT', '/version/1', body)), [400, 'M_INVALID_PARAM']);
      }
      const large = { algorithm, auth_data: { x: 'x'.repeat(70_000) } };
      assert.deepEqual(codeOf(await call('POST', '/version', large)), [413, 'M_TOO_LARGE']);
    });

    it('assigns different versions to backups that are created in parallel, and allows at most 100 backups', async () => {
      await start(0);
      const create = () => call('POST', '/version', { algorithm, auth_data });
      const created = await Promise.all(Array.from({ length: 10 }, create));
      assert.equal(new Set(created.map(({ body }) => body['version'])).size, 10);
      for (let n = 10; n < 100; n++)
        await server.e2ee.backups.create(alice.userId, { algorithm, authData: {} });
      assert.deepEqual(codeOf(await create()), [413, 'M_TOO_LARGE']);
    });

    it('returns a backup to its owner only, and deletes it when the account is deactivated', async () => {
      await start();
      await put({ '!a:test': { sessions: { s1: key() } } });
      const bob = await server.server.register('bob');
      assert.deepEqual(codeOf(await call('GET', '/keys?version=1', undefined, bob)), [404, 'M_NOT_FOUND']);
      await server.server.slice.accounts.deactivate(alice.userId, { erase: false, byAdmin: false });
      for (const table of ['room_keys', 'room_key_backups', 'room_key_versions']) {
        assert.equal(await server.rows(table), 0);
      }
    });
  });

  describe('keys in a backup', () => {
    it('returns stored keys for all rooms, for one room and for one session', async () => {
      await start();
      const a = { sessions: { s1: key(1), 's/2+"': key(2) } };
      const b = { sessions: { s1: key(3) } };
      assert.deepEqual(await put({ '!a:test': a, '!b:test': b }), { etag: '1', count: 3 });
      assert.deepEqual((await call('GET', '/keys?version=1')).body, {
        rooms: { '!a:test': a, '!b:test': b },
      });
      assert.deepEqual(await keysAt('/!a:test'), a);
      assert.deepEqual(await keysAt('/!a:test/s%2F2%2B%22'), key(2));
      assert.deepEqual(await keysAt('/!c:test'), { sessions: {} });
      assert.deepEqual(codeOf(await call('GET', '/keys/!a:test/s3?version=1')), [404, 'M_NOT_FOUND']);
      const sessionAnswer = await call('PUT', '/keys/!c:test/s1?version=1', key());
      assert.deepEqual(sessionAnswer.body, { etag: '2', count: 4 });
      const roomAnswer = await call('PUT', '/keys/!c:test?version=1', { sessions: { s2: key() } });
      assert.deepEqual(roomAnswer.body, { etag: '3', count: 5 });
      assert.equal((await call('GET', '/version/1')).body['count'], 5);
    });

    it('returns all keys of a backup with more keys than one database page', async () => {
      await start();
      const sessions = (count: number, first = 0) => ({
        sessions: Object.fromEntries(Array.from({ length: count }, (_, n) => [`s${first + n}`, key(n)])),
      });
      const rooms = { '!a:test': sessions(1500), '!b:test': sessions(700), '!c:test': sessions(1) };
      for (const [roomId, room] of Object.entries(rooms)) await put({ [roomId]: room });
      assert.deepEqual((await call('GET', '/keys?version=1')).body, { rooms });
      assert.deepEqual(await keysAt('/!a:test'), rooms['!a:test']);
      const { body } = await call('POST', '/version', { algorithm, auth_data });
      const empty = await call('GET', `/keys?version=${body['version']}`);
      assert.deepEqual(empty.body, { rooms: {} });
    });

    it('replaces a stored key only by a better one: verified instead of unverified, then with a lower first_message_index, then with a lower forwarded_count', async () => {
      await start();
      const steps: [next: ReturnType<typeof key>, isReplaced: boolean][] = [
        [key(5, 5, false), true],
        [key(5, 5, false, 'same'), false],
        [key(5, 6, false), false],
        [key(5, 4, false), true],
        [key(6, 0, false), false],
        [key(4, 9, false), true],
        [key(9, 9, true), true],
        [key(0, 0, false), false],
        [key(9, 8, true), true],
        [key(8, 8, true), true],
      ];
      let etag = 0;
      let stored = key();
      for (const [next, isReplaced] of steps) {
        if (isReplaced) {
          etag = etag + 1;
          stored = next;
        }
        const state = await put({ '!a:test': { sessions: { s1: next } } });
        assert.deepEqual(state, { etag: String(etag), count: 1 });
        assert.deepEqual(await keysAt(), stored);
      }
    });

    it('counts keys correctly when requests store them in parallel', async () => {
      await start();
      const states = await Promise.all(
        Array.from({ length: 10 }, (_, n) =>
          put({ '!a:test': { sessions: { [`s${n}`]: key(), [`s${n + 1}`]: key() } } }),
        ),
      );
      assert.equal(Math.max(...states.map(({ count }) => count as number)), 11);
      assert.equal((await call('GET', '/version')).body['count'], 11);
      assert.equal(await server.rows('room_keys'), 11);
    });

    it('stores keys only in the current backup version', async () => {
      await start(2);
      const rooms = { '!a:test': { sessions: { s1: key() } } };
      for (const version of ['1', '3', 'x']) {
        const answer = await call('PUT', `/keys?version=${version}`, { rooms });
        assert.deepEqual(codeOf(answer), [403, 'M_WRONG_ROOM_KEYS_VERSION']);
        assert.equal(answer.body['current_version'], '2');
      }
      for (const version of ['1', '2']) await call('DELETE', `/version/${version}`);
      assert.deepEqual(codeOf(await call('PUT', '/keys?version=2', { rooms })), [404, 'M_NOT_FOUND']);
      for (const path of ['/keys', '/keys/!a:test', '/keys/!a:test/s1']) {
        for (const method of ['GET', 'DELETE']) {
          assert.deepEqual(codeOf(await call(method, `${path}?version=2`)), [404, 'M_NOT_FOUND']);
          assert.deepEqual(codeOf(await call(method, path)), [400, 'M_MISSING_PARAM']);
        }
      }
    });

    it('deletes keys of one session, one room and the whole backup', async () => {
      await start();
      const sessions = { s1: key(), s2: key() };
      await put({ '!a:test': { sessions }, '!b:test': { sessions } });
      const remove = async (path: string) => (await call('DELETE', `/keys${path}?version=1`)).body;
      assert.deepEqual(await remove('/!a:test/s1'), { etag: '2', count: 3 });
      assert.deepEqual(await remove('/!a:test/s1'), { etag: '2', count: 3 });
      assert.deepEqual(await remove('/!b:test'), { etag: '3', count: 1 });
      assert.deepEqual(await remove(''), { etag: '4', count: 0 });
      assert.equal(await server.rows('room_keys'), 0);
    });

    it('rejects malformed keys with 400 and large keys with 413, and accepts a room without keys whatever its id is', async () => {
      await start();
      const cases: [rooms: unknown, status: number][] = [
        [undefined, 400],
        [[], 400],
        [{ a: { sessions: {} } }, 200],
        [{ a: { sessions: { s: key() } } }, 400],
        [{ '!a:test': [] }, 400],
        [{ '!a:test': {} }, 400],
        [{ '!a:test': { sessions: { '': key() } } }, 400],
        [{ '!a:test': { sessions: { 's\0': key() } } }, 400],
        [{ '!a:test': { sessions: { s: 'key' } } }, 400],
        [{ '!a:test': { sessions: { s: key(-1) } } }, 400],
        [{ '!a:test': { sessions: { s: key(0.5) } } }, 400],
        [{ '!a:test': { sessions: { s: key(0, 2 ** 60) } } }, 400],
        [{ '!a:test': { sessions: { s: { ...key(), is_verified: 1 } } } }, 400],
        [{ '!a:test': { sessions: { s: { ...key(), session_data: 'x' } } } }, 400],
        [{ '!a:test': { sessions: { s: key(0, 0, true, 'x'.repeat(70_000)) } } }, 413],
      ];
      for (const [rooms, status] of cases) {
        assert.equal((await call('PUT', '/keys?version=1', { rooms })).status, status);
      }
      assert.equal(await server.rows('room_keys'), 0);
    });

    it('accepts 2,000 keys in one request, of one room or of many, and rejects more with 413', async () => {
      await start();
      const sessions = (count: number) =>
        Object.fromEntries(Array.from({ length: count }, (_, index) => [`s${index}`, key()]));
      const rooms = (count: number) =>
        Object.fromEntries(
          Array.from({ length: count }, (_, index) => [`!r${index}:test`, { sessions: sessions(1) }]),
        );
      assert.deepEqual(await put({ '!a:test': { sessions: sessions(2_000) } }), { etag: '1', count: 2_000 });
      assert.deepEqual(await put(rooms(2_000)), { etag: '2', count: 4_000 });
      // No key is better than the stored one, so nothing changes.
      assert.deepEqual(await put(rooms(2_000)), { etag: '2', count: 4_000 });
      const tooMany = { rooms: rooms(2_001) };
      assert.deepEqual(codeOf(await call('PUT', '/keys?version=1', tooMany)), [413, 'M_TOO_LARGE']);
      const tooManyOfRoom = await call('PUT', '/keys/!a:test?version=1', { sessions: sessions(2_001) });
      assert.deepEqual(codeOf(tooManyOfRoom), [413, 'M_TOO_LARGE']);
    });
  });
});

describe('parseRooms, parseSession and keyText', () => {
  it('parseRooms accepts arbitrary input or throws a MatrixError', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (rooms) => {
        try {
          parseRooms(rooms as JsonObject);
        } catch (error) {
          assert.ok(error instanceof MatrixError);
        }
      }),
    );
  });

  it('keyText returns a session key as the JSON text that parseSession has read', () => {
    const index = fc.nat(Number.MAX_SAFE_INTEGER);
    const data = fc.dictionary(fc.string(), fc.jsonValue());
    fc.assert(
      fc.property(
        index,
        index,
        fc.boolean(),
        data,
        (firstIndex, forwardedCount, isVerified, session_data) => {
          const sent = { ...key(firstIndex, forwardedCount, isVerified), session_data };
          const read = parseSession('!a:test', 's', sent);
          assert.equal(keyText(read), JSON.stringify(sent));
        },
      ),
    );
  });
});
