import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import { registrations } from '../../test/modules/registering-module.ts';
import { forSelectedDatabases } from '../../test/support/databases/databases.ts';
import { FakeResolver } from '../../test/support/network/loopback.ts';
import { makeTestAuthority } from '../../test/support/network/test-authority.ts';
import { IdentityServerUnderTest, identityToken } from '../../test/support/other-servers/identity-server.ts';
import {
  type ConfigurationOverrides,
  startTestServer,
  type TestServer,
} from '../../test/support/servers/server.ts';
import { enc, TestClient } from '../../test/support/users/test-client.ts';

const registeringModule = join(import.meta.dirname, '../../test/modules/registering-module.ts');
const authority = makeTestAuthority();
after(() => authority.remove());

const resolver = new FakeResolver();
resolver.hosts.set('id.example', ['127.0.0.1']);

const local: ConfigurationOverrides = { outbound: { ip_range_whitelist: ['127.0.0.0/8'] } };

const statusAndErrcode = ({ status, body }: { status: number; body: Record<string, unknown> }) => [
  status,
  body['errcode'],
];

forSelectedDatabases(import.meta.url, (open) => {
  const startServer = (config: ConfigurationOverrides = local) =>
    startTestServer({ database: open.kind, config, resolver, authorities: [authority.pem] });

  describe('third-party invites', () => {
    let server: TestServer;
    let identity: IdentityServerUnderTest;
    let anna: TestClient;
    let ben: TestClient;
    let room: string;
    let addresses = 0;
    let address: string;
    before(async () => {
      registrations.set('address invites', (api) => {
        const denial = { errcode: 'ORG_TEST_NO', error: 'Not this address' };
        api.registerSpamChecker({
          mayInviteAddress: (inviter, medium, invited, roomId) =>
            inviter === anna.id && medium === 'email' && invited === 'spam@example.org' && roomId === room
              ? denial
              : 'allow',
        });
        api.registerEventRules({
          async mayInviteAddress(_, invited, state) {
            const name = await state.get('m.room.name', '');
            return invited === 'state@example.org' && name?.content['name'] === 'A room' ? denial : 'allow';
          },
        });
      });
      const modules = { modules: [{ module: registeringModule, config: { key: 'address invites' } }] };
      [server, identity] = [
        await startServer({ ...local, modules }),
        await IdentityServerUnderTest.start(authority),
      ];
      [anna, ben] = [await TestClient.register(server, 'anna'), await TestClient.register(server, 'ben')];
    });
    after(async () => {
      await server.stop();
      await identity.stop();
    });
    beforeEach(async () => {
      address = `invited${addresses++}@example.org`;
      room = await anna.createRoom({ preset: 'private_chat', name: 'A room' });
      identity.receivedRequests.length = 0;
      identity.answers.clear();
      identity.keysAreValid = true;
      Object.assign(identity, { pepper: 'salt', algorithms: ['none', 'sha256'] });
    });

    const inviteBody = (more: object = {}) => ({
      id_server: identity.name,
      id_access_token: identityToken,
      medium: 'email',
      address,
      ...more,
    });
    const invite = (more: object = {}, by = anna) =>
      by.call('POST', `/rooms/${enc(room)}/invite`, inviteBody(more));
    const state = async (type: string, key: string) =>
      anna.call('GET', `/rooms/${enc(room)}/state/${type}/${enc(key)}`);
    const membershipOf = async ({ id }: TestClient) => (await state('m.room.member', id)).body['membership'];
    const lastInvite = () => identity.invites.at(-1)!;
    /** Returns the signed object that the identity server sends to a user for a pending invite. */
    const signedFor = (user: TestClient, token = lastInvite().token, more: object = {}) =>
      identity.sign({ mxid: user.id, sender: anna.id, token, ...more });

    it('rejects invites for addresses that a module denies', async () => {
      for (const denied of ['spam@example.org', 'state@example.org']) {
        assert.deepEqual(statusAndErrcode(await invite({ address: denied })), [403, 'ORG_TEST_NO']);
      }
      assert.equal(identity.invites.length, 0);
    });

    it('invites the user who has bound the address, in any spelling of the address', async () => {
      identity.bound.set(`${address} email`, ben.id);
      assert.equal((await invite({ address: ` ${address.toUpperCase()} ` })).status, 200);
      assert.equal(await membershipOf(ben), 'invite');
      assert.deepEqual(identity.receivedRequests, ['GET /hash_details', 'POST /lookup']);
      const other = await anna.createRoom({ preset: 'private_chat', invite_3pid: [inviteBody()] });
      assert.ok((await ben.sync()).rooms?.invite?.[other]);
      identity.algorithms = ['none'];
      room = other;
      await ben.leave(room);
      assert.equal((await invite()).status, 200);
      assert.equal(await membershipOf(ben), 'invite');
    });

    it('stores a pending m.room.third_party_invite for an address that no user has bound', async () => {
      await anna.do('PUT', `/profile/${enc(anna.id)}/displayname`, { displayname: 'Anna' });
      assert.equal((await invite()).status, 200);
      const { token, room_name, room_join_rules, sender, sender_display_name, medium } = lastInvite();
      assert.deepEqual(
        [lastInvite()['address'], medium, lastInvite()['room_id'], sender, sender_display_name],
        [address, 'email', room, anna.id, 'Anna'],
      );
      assert.deepEqual([room_name, room_join_rules], ['A room', 'invite']);
      const { body } = await state('m.room.third_party_invite', token);
      assert.equal(body['display_name'], 'a...@b...');
      assert.equal(typeof body['public_key'], 'string');
      assert.deepEqual(body['public_keys'], [
        { public_key: body['public_key'], key_validity_url: body['key_validity_url'] },
      ]);
    });

    it('stores a pending invite when the identity server answers null for the address', async () => {
      identity.answersNull = true;
      assert.equal((await invite()).status, 200);
      identity.answersNull = false;
      assert.equal(lastInvite()['address'], address);
      assert.equal((await state('m.room.third_party_invite', lastInvite().token)).status, 200);
    });

    it('redeems an invite by a join with third_party_signed', async () => {
      await invite();
      const join = (third_party_signed: unknown) =>
        ben.call('POST', `/join/${enc(room)}`, { third_party_signed });
      assert.deepEqual(statusAndErrcode(await join(signedFor(anna))), [403, 'M_FORBIDDEN']);
      assert.deepEqual(statusAndErrcode(await join(signedFor(ben, 'unknown'))), [403, 'M_FORBIDDEN']);
      assert.deepEqual(statusAndErrcode(await join({ ...signedFor(ben), more: 1 })), [403, 'M_FORBIDDEN']);
      assert.deepEqual(statusAndErrcode(await join({ ...signedFor(ben), sender: ben.id })), [
        403,
        'M_FORBIDDEN',
      ]);
      assert.deepEqual(statusAndErrcode(await join({ mxid: ben.id })), [400, 'M_BAD_JSON']);
      const inviter = { ...signedFor(ben), sender: '@someone:127.0.0.1:1' };
      assert.deepEqual(
        statusAndErrcode(await join(inviter)),
        [502, 'M_UNKNOWN'],
        "the inviter's server cannot be reached",
      );
      identity.keysAreValid = false;
      assert.deepEqual(statusAndErrcode(await join(signedFor(ben))), [403, 'M_FORBIDDEN']);
      assert.equal(await membershipOf(ben), undefined);
      identity.keysAreValid = true;
      assert.equal((await join(signedFor(ben))).status, 200);
      assert.equal(await membershipOf(ben), 'join');
      const { chunk } = await anna.do('GET', `/rooms/${enc(room)}/messages`, undefined, { dir: 'b' });
      const invited = (chunk as { type: string; content: Record<string, unknown>; sender: string }[]).find(
        ({ content }) => content['membership'] === 'invite',
      );
      const { signed, display_name } = (invited?.content['third_party_invite'] ?? {}) as Record<
        string,
        unknown
      >;
      assert.deepEqual([signed, display_name, invited?.sender], [signedFor(ben), 'a...@b...', anna.id]);
    });

    it('redeems an invite when the identity server reports a bound address, and ignores invalid invites', async () => {
      await invite();
      const notice = (mxid: string, invites: unknown[]) =>
        server.api('PUT', '/_matrix/federation/v1/3pid/onbind', {
          body: { medium: 'email', address, mxid, invites },
        });
      const pending = (signed: unknown) => ({
        medium: 'email',
        address,
        mxid: ben.id,
        room_id: room,
        sender: anna.id,
        signed,
      });
      const forged = { ...signedFor(ben), signatures: { 'id.example': { 'ed25519:0': 'AAAA' } } };
      const useless = [null, {}, pending('x'), pending(signedFor(anna)), pending(forged)];
      assert.equal((await notice(ben.id, useless)).status, 200);
      assert.equal(await membershipOf(ben), undefined);
      assert.deepEqual(statusAndErrcode(await notice('@ben:elsewhere', [])), [403, 'M_FORBIDDEN']);
      const { sender: _sender, ...plain } = signedFor(ben);
      const signed = identity.sign({ mxid: plain['mxid'] as string, token: plain['token'] as string });
      assert.equal((await notice(ben.id, [...useless, pending(signed)])).status, 200);
      assert.equal(await membershipOf(ben), 'invite');
      await ben.join(room);
    });

    it('rejects a join with third_party_signed after the invite is revoked', async () => {
      await invite();
      await anna.setState(room, 'm.room.third_party_invite', {}, lastInvite().token);
      const refused = await ben.call('POST', `/join/${enc(room)}`, { third_party_signed: signedFor(ben) });
      assert.deepEqual(statusAndErrcode(refused), [403, 'M_FORBIDDEN']);
    });

    it('creates a room with invite_3pid even if an invite fails afterwards, but not if the lookup fails', async () => {
      const third = inviteBody();
      const created = await anna.createRoom({ preset: 'private_chat', invite_3pid: [third] });
      assert.equal(lastInvite()['room_id'], created);
      identity.answers.set('/store-invite', {
        status: 400,
        body: { errcode: 'M_THREEPID_IN_USE', error: '' },
      });
      await anna.createRoom({ preset: 'private_chat', invite_3pid: [third] });
      identity.answers.set('/lookup', { status: 500, body: {} });
      const refused = await anna.call('POST', '/createRoom', { invite_3pid: [third] });
      assert.equal(refused.status, 502);
    });

    it('repeats the lookup once when the identity server has a new pepper', async () => {
      const stale = { status: 200, body: { algorithms: ['sha256'], lookup_pepper: 'old' } };
      identity.answers.set('/hash_details', stale);
      assert.equal((await invite()).status, 502);
      assert.equal(identity.receivedRequests.length, 4);
    });

    it('returns the errors of the identity server, but 403 in place of 401, which would end the session of the client, and 502 for malformed responses', async () => {
      assert.deepEqual(statusAndErrcode(await invite({ id_access_token: 'wrong' })), [403, 'M_FORBIDDEN']);
      const terms = { status: 403, body: { errcode: 'M_TERMS_NOT_SIGNED', error: 'Read them' } };
      identity.answers.set('/hash_details', terms);
      assert.deepEqual(statusAndErrcode(await invite()), [403, 'M_TERMS_NOT_SIGNED']);
      identity.answers.clear();
      const taken = { status: 400, body: { errcode: 'M_THREEPID_IN_USE', error: 'Taken' } };
      identity.answers.set('/store-invite', taken);
      assert.deepEqual(statusAndErrcode(await invite()), [400, 'M_THREEPID_IN_USE']);
      for (const body of [[], {}, { token: 'a b', display_name: '', public_keys: [] }, { token: 't' }]) {
        identity.answers.set('/store-invite', { status: 200, body });
        assert.equal((await invite()).status, 502);
      }
      for (const body of [null, { algorithms: 'x' }, { algorithms: ['md5'], lookup_pepper: '' }]) {
        identity.answers.set('/hash_details', { status: 200, body });
        assert.equal((await invite()).status, 502);
      }
      identity.answers.clear();
      identity.answers.set('/lookup', { status: 200, body: { mappings: [] } });
      assert.equal((await invite()).status, 502);
      assert.equal((await invite({ id_server: 'unknown.example' })).status, 502);
    });

    it('sends no request to the identity server for a malformed invite, or without the power level to invite', async () => {
      assert.deepEqual(statusAndErrcode(await invite({}, ben)), [403, 'M_FORBIDDEN']);
      await anna.membership('invite', room, ben);
      await ben.join(room);
      await anna.setState(room, 'm.room.power_levels', { users: { [anna.id]: 100 }, invite: 50 });
      assert.deepEqual(statusAndErrcode(await invite({}, ben)), [403, 'M_FORBIDDEN']);
      for (const wrong of [
        { id_server: 'no server/path' },
        { id_server: 'user@id.example' },
        { id_access_token: 'two words' },
        { medium: 'Post' },
        { address: 'no-address' },
        { address: 'some body@example.org' },
        { medium: 'msisdn', address: '12' },
      ]) {
        assert.deepEqual(
          statusAndErrcode(await invite(wrong)),
          [400, 'M_INVALID_PARAM'],
          JSON.stringify(wrong),
        );
      }
      for (const name of ['id_server', 'id_access_token', 'medium', 'address']) {
        const body = Object.fromEntries(Object.entries(inviteBody()).filter(([key]) => key !== name));
        const answer = await anna.call('POST', `/rooms/${enc(room)}/invite`, body);
        assert.deepEqual(statusAndErrcode(answer), [400, 'M_BAD_JSON'], name);
      }
      assert.deepEqual(identity.receivedRequests, []);
    });
  });

  describe('options for third-party invites', () => {
    /** Invites the same address twice, on a server of its own. @returns the status and errcode of each response */
    const inviteTwice = async (config: ConfigurationOverrides) => {
      const server = await startServer(config);
      const identity = await IdentityServerUnderTest.start(authority);
      try {
        const anna = await TestClient.register(server, 'anna');
        const room = await anna.createRoom();
        const body = {
          id_server: identity.name,
          id_access_token: identityToken,
          medium: 'email',
          address: 'somebody@example.org',
        };
        const sendRequest = () => anna.call('POST', `/rooms/${enc(room)}/invite`, body);
        const codes = [statusAndErrcode(await sendRequest()), statusAndErrcode(await sendRequest())];
        return { codes, requests: identity.receivedRequests.length, invites: identity.invites };
      } finally {
        await server.stop();
        await identity.stop();
      }
    };

    it('disables the lookup of addresses [option: enable_3pid_lookup]', async () => {
      const { codes, requests } = await inviteTwice({ ...local, accounts: { enable_3pid_lookup: false } });
      assert.deepEqual([codes[0], requests], [[403, 'M_FORBIDDEN'], 0]);
    });

    it('limits how often addresses are invited [option: rc_third_party_invite]', async () => {
      const rateLimits = { rc_third_party_invite: { per_second: 0.001, burst_count: 1 } };
      const { codes } = await inviteTwice({ ...local, rateLimits });
      assert.deepEqual(codes, [
        [200, undefined],
        [429, 'M_LIMIT_EXCEEDED'],
      ]);
    });

    it("sends the web client's location to the identity server [option: email.invite_client_location]", async () => {
      const email = {
        notif_from: 'Hearth <hearth@example.org>',
        invite_client_location: 'https://app.test/',
      };
      const { invites } = await inviteTwice({ ...local, mail: { email } });
      assert.equal(invites[0]?.['org.proto.web_client_location'], 'https://app.test/');
      assert.equal(invites[0]?.['org.matrix.web_client_location'], 'https://app.test/');
    });

    it('sends no requests to identity servers at private addresses', async () => {
      const { codes, requests } = await inviteTwice({});
      assert.deepEqual([codes[0]?.[0], requests], [502, 0]);
    });

    it('rejects invites by users who are not administrators when block_non_admin_invites is set', async () => {
      const { codes, requests } = await inviteTwice({ ...local, rooms: { block_non_admin_invites: true } });
      assert.deepEqual([codes[0], requests], [[403, 'M_FORBIDDEN'], 0]);
    });
  });
});
