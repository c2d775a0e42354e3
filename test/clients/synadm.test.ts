/** Drives a server with synadm, a tool for administrators from Debian's packages, through its commands. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { after, before, test } from './bounded-test.ts';
import { eventually } from './eventually.ts';
import { HearthProcess, registrationSecret } from './hearth-process.ts';
import { SynadmCommands } from './synadm-commands.ts';

const run = promisify(execFile);

type Json = Readonly<Record<string, unknown>>;

let hearth: HearthProcess;
/** The home of synadm, with its configuration and its log. */
let home: string;
let commands: SynadmCommands | undefined;
let admin: { readonly userId: string; readonly token: string };

before(async () => {
  await run('synadm', ['--help']).catch(() =>
    assert.fail('synadm is missing; install it with: apt-get install synadm'),
  );
  hearth = await HearthProcess.create({ server_notices: { system_mxid_localpart: 'notices' } });
  await hearth.start();
  admin = await registerAdmin();
  home = await mkdtemp(join(tmpdir(), 'synadm-'));
  const configuration = {
    user: admin.userId,
    token: admin.token,
    base_url: hearth.url,
    admin_path: '/_synapse/admin',
    matrix_path: '/_matrix',
    timeout: 30,
    server_discovery: 'well-known',
    homeserver: 'hearth.test',
    format: 'json',
  };
  // JSON is YAML.
  await writeFile(join(home, 'synadm.yaml'), JSON.stringify(configuration));
  commands = new SynadmCommands(home);
});
after(async () => {
  commands?.stop();
  await hearth?.remove();
  if (home) await rm(home, { recursive: true, force: true });
});

/** The first two words of the commands that the tests have run. */
const ranCommands = new Set<string>();

/** Runs a command. @returns its output */
async function synadm(...command: readonly string[]): Promise<string> {
  ranCommands.add(command.slice(0, 2).join(' '));
  const options = ['--batch', '--config-file', join(home, 'synadm.yaml'), '--output', 'json'];
  const { code, stdout, stderr } = await commands!.run(...options, ...command);
  assert.equal(code, 0, `synadm ${command.join(' ')}: ${stderr}${stdout}`);
  // `user modify` first requests the user, which fails with 404 when the command creates the user.
  const mayFail = command[1] === 'modify';
  assert.ok(mayFail || !stderr.includes('status code'), `synadm ${command.join(' ')}: ${stderr}${stdout}`);
  return stdout;
}

/** Runs a command. @returns the last object that it writes; some commands write sentences around it */
async function outputOf(...command: readonly string[]): Promise<Json> {
  const output = await synadm(...command);
  const last = output.split('\n').findLast((line) => line.startsWith('{'));
  assert.ok(last !== undefined, output);
  return JSON.parse(last) as Json;
}

