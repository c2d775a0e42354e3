import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { commonTestAuthority } from '../../../test/support/network/test-authority.ts';
import {
  IdentityServerUnderTest,
  identityToken,
} from '../../../test/support/other-servers/identity-server.ts';
import type { TestUser } from '../../../test/support/servers/server.ts';
import { loginBody, ServerWithMail, statusAndErrcode } from '../test/server-with-mail.ts';

forSelectedDatabases(import.meta.url, (open) => {
  let fixture: ServerWithMail;
  let identity: IdentityServerUnderTest;
  let anna: TestUser;
  beforeEach(async () => {
    identity = await IdentityServerUnderTest.start(commonTestAuthority());
    fixture = await ServerWithMail.start(open.kind, {}, { email: null });
    anna = await fixture.server.register('anna');
  });
  afterEach(async () => {
    await fixture.stop();
    await identity.stop();
  });
  const publish = (more: object = {}, user = anna) =>
    fixture.post(
      '/account/3pid/bind',
      {
        sid: 'one',
        client_secret: 'secret',
        id_server: identity.name,
        id_access_token: identityToken,
        ...more,
      },
      user.token,
    );
  const unpublish = async (more: object = {}, user = anna, path = 'unbind') => {
    const body = { medium: 'email', address: 'anna@example.org', ...more };
    return (await fixture.post(`/account/3pid/${path}`, body, user.token)).body['id_server_unbind_result'];
  };
  const owner = () => identity.bound.get('anna@example.org email');

  describe('POST /account/3pid/bind', () => {
    it('publishes an address that the identity server has validated', async () => {
      identity.validated.set('one', 'anna@example.org');
      const { status, body } = await publish();
      assert.deepEqual([status, body], [200, {}]);
      assert.equal(owner(), anna.userId);
      assert.deepEqual(await fixture.addressesOf(anna), []);
    });

    it('returns the error of an identity server that has not validated the address, 400 for an invalid name or token of an identity server, and 502 for one that cannot be reached', async () => {
      assert.deepEqual(statusAndErrcode(await publish()), [400, 'M_NO_VALID_SESSION']);
      assert.deepEqual(statusAndErrcode(await publish({ id_access_token: 'wrong' })), [403, 'M_FORBIDDEN']);
      assert.deepEqual(statusAndErrcode(await publish({ id_server: 'not a name' })), [
        400,
        'M_INVALID_PARAM',
      ]);
      assert.deepEqual(statusAndErrcode(await publish({ id_access_token: 'a\r\nb: c' })), [
        400,
        'M_INVALID_PARAM',
      ]);
      assert.deepEqual(statusAndErrcode(await publish({ id_server: 'unknown.example' })), [502, 'M_UNKNOWN']);
    });
  });

  it('the paths below /unstable/account/3pid, which the SDKs of Element Classic request, are answered like those of r0 and v3', async () => {
    for (const path of ['add', 'bind', 'unbind', 'delete']) {
      for (const version of ['v3', 'r0', 'unstable']) {
        const answer = await fixture.server.api('POST', `/_matrix/client/${version}/account/3pid/${path}`, {
          token: anna.token,
          body: {},
        });
        assert.deepEqual(statusAndErrcode(answer), [400, 'M_BAD_JSON'], `${version} ${path}`);
      }
    }
  });

  describe('POST /account/3pid/unbind', () => {
    it('sends a signed request to the identity server that has the published address', async () => {
      identity.validated.set('one', 'anna@example.org');
      await publish();
      assert.equal(await unpublish({ address: 'Anna@example.org' }), 'success');
      assert.equal(owner(), undefined);
      assert.match(identity.signatures[0] ?? '', /^X-Matrix origin="?test"?,/);
      assert.equal(await unpublish(), 'no-support');
    });

    it('unpublishes the address at the named identity server, but not for another user', async () => {
      identity.validated.set('one', 'anna@example.org');
      await publish();
      const eve = await fixture.server.register('eve');
      assert.equal(await unpublish({ id_server: identity.name }, eve), 'no-support');
      assert.equal(owner(), anna.userId);
      assert.equal(await unpublish({ id_server: identity.name }), 'success');
    });

    it('answers no-support when the identity server refuses or cannot be reached', async () => {
      identity.validated.set('one', 'anna@example.org');
      await publish();
      identity.answers.set('/3pid/unbind', { status: 501, body: { errcode: 'M_UNRECOGNIZED' } });
      assert.equal(await unpublish(), 'no-support');
      identity.answers.clear();
      assert.equal(await unpublish(), 'success');
      assert.equal(await unpublish({ id_server: 'unknown.example' }), 'no-support');
    });
  });

  it('unpublishes an address that the user deletes, and all addresses of a deactivated account', async () => {
    for (const [sid, address] of [
      ['one', 'anna@example.org'],
      ['two', 'two@example.org'],
      ['three', 'three@example.org'],
    ]) {
      identity.validated.set(sid!, address!);
      assert.equal((await publish({ sid })).status, 200);
    }
    assert.equal(await unpublish({}, anna, 'delete'), 'success');
    assert.equal(identity.bound.size, 2);
    const auth = loginBody({ type: 'm.id.user', user: 'anna' }, 'correct horse');
    const { body } = await fixture.post('/account/deactivate', { auth }, anna.token);
    assert.deepEqual(body, { id_server_unbind_result: 'success' });
    assert.equal(identity.bound.size, 0);
  });

  it('lets the user who publishes an address join through an invite that was sent to the address before', async () => {
    const ben = await fixture.server.register('ben');
    const { body } = await fixture.post('/createRoom', { preset: 'private_chat' }, ben.token);
    const room = String(body['room_id']);
    const address = { medium: 'email', address: 'anna@example.org' };
    const invite = { ...address, id_server: identity.name, id_access_token: identityToken };
    assert.equal(
      (await fixture.post(`/rooms/${encodeURIComponent(room)}/invite`, invite, ben.token)).status,
      200,
    );
    identity.validated.set('one', 'anna@example.org');
    assert.equal((await publish()).status, 200);
    // Identity servers send this notice when an address with stored invites is bound.
    const { token, sender } = identity.invites.at(-1)!;
    const signed = identity.sign({ mxid: anna.userId, token });
    const pending = { ...address, mxid: anna.userId, room_id: room, sender, signed };
    const notice = { ...address, mxid: anna.userId, invites: [pending] };
    const path = '/_matrix/federation/v1/3pid/onbind';
    assert.equal((await fixture.server.api('PUT', path, { body: notice })).status, 200);
    assert.equal((await fixture.post(`/join/${encodeURIComponent(room)}`, {}, anna.token)).status, 200);
  });

  it('answers no-support to the deactivation of an account when an identity server refuses to unbind an address', async () => {
    identity.validated.set('one', 'anna@example.org');
    await publish();
    identity.answers.set('/3pid/unbind', { status: 403, body: {} });
    const auth = loginBody({ type: 'm.id.user', user: 'anna' }, 'correct horse');
    const { status, body } = await fixture.post('/account/deactivate', { auth }, anna.token);
    assert.deepEqual([status, body], [200, { id_server_unbind_result: 'no-support' }]);
  });
});
