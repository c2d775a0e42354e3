import assert from 'node:assert/strict';
import { EventType, Filter, MatrixError } from 'matrix-js-sdk';
import { after, before, test } from '../bounded-test.ts';
import { eventually } from '../eventually.ts';
import { type ServerUnderTest, serverUnderTest } from '../server-under-test.ts';
import { anonymousClient, password, register, Session, uniqueName } from './session.ts';

let server: ServerUnderTest;
before(async () => {
  server = await serverUnderTest();
});
after(() => server?.stop());

function error(status: number, errcode: string): (thrown: unknown) => boolean {
  return (thrown) =>
    thrown instanceof MatrixError && thrown.httpStatus === status && thrown.errcode === errcode;
}

test('matrix-js-sdk registers a user through the stages of user-interactive authentication, and the server refuses a username in use', async () => {
  const name = uniqueName('alice');
  const { user_id } = await register(server.url, name);
  assert.match(user_id, new RegExp(`^@${name}:`));
  await assert.rejects(register(server.url, name), error(400, 'M_USER_IN_USE'));
  assert.equal(await anonymousClient(server.url).isUsernameAvailable(uniqueName('nobody')), true);
});

test('creates a device for each login, and ends the session of the device at logout', async (context) => {
  const first = await Session.ofNewUser(server.url, 'alice');
  context.after(() => first.stop());
  const second = await Session.ofLogin(server.url, first.userId);
  context.after(() => second.stop());

  const { user_id, device_id } = await second.client.whoami();
  assert.deepEqual({ user_id, device_id }, { user_id: first.userId, device_id: second.deviceId });
  const { devices } = await first.client.getDevices();
  assert.deepEqual(
    devices.map((device) => device.device_id).sort(),
    [first.deviceId, second.deviceId].sort(),
  );
  await first.client.setDeviceDetails(second.deviceId, { display_name: 'telephone' });
  assert.equal((await second.client.getDevice(second.deviceId)).display_name, 'telephone');

  await second.client.logout(true);
  await assert.rejects(second.client.whoami(), error(401, 'M_UNKNOWN_TOKEN'));
  assert.equal((await first.client.getDevices()).devices.length, 1);
});

test('refuses a login with a wrong password', async () => {
  const { user_id } = await register(server.url, uniqueName('alice'));
  const attempt = anonymousClient(server.url).loginRequest({
    type: 'm.login.password',
    identifier: { type: 'm.id.user', user: user_id },
    password: `${password}?`,
  });
  await assert.rejects(attempt, error(403, 'M_FORBIDDEN'));
});

test('accepts only the new password after the user has changed the password', async (context) => {
  const alice = await Session.ofNewUser(server.url, 'alice');
  context.after(() => alice.stop());
  const auth = { type: 'm.login.password', identifier: { type: 'm.id.user', user: alice.userId }, password };
  const newPassword = 'a better one';
  await alice.client.setPassword(auth, newPassword, false);
  const login = (attempted: string) =>
    anonymousClient(server.url).loginRequest({
      type: 'm.login.password',
      identifier: { type: 'm.id.user', user: alice.userId },
      password: attempted,
    });
  await assert.rejects(login(password), error(403, 'M_FORBIDDEN'));
  assert.equal((await login(newPassword)).user_id, alice.userId);
});

test('sends account data to the other devices of the user, and returns it on request', async (context) => {
  const first = await Session.ofNewUser(server.url, 'alice');
  context.after(() => first.stop());
  const second = await Session.ofLogin(server.url, first.userId);
  context.after(() => second.stop());

  const content = { '@bob:hearth.test': ['!room:hearth.test'] };
  await first.client.setAccountData(EventType.Direct, content);
  const event = await eventually('account data', () => second.client.getAccountData(EventType.Direct));
  assert.deepEqual(event.getContent(), content);
  assert.deepEqual(await second.client.getAccountDataFromServer(EventType.Direct), content);
});

test('stores a filter, and returns it by its id', async (context) => {
  const alice = await Session.ofNewUser(server.url, 'alice');
  context.after(() => alice.stop());
  const definition = { room: { timeline: { limit: 7, types: ['m.room.message'] } } };
  const { filterId } = await alice.client.createFilter(definition);
  assert.ok(filterId);
  const filter = await alice.client.getFilter(alice.userId, filterId, false);
  assert.ok(filter instanceof Filter);
  assert.deepEqual(filter.getDefinition(), definition);
});