async function api(method: string, path: string, body?: object, token = admin?.token): Promise<Json> {
  const response = await fetch(hearth.url + path, {
    method,
    headers: { ...(token && { authorization: `Bearer ${token}` }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  const answer = (await response.json()) as Json;
  assert.equal(response.status, 200, JSON.stringify(answer));
  return answer;
}

async function registerAdmin() {
  const path = '/_synapse/admin/v1/register';
  const { nonce } = await api('GET', path);
  const text = `${nonce}\0operator\0password\0admin`;
  const mac = createHmac('sha1', registrationSecret).update(text).digest('hex');
  const created = await api('POST', path, {
    nonce,
    username: 'operator',
    password: 'password',
    admin: true,
    mac,
  });
  return { userId: String(created['user_id']), token: String(created['access_token']) };
}

/** Registers a user. @returns the access token */
async function register(username: string): Promise<string> {
  const body = { username, password: 'password', auth: { type: 'm.login.dummy' } };
  return String((await api('POST', '/_matrix/client/v3/register', body, ''))['access_token']);
}

const createRoom = async (token: string, options: object) =>
  String((await api('POST', '/_matrix/client/v3/createRoom', options, token))['room_id']);

const listOf = (answer: Json, field: string) => answer[field] as Json[];

test('synadm shows the version of the server', async () => {
  assert.match(String((await outputOf('version'))['server_version']), /^\d+\.\d+/);
});

test('synadm searches, shows, creates, changes, shadow-bans and deactivates users', async () => {
  await register('anna');
  const anna = '@anna:hearth.test';
  const listed = listOf(await outputOf('user', 'list'), 'users').map(({ name }) => name);
  assert.deepEqual(listed, [anna, admin.userId]);
  assert.match(await synadm('user', 'search', 'ann'), /@anna:hearth\.test/);
  assert.equal((await outputOf('user', 'details', 'anna'))['name'], anna);
  const modified = await outputOf('user', 'modify', 'anna', '--display-name', 'Anna B', '--admin');
  assert.deepEqual([modified['displayname'], modified['admin']], ['Anna B', true]);
  const created = await outputOf('user', 'modify', 'carla', '--password', 'a password');
  assert.equal(created['name'], '@carla:hearth.test');
  assert.deepEqual(await outputOf('user', 'password', 'carla', '--password', 'another'), {});
  assert.equal((await outputOf('user', 'whois', 'anna'))['user_id'], anna);
  const { access_token: token } = await outputOf('user', 'login', 'carla');
  const whoami = await api('GET', '/_matrix/client/v3/account/whoami', undefined, String(token));
  assert.equal(whoami['user_id'], '@carla:hearth.test');
  await synadm('matrix', 'login', 'carla', '--password', 'another');
  await synadm('matrix', 'login', 'carla', '--password', 'another');
  await synadm('user', 'prune-devices', '@carla:hearth.test', '--min-days', '1');
  const devices = await api('GET', '/_synapse/admin/v2/users/@carla:hearth.test/devices');
  assert.equal(devices['total'], 1);
  assert.deepEqual(await outputOf('user', 'shadow-ban', 'carla'), {});
  assert.equal((await outputOf('user', 'details', 'carla'))['shadow_banned'], true);
  assert.deepEqual(await outputOf('user', 'shadow-ban', '--unban', 'carla'), {});
  assert.equal((await outputOf('user', 'membership', '--ids', 'carla'))['total'], 0);
  await synadm('user', 'deactivate', 'carla');
  assert.equal((await outputOf('user', 'details', 'carla'))['deactivated'], true);
});

test('synadm finds users by third-party id and identity provider, lists their memberships and reactivates them', async () => {
  const gina = await register('gina');
  const userId = '@gina:hearth.test';
  const modified = await outputOf('user', 'modify', 'gina', '--threepid', 'email', 'gina@example.org');
  const [address] = listOf(modified, 'threepids');
  assert.deepEqual([address?.['medium'], address?.['address']], ['email', 'gina@example.org']);
  assert.deepEqual(await outputOf('user', '3pid', '--medium', 'email', 'gina@example.org'), {
    user_id: userId,
  });
  await api('PUT', `/_synapse/admin/v2/users/${userId}`, {
    external_ids: [{ auth_provider: 'oidc-example', external_id: 'g1' }],
  });
  assert.deepEqual(await outputOf('user', 'auth-provider', '--provider', 'oidc-example', 'g1'), {
    user_id: userId,
  });
  const roomId = await createRoom(gina, { preset: 'public_chat', room_alias_name: 'gina' });
  const memberships = await outputOf('user', 'membership', 'gina');
  assert.deepEqual(memberships['joined_rooms'], ['#gina:hearth.test']);
  assert.deepEqual((await outputOf('user', 'membership', '--ids', 'gina'))['joined_rooms'], [roomId]);
  await synadm('user', 'modify', 'gina', '--deactivate');
  const hidden = await outputOf('user', 'list', '--name', 'gina');
  assert.equal(hidden['total'], 0);
  assert.equal((await outputOf('user', 'list', '--deactivated', '--name', 'gina'))['total'], 1);
  await synadm('user', 'modify', 'gina', '--activate', '--password', 'a new password');
  assert.equal((await outputOf('user', 'details', 'gina'))['deactivated'], false);
  await synadm('user', 'deactivate', '--gdpr-erase', 'gina');
  assert.equal((await outputOf('user', 'details', 'gina'))['erased'], true);
});

test('synadm searches, shows, joins and deletes rooms', async () => {
  const bea = await register('bea');
  const roomId = await createRoom(bea, { name: 'Meadow', preset: 'public_chat', room_alias_name: 'meadow' });
  const listed = listOf(await outputOf('room', 'list', '--name', 'mead'), 'rooms');
  assert.deepEqual(
    listed.map((room) => room['room_id']),
    [roomId],
  );
  assert.match(await synadm('room', 'search', 'Meadow'), new RegExp(roomId.slice(1, 10)));
  const details = await outputOf('room', 'details', roomId);
  assert.deepEqual([details['name'], details['joined_members']], ['Meadow', 1]);
  assert.deepEqual(await outputOf('room', 'join', roomId, admin.userId), { room_id: roomId });
  const members = (await outputOf('room', 'members', roomId))['members'];
  assert.deepEqual(members, ['@bea:hearth.test', admin.userId]);
  assert.ok(listOf(await outputOf('room', 'state', roomId), 'state').length > 5);
  assert.match(await synadm('room', 'power-levels', '--room-id', roomId), /power_levels/);
  assert.match(await synadm('room', 'resolve', '#meadow:hearth.test'), new RegExp(roomId.slice(1, 10)));
  assert.match(await synadm('room', 'resolve', '--reverse', roomId), /#meadow:hearth\.test/);
  assert.deepEqual(await outputOf('room', 'make-admin', roomId, '--user-id', admin.userId), {});
  const deleted = await outputOf('room', 'delete', roomId);
  assert.deepEqual(deleted['failed_to_kick_users'], []);
  assert.equal((deleted['kicked_users'] as string[]).length, 2);
  assert.deepEqual(listOf(await outputOf('room', 'list', '--name', 'mead'), 'rooms'), []);
});

test('synadm lists, protects, quarantines and deletes media', async () => {
  const dora = await register('dora');
  const upload = async (content: string) => {
    const response = await fetch(`${hearth.url}/_matrix/media/v3/upload?filename=a.txt`, {
      method: 'POST',
      headers: { authorization: `Bearer ${dora}`, 'content-type': 'text/plain' },
      body: content,
    });
    return String(((await response.json()) as Json)['content_uri']);
  };
  const [firstUri, secondUri] = [await upload('one'), await upload('two')];
  const idOf = (uri: string) => uri.slice('mxc://hearth.test/'.length);
  assert.equal(listOf(await outputOf('user', 'media', 'dora'), 'media').length, 2);
  assert.equal(listOf(await outputOf('media', 'list', '--user-id', 'dora'), 'media').length, 2);
  const roomId = await createRoom(dora, {});
  const path = `/_matrix/client/v3/rooms/${encodeURIComponent(roomId)}/send/m.room.message/1`;
  await api('PUT', path, { msgtype: 'm.file', body: 'a', url: firstUri }, dora);
  assert.deepEqual((await outputOf('media', 'list', '--room-id', roomId))['local'], [firstUri]);
  assert.deepEqual(await outputOf('media', 'protect', idOf(firstUri)), {});
  const quarantined = await outputOf('media', 'quarantine', '--user-id', 'dora');
  assert.equal(quarantined['num_quarantined'], 1);
  assert.deepEqual(await outputOf('media', 'quarantine', '--room-id', roomId), { num_quarantined: 0 });
  assert.deepEqual(
    await outputOf('media', 'quarantine', '--server-name', 'hearth.test', '--media-id', idOf(secondUri)),
    {},
  );
  const deleted = await outputOf('media', 'delete', '--media-id', idOf(secondUri));
  assert.deepEqual(deleted, { deleted_media: [idOf(secondUri)], total: 1 });
  assert.equal((await outputOf('media', 'delete', '--before-days', '1'))['total'], 0);
  assert.deepEqual(await outputOf('media', 'purge', '--before-days', '1'), { deleted: 0 });
});

test('synadm purges the history of rooms', async () => {
  const fred = await register('fred');
  const created = await api('POST', '/_matrix/client/v3/createRoom', {}, fred);
  const roomId = String(created['room_id']);
  const path = `/_matrix/client/v3/rooms/${encodeURIComponent(roomId)}`;
  const say = async (body: string) =>
    String(
      (await api('PUT', `${path}/send/m.room.message/${body}`, { msgtype: 'm.text', body }, fred))[
        'event_id'
      ],
    );
  const [old, bound] = [await say('old'), await say('bound')];
  const { purge_id: id } = await outputOf(
    'history',
    'purge',
    roomId,
    '--before-event-id',
    bound,
    '--delete-local',
  );
  await eventually('the end of the purge', async () => {
    return (await outputOf('history', 'purge-status', String(id)))['status'] === 'complete';
  });
  const { chunk } = await api('GET', `${path}/messages?dir=b&limit=100`, undefined, fred);
  const ids = (chunk as readonly { event_id: string }[]).map(({ event_id }) => event_id);
  assert.deepEqual([ids.includes(old), ids.includes(bound)], [false, true]);
  // The newest event stays in any case.
  const { purge_id: second } = await outputOf(
    'history',
    'purge',
    roomId,
    '--before',
    '2100-01-01',
    '--delete-local',
  );
  assert.equal(typeof second, 'string');
});

test('synadm creates, lists, changes and deletes registration tokens', async () => {
  const created = await outputOf('regtok', 'new', '--token', 'welcome', '--uses-allowed', '2');
  assert.deepEqual([created['token'], created['uses_allowed']], ['welcome', 2]);
  assert.equal(String((await outputOf('regtok', 'new'))['token']).length, 16);
  assert.equal(listOf(await outputOf('regtok', 'list'), 'registration_tokens').length, 2);
  assert.equal((await outputOf('regtok', 'update', 'welcome', '--uses-allowed', '-1'))['uses_allowed'], null);
  assert.equal((await outputOf('regtok', 'details', 'welcome'))['uses_allowed'], null);
  assert.match(await synadm('regtok', 'delete', 'welcome'), /successfully deleted/);
});

test('synadm sends server notices and raw requests', async () => {
  await register('emil');
  assert.match(await synadm('notice', 'send', '--silent', 'emil', 'maintenance at noon'), /event_id|^\s*$/);
  const sent = await synadm(
    'notice',
    'send',
    '--regex',
    '--paginate',
    '2',
    '@(emil|bea):.*',
    'at two',
    '<b>at two</b>',
  );
  assert.equal(sent.match(/event_id/g)?.length, 2, sent);
  const versions = await outputOf('matrix', 'raw', 'client/versions');
  assert.ok(Array.isArray(versions['versions']));
});

/** Prints the commands of synadm, one on each line. */
const listCommands = `
from click import Group
from synadm.cli import root
def show(command, path):
    if isinstance(command, Group):
        for name, member in command.commands.items(): show(member, path + [name])
    else: print(' '.join(path))
show(root, [])`;

/** Commands that the tests do not run, with the reason. */
const omittedCommands: Readonly<Record<string, string>> = {
  config: 'writes the configuration file of synadm and sends no request',
  'group delete': 'deletes a community, which the specification and the reference server have removed',
};

test('the tests of synadm run every command that synadm lists, apart from config and group delete', async () => {
  const { stdout } = await run('/usr/bin/python3', ['-c', listCommands]);
  const commands = stdout.trim().split('\n');
  assert.ok(commands.length > 40, stdout);
  const missing = commands.filter((command) => !ranCommands.has(command) && !(command in omittedCommands));
  assert.deepEqual(missing, []);
  assert.deepEqual(
    Object.keys(omittedCommands).filter((command) => !commands.includes(command)),
    [],
  );
});
