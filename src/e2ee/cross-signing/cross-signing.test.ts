import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { passwordLogin } from '../../../test/support/servers/accounts-server.ts';
import { codeOf, E2eeServer, type UserWithKeys } from '../../../test/support/servers/e2ee-server.ts';
import { ClientIdentity } from '../../../test/support/users/client-device.ts';
import type { JsonObject } from '../../protocol/index.ts';
import { DeviceLists } from '../device-lists/device-lists.ts';

forSelectedDatabases(import.meta.url, (open) => {
  let server: E2eeServer;
  let alice: UserWithKeys;
  let identity: ClientIdentity;
  afterEach(() => server.stop());

  async function start(options: Parameters<typeof E2eeServer.start>[1] = {}): Promise<void> {
    server = await E2eeServer.start(open, options);
    alice = await server.user('alice');
    identity = new ClientIdentity(alice.userId);
  }
  const upload = (body: unknown, as: UserWithKeys = alice) =>
    server.call(as, 'POST', '/keys/device_signing/upload', body);
  const sign = (body: unknown, as: UserWithKeys = alice) =>
    server.call(as, 'POST', '/keys/signatures/upload', body);
  const query = async (as: UserWithKeys, userId = alice.userId) =>
    (await server.call(as, 'POST', '/keys/query', { device_keys: { [userId]: [] } })).body as Record<
      string,
      Record<string, JsonObject>
    >;
  const setUp = async () => {
    await start();
    assert.equal((await upload(identity.keys())).status, 200);
  };
  /** Uploads the body, and repeats the request with the password after the 401 challenge. */
  const uploadWithPassword = async (body: object) => {
    const challenge = await upload(body);
    assert.equal(challenge.status, 401);
    const identifier = { type: 'm.id.user', user: 'alice' };
    const session = challenge.body['session'];
    return upload({
      ...body,
      auth: { type: 'm.login.password', identifier, password: 'password', session },
    });
  };
  const signedDevice = () => ({ [alice.deviceId]: identity.signAs(identity.selfSigning, alice.deviceKeys) });
  const failuresOf = async (body: JsonObject, as?: UserWithKeys) => {
    const answer = await sign(body, as);
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    const failures = answer.body['failures'] as Record<string, Record<string, JsonObject>>;
    return Object.values(failures).flatMap((failuresOfUser) =>
      Object.values(failuresOfUser).map(({ errcode }) => errcode),
    );
  };

  describe('POST /keys/device_signing/upload', () => {
    it('accepts the first keys, and repeated identical keys, without a password', async () => {
      await setUp();
      const publishedUserIds: string[] = [];
      server.server.slice.devices.deviceListStream.subscribe(({ userId }) => publishedUserIds.push(userId));
      assert.deepEqual((await upload(identity.keys())).body, {});
      assert.deepEqual((await upload({ master_key: identity.masterKey() })).body, {});
      assert.deepEqual((await upload({ self_signing_key: identity.selfSigningKey() })).body, {});
      assert.deepEqual((await upload({})).body, {});
      assert.deepEqual(publishedUserIds, []);
    });

    it('returns master and self-signing keys to every user, and the user-signing key only to its owner', async () => {
      await setUp();
      const bob = await server.user('bob');
      const keys = await query(bob);
      const { master_key, self_signing_key, user_signing_key } = identity.keys();
      assert.deepEqual(keys['master_keys'], { [alice.userId]: master_key }, 'without added signatures');
      assert.deepEqual(keys['self_signing_keys'], { [alice.userId]: self_signing_key });
      assert.deepEqual(keys['user_signing_keys'], {});
      assert.deepEqual((await query(alice))['user_signing_keys'], { [alice.userId]: user_signing_key });
    });

    it('replaces keys only after authentication with the password', async () => {
      await setUp();
      const otherIdentity = new ClientIdentity(alice.userId);
      for (const body of [
        otherIdentity.keys(),
        { master_key: otherIdentity.masterKey() },
        {
          self_signing_key: identity.signAs(
            identity.master,
            withoutSignatures(otherIdentity.selfSigningKey()),
          ),
        },
      ]) {
        assert.equal((await upload(body)).status, 401);
      }
      const since = server.position;
      assert.equal((await uploadWithPassword(otherIdentity.keys())).status, 200);
      const keys = await query(alice);
      assert.deepEqual(keys['self_signing_keys'], { [alice.userId]: otherIdentity.selfSigningKey() });
      const { changed } = await server.e2ee.deviceLists.changes(alice.userId, since, server.position);
      assert.deepEqual(changed, [alice.userId]);
    });

    it('reports a new user-signing key as a device list change to its own user only', async () => {
      await setUp();
      const bob = await server.user('bob');
      await server.room(alice, bob);
      const publishedUserIds: string[] = [];
      server.server.slice.devices.deviceListStream.subscribe(({ userId }) => publishedUserIds.push(userId));
      const since = server.position;
      const otherIdentity = new ClientIdentity(alice.userId);
      const { user_signing_key } = otherIdentity.keys();
      const signed = identity.signAs(identity.master, withoutSignatures(user_signing_key));
      assert.equal((await uploadWithPassword({ user_signing_key: signed })).status, 200);
      assert.deepEqual((await query(alice))['user_signing_keys'], { [alice.userId]: signed });
      const { deviceLists } = server.e2ee;
      const smallMemory = new DeviceLists({
        database: server.server.database,
        streams: server.server.streams,
        devices: server.server.slice.devices,
        engine: server.rooms.engine,
        signatureStream: server.e2ee.signatureStream,
        capacity: 1,
      });
      for (const lists of [deviceLists, smallMemory]) {
        const changesOf = (userId: string) => lists.changes(userId, since, server.position);
        assert.deepEqual(await changesOf(alice.userId), { changed: [alice.userId], left: [] });
        assert.deepEqual(await changesOf(bob.userId), { changed: [], left: [] });
      }
      assert.deepEqual(publishedUserIds, []);
    });

    it('stores one of several first key sets that are uploaded in parallel, and requires the password in the other requests', async () => {
      await start();
      const identities = [identity, new ClientIdentity(alice.userId), new ClientIdentity(alice.userId)];
      const statuses = await Promise.all(
        identities.map(async (candidate) => (await upload(candidate.keys())).status),
      );
      assert.deepEqual(statuses.sort(), [200, 401, 401]);
    });

    it('deletes, when the master key is replaced, the other cross-signing keys, and the signatures by and on the old keys', async () => {
      await setUp();
      const bob = await server.user('bob');
      const bobIdentity = new ClientIdentity(bob.userId);
      await upload(bobIdentity.keys(), bob);
      const signedBob = identity.signAs(identity.userSigning, bobIdentity.masterKey());
      const signedAlice = bobIdentity.signAs(bobIdentity.userSigning, identity.masterKey());
      await sign({ [alice.userId]: signedDevice(), [bob.userId]: { [bobIdentity.master.name]: signedBob } });
      await sign({ [alice.userId]: { [identity.master.name]: signedAlice } }, bob);
      assert.equal(await server.rows('user_signatures'), 2);
      await uploadWithPassword({ master_key: new ClientIdentity(alice.userId).masterKey() });
      const keys = await query(alice);
      assert.deepEqual([keys['self_signing_keys'], keys['user_signing_keys']], [{}, {}]);
      assert.deepEqual(keys['device_keys'], { [alice.userId]: { [alice.deviceId]: alice.deviceKeys } });
      assert.equal(await server.rows('user_signatures'), 0);
    });

    it('rejects keys of other users, malformed keys and keys that the master key has not signed', async () => {
      await start();
      const bobIdentity = new ClientIdentity('@bob:test');
      const otherIdentity = new ClientIdentity(alice.userId);
      const { master_key, self_signing_key, user_signing_key } = identity.keys();
      const twoKeys = {
        [identity.master.keyId]: identity.master.name,
        [otherIdentity.master.keyId]: otherIdentity.master.name,
      };
      const wrongUsage = { ...withoutSignatures(identity.masterKey()), usage: ['self_signing'] };
      const cases: [body: JsonObject, errcode: string][] = [
        [{ self_signing_key }, 'M_MISSING_PARAM'],
        [{ user_signing_key }, 'M_MISSING_PARAM'],
        [{ master_key: bobIdentity.masterKey() }, 'M_INVALID_PARAM'],
        [{ master_key: { ...master_key, usage: ['self_signing'] } }, 'M_INVALID_PARAM'],
        [{ master_key: { ...master_key, usage: 'master' } }, 'M_INVALID_PARAM'],
        [{ master_key: { ...master_key, keys: twoKeys } }, 'M_INVALID_PARAM'],
        [{ master_key: { ...master_key, keys: {} } }, 'M_INVALID_PARAM'],
        [{ master_key: { ...master_key, keys: { 'ed25519:x': identity.master.name } } }, 'M_INVALID_PARAM'],
        [{ master_key: { ...master_key, keys: { 'ed25519:AAAA': 'AAAA' } } }, 'M_INVALID_PARAM'],
        [{ master_key: { ...master_key, more: 'x'.repeat(20_000) } }, 'M_TOO_LARGE'],
        [{ master_key, self_signing_key: otherIdentity.selfSigningKey() }, 'M_INVALID_SIGNATURE'],
        [{ master_key, self_signing_key: withoutSignatures(self_signing_key) }, 'M_INVALID_SIGNATURE'],
        [{ master_key, user_signing_key: { ...user_signing_key, more: 1 } }, 'M_INVALID_SIGNATURE'],
        [{ master_key, self_signing_key: identity.signAs(identity.master, wrongUsage) }, 'M_INVALID_PARAM'],
        [
          {
            master_key: {
              ...master_key,
              signatures: { [alice.userId]: { [`ed25519:${alice.deviceId}`]: 'AAAA' } },
            },
          },
          'M_INVALID_SIGNATURE',
        ],
      ];
      for (const [body, code] of cases) assert.equal((await upload(body)).body['errcode'], code);
      assert.equal(await server.rows('cross_signing_keys'), 0);
    });

    it('answers 403 to a cross-signing key with the id of a device, and to a login whose device id is that of a cross-signing key', async () => {
      await start();
      const device_id = identity.master.name;
      const login = await server.server.login('alice', { device_id });
      assert.deepEqual(codeOf(await upload(identity.keys())), [403, 'M_FORBIDDEN']);
      await server.call(login, 'POST', '/logout', {});
      assert.equal((await upload(identity.keys())).status, 200);
      const body = { ...passwordLogin('alice'), device_id };
      assert.deepEqual(codeOf(await server.server.call('POST', '/login', { body })), [403, 'M_FORBIDDEN']);
      const { devices } = server.server.slice;
      await assert.rejects(devices.createAll(alice.userId, ['TABLET', device_id]), /cross-signing keys/);
      const ids = (await devices.list(alice.userId)).map(({ deviceId }) => deviceId);
      assert.deepEqual(ids, [alice.deviceId], 'no device is created');
    });

    it('removes signatures of a device from the master key when the device is deleted', async () => {
      await start();
      const second = await server.device('alice');
      const master_key = second.client.sign(alice.client.sign(identity.masterKey()));
      await upload({ ...identity.keys(), master_key });
      assert.deepEqual((await query(alice))['master_keys'], { [alice.userId]: master_key });
      await server.call(second, 'POST', '/logout', {});
      assert.deepEqual((await query(alice))['master_keys'], {
        [alice.userId]: alice.client.sign(identity.masterKey()),
      });
    });

    it('deletes the cross-signing keys of a deactivated account, and the signatures of these keys', async () => {
      await setUp();
      const bob = await server.user('bob');
      const bobIdentity = new ClientIdentity(bob.userId);
      await upload(bobIdentity.keys(), bob);
      const signed = bobIdentity.signAs(bobIdentity.userSigning, identity.masterKey());
      await sign({ [alice.userId]: { [identity.master.name]: signed } }, bob);
      await server.server.slice.accounts.deactivate(alice.userId, { erase: false, byAdmin: false });
      assert.equal(await server.rows('cross_signing_keys'), 3);
      assert.equal(await server.rows('user_signatures'), 0);
      assert.equal(await server.rows('device_keys'), 1);
    });
  });

  describe('POST /keys/signatures/upload', () => {
    it('shows other users the signature of a device by the self-signing key of its user, and keeps the signature when the same device keys are uploaded again', async () => {
      await setUp();
      const bob = await server.user('bob');
      await server.room(alice, bob);
      const since = server.position;
      assert.deepEqual(await failuresOf({ [alice.userId]: signedDevice() }), []);
      const { changed } = await server.e2ee.deviceLists.changes(bob.userId, since, server.position);
      assert.deepEqual(changed, [alice.userId]);
      const after = server.position;
      assert.deepEqual(await failuresOf({ [alice.userId]: signedDevice() }), []);
      await server.call(alice, 'POST', '/keys/upload', { device_keys: alice.deviceKeys });
      assert.deepEqual(await server.e2ee.deviceLists.changes(bob.userId, after, server.position), {
        changed: [],
        left: [],
      });
      assert.deepEqual((await query(bob))['device_keys'], { [alice.userId]: signedDevice() });
    });

    it('shows other users the signature of a master key by a device of its user', async () => {
      await setUp();
      const signed = alice.client.sign(identity.masterKey());
      assert.deepEqual(await failuresOf({ [alice.userId]: { [identity.master.name]: signed } }), []);
      const bob = await server.user('bob');
      assert.deepEqual((await query(bob))['master_keys'], { [alice.userId]: signed });
    });

    it("shows the signature of another user's master key only to the user who made the signature, and reports it to this user's devices as a device list change", async () => {
      await setUp();
      const bob = await server.user('bob');
      const bobIdentity = new ClientIdentity(bob.userId);
      await upload(bobIdentity.keys(), bob);
      const since = server.position;
      const signed = identity.signAs(identity.userSigning, bobIdentity.masterKey());
      assert.deepEqual(await failuresOf({ [bob.userId]: { [bobIdentity.master.name]: signed } }), []);
      const keys = (await query(alice, bob.userId))['master_keys']![bob.userId]!.signatures;
      const expected = (signed.signatures as JsonObject)[alice.userId];
      assert.deepEqual(keys, { [alice.userId]: expected });
      const signaturesForBob = (await query(bob, bob.userId))['master_keys']![bob.userId]!.signatures;
      assert.equal(signaturesForBob, undefined);
      const { deviceLists } = server.e2ee;
      const now = server.position;
      assert.deepEqual((await deviceLists.changes(alice.userId, since, now)).changed, [bob.userId]);
      assert.deepEqual((await deviceLists.changes(bob.userId, since, now)).changed, []);
      assert.deepEqual((await deviceLists.changes(alice.userId, 0, now)).changed.sort(), [
        alice.userId,
        bob.userId,
      ]);
    });

    it('reports as a failure each signature by a wrong key, of wrong content or for a wrong user, and stores the valid signatures', async () => {
      await setUp();
      const second = await server.device('alice');
      const bob = await server.user('bob');
      const bobIdentity = new ClientIdentity(bob.userId);
      await upload(bobIdentity.keys(), bob);
      const otherIdentity = new ClientIdentity(alice.userId);
      const underAlice = (object: JsonObject, id = alice.deviceId) => ({ [alice.userId]: { [id]: object } });
      const aliceMaster = (object: JsonObject) => underAlice(object, identity.master.name);
      const underBob = (object: JsonObject, id = bobIdentity.master.name) => ({
        [bob.userId]: { [id]: object },
      });
      const forged = { ...alice.deviceKeys, algorithms: [] };
      const invalid = ['M_INVALID_SIGNATURE'];
      const unknown = ['M_NOT_FOUND'];
      const cases: [body: JsonObject, errcodes: string[]][] = [
        [underAlice(alice.deviceKeys), invalid],
        [underAlice(otherIdentity.signAs(otherIdentity.selfSigning, alice.deviceKeys)), invalid],
        [underAlice(identity.signAs(identity.master, alice.deviceKeys)), invalid],
        [underAlice(identity.signAs(identity.selfSigning, forged)), invalid],
        [underAlice(identity.signAs(identity.selfSigning, second.deviceKeys)), invalid],
        [underAlice(identity.signAs(identity.selfSigning, alice.deviceKeys), 'NOWHERE'), unknown],
        [underAlice({}), invalid],
        [aliceMaster(identity.signAs(identity.selfSigning, identity.masterKey())), invalid],
        [aliceMaster({ ...identity.masterKey(), signatures: signatureOf('AAAA') }), invalid],
        [aliceMaster(alice.client.sign(otherIdentity.masterKey())), invalid],
        [underAlice(alice.client.sign(otherIdentity.masterKey()), otherIdentity.master.name), unknown],
        [underAlice(alice.client.sign(identity.selfSigningKey()), identity.selfSigning.name), unknown],
        [underBob(identity.signAs(identity.selfSigning, bobIdentity.masterKey())), invalid],
        [underBob(bobIdentity.signAs(bobIdentity.userSigning, bobIdentity.masterKey())), invalid],
        [underBob(identity.signAs(identity.userSigning, bob.deviceKeys), bob.deviceId), unknown],
        [underBob(identity.signAs(identity.userSigning, identity.masterKey())), invalid],
        [{ '@unknown:test': { x: identity.signAs(identity.userSigning, bobIdentity.masterKey()) } }, unknown],
      ];
      for (const [body, codes] of cases) assert.deepEqual(await failuresOf(body), codes);
      const mixed = await sign({ ...underAlice(alice.deviceKeys), ...underBob(signedBy(bobIdentity)) });
      assert.deepEqual(Object.keys(mixed.body['failures'] as object), [alice.userId]);
      assert.equal(await server.rows('user_signatures'), 1);
      assert.deepEqual((await query(alice))['device_keys']![alice.userId], {
        [alice.deviceId]: alice.deviceKeys,
        [second.deviceId]: second.deviceKeys,
      });
    });

    it('reports signatures of users who have no cross-signing keys as failures, and rejects malformed bodies', async () => {
      await start();
      const signed = identity.signAs(identity.selfSigning, alice.deviceKeys);
      assert.deepEqual(await failuresOf({ [alice.userId]: { [alice.deviceId]: signed } }), ['M_NOT_FOUND']);
      for (const body of [[], { alice: {} }, { [alice.userId]: [] }, { [alice.userId]: { A: 5 } }]) {
        assert.equal((await sign(body)).status, 400);
      }
      const large = { [alice.userId]: { A: { x: 'x'.repeat(1_100_000) } } };
      assert.deepEqual(codeOf(await sign(large)), [413, 'M_TOO_LARGE']);
    });

    it('checks signatures on master keys of remote users against the keys that their servers return, and reports M_UNKNOWN when a server does not answer', async () => {
      const bobIdentity = new ClientIdentity('@bob:elsewhere');
      await start({
        remote: {
          query: async (name) => {
            if (name === 'broken') throw new Error('no route to host');
            return { master_keys: { [bobIdentity.userId]: bobIdentity.masterKey() } };
          },
          claim: async () => ({}),
          devices: async () => ({}),
        },
      });
      await upload(identity.keys());
      assert.deepEqual(
        await failuresOf({ [bobIdentity.userId]: { [bobIdentity.master.name]: signedBy(bobIdentity) } }),
        [],
      );
      const masterKey = (await query(alice, bobIdentity.userId))['master_keys']![bobIdentity.userId]!;
      assert.ok(alice.userId in (masterKey.signatures as JsonObject));
      const eveIdentity = new ClientIdentity('@eve:broken');
      const failures = await failuresOf({
        [eveIdentity.userId]: { [eveIdentity.master.name]: signedBy(eveIdentity) },
      });
      assert.deepEqual(failures, ['M_UNKNOWN']);
    });

    const signedBy = (otherIdentity: ClientIdentity) =>
      identity.signAs(identity.userSigning, otherIdentity.masterKey());
    const signatureOf = (text: string) => ({ [alice.userId]: { [`ed25519:${alice.deviceId}`]: text } });
  });
});

function withoutSignatures({ signatures: _signatures, ...rest }: JsonObject): JsonObject {
  return rest;
}
